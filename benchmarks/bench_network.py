"""The `network` kind: false alarms of a healthy fleet, and what its part of a probe costs.

Run alone: python -m benchmarks.bench_network [NODES DAYS]

The fleet has error rates that were fixed before the judge was written. InfiniBand allows a bit error
rate of 1e-12 (ibdiagnet's --ber_thresh, docs.nvidia.com): 0.4 a second at 400 Gb/s. Here each link has
a rate of its own up to that, doubled in bursts of five minutes; it is lost once in 60 days (Meta
lost 8.4 % of 419 stops in 54 days on 16,384 GPUs to the network: far less), and nodes reboot every
30 days.
"""

import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from benchmarks.measure import cpu_children, machine, row
from sentinel.checks.network.judge import LinkPast, NetworkLink, judge_link
from sentinel.core.values import Rate
from sentinel.nodes import script
from sentinel.nodes.probe import ALL_PARTS_REQUEST, ProbeRequest, Section

DAY, STEP = 86_400, 300
PORTS, GPUS, ROUNDS = 8, 8, 20
NEW: tuple[Section, ...] = ("network", "nvlink", "hwmon")


def main() -> None:
    """A fleet, then the probe with and without its new sections."""
    print(machine())
    nodes, days = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (100, 30)
    alarms = sum(_alarms(random.Random(f"link {n}"), days) for n in range(nodes))
    row(f"false alarms: {nodes} healthy links, {days} days, a look in 5 min", str(alarms))
    with tempfile.TemporaryDirectory() as folder:
        _machine(Path(folder) / "sys")
        before = _cpu(ProbeRequest(parts=("infiniband", "kernel")), folder)
        now = _cpu(ProbeRequest(parts=("infiniband", "kernel", "network", "nvlink")), folder)
        whole = _cpu(ALL_PARTS_REQUEST, folder)
        new = _cpu(replace(ALL_PARTS_REQUEST, parts=(*ALL_PARTS_REQUEST.parts, *NEW)), folder)
    row("a probe of ports and kernel log, processor time", f"{1000 * before:.0f} ms")
    row("with Ethernet, PCIe and NVLink", f"{1000 * now:.0f} ms", f"{now / before:.2f} times")
    row("a full probe", f"{1000 * whole:.0f} ms")
    row("with these and the sensors", f"{1000 * new:.0f} ms", f"{new / whole:.2f} times (1.3)")


def _alarms(dice: random.Random, days: int) -> int:
    """Of one link: looks at which it became bad."""
    rate, past, told, alarms = dice.random() * 0.4, LinkPast(), False, 0
    counters = {"symbol_error": 0, "port_rcv_errors": 0, "link_downed": 0}
    boot = 0
    for moment in range(0, days * DAY, STEP):
        burst = 2 if dice.random() < 0.02 else 1
        counters["symbol_error"] += _poisson(dice, rate * STEP * burst)
        counters["port_rcv_errors"] += _poisson(dice, rate * STEP * burst / 100)
        counters["link_downed"] += dice.random() < STEP / (60 * DAY)
        if dice.random() < STEP / (30 * DAY):
            boot, counters = boot + 1, dict.fromkeys(counters, 0)
        link = NetworkLink(name="mlx5_0/1", rate=400, lanes=4, counters=dict(counters))
        bad, _, past = judge_link(link, past, None, 1e9 + moment, str(boot), 60, Rate("3 in 1h"))
        alarms += bool(bad) and not told
        told = bool(bad)
    return alarms


def _poisson(dice: random.Random, mean: float) -> int:
    """Nearly: a normal draw of the same mean and spread."""
    return max(0, round(dice.gauss(mean, math.sqrt(mean))))


def _machine(sys_: Path) -> None:
    """A node of eight ports and eight GPUs."""
    for n in range(PORTS):
        port = sys_ / f"class/infiniband/mlx5_{n}/ports/1"
        files = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)"}
        files |= {f"counters/counter_{i}": "7" for i in range(25)}
        files |= {f"hw_counters/hw_{i}": "7" for i in range(30)}
        _write(port, files)
        _write(sys_ / f"class/net/ib{n}", {"operstate": "up", "device/x": "", "speed": "400000"})
    for n in range(PORTS + GPUS):
        kind = "0x020700" if n < PORTS else "0x030200"
        width = {"class": kind, "current_link_width": "16", "max_link_width": "16"}
        errors = {
            f"aer_dev_{w}": f"X 0\nTOTAL_ERR_{w[:3].upper()} 0" for w in ("correctable", "fatal")
        }
        speed = {"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe"}
        _write(sys_ / f"bus/pci/devices/0000:{n:02x}:00.0", {**width, **errors, **speed})
    for n in range(12):
        sensors = {f"temp{i}_{what}": "61000" for i in range(1, 9) for what in ("input", "crit")}
        _write(sys_ / f"class/hwmon/hwmon{n}", {"name": "coretemp", **sensors})
    _write(sys_.parent, {"nvidia-smi": _nvlink()})
    (sys_.parent / "nvidia-smi").chmod(0o755)


def _nvlink() -> str:
    """What stands for nvidia-smi: 18 links a GPU, as an H100 has."""
    kinds = ("Replay", "Recovery", "CRC")
    of = "\n".join(f"         Link {n}: {kind} Errors: 0" for n in range(18) for kind in kinds)
    told = "\n".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n})\n{of}" for n in range(GPUS))
    return f"#!/bin/sh\n[ $1 = nvlink ] || exit 0\ncat <<EOF\n{told}\nEOF"


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")


def _cpu(wants: ProbeRequest, folder: str) -> float:
    """Median seconds of processor time of the script."""
    place = f"{folder}/place"
    Path(place).mkdir(mode=0o700, exist_ok=True)
    text = script.text(wants, "MARK", 30, sys=f"{folder}/sys", place=place)
    times = []
    for _ in range(ROUNDS):
        before = cpu_children()
        environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        subprocess.run(script.ARGV, input=text, stdout=subprocess.DEVNULL, check=True, env=environ)
        times.append(cpu_children() - before)
    return statistics.median(times)


if __name__ == "__main__":
    main()
