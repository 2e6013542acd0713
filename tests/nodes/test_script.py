"""probe.sh itself, on this machine: every shell it may meet, and what it does when things hang."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks import hanging
from sentinel.core.host_parts import ClockSync, HostEngine, StalledThreads
from sentinel.nodes import script
from sentinel.nodes.probe import (
    ALL_PARTS_REQUEST,
    Cursor,
    Disk,
    FileWait,
    Hwmon,
    Ipmi,
    KernelLog,
    Network,
    NodeMemory,
    NodeProbe,
    NoProbe,
    ProbeRequest,
    StepTraces,
    Unread,
    parse,
)
from tests.lab.cgroups import Cgroups
from tests.lab.fuse import Fuse
from tests.lab.waiting import begun, wait_until

SLUID = "sDTDM8106N2P00"
MARK = "5eed" * 8
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
GPU = ProbeRequest(parts=("gpu_processes",))


class Host:
    """This machine as a node: its own place for locks, its own tools before all others."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tools, self.place = folder, folder / "tools", folder / "place"
        self.tools.mkdir()

    def tool(self, name: str, text: str) -> None:
        """What a command does from now on."""
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def output(self, wants: ProbeRequest, seconds: float = 25.0, **more: str) -> bytes:
        """What the script prints."""
        place = {"place": str(self.place), **more}
        text = script.text(wants, MARK, seconds, **place)
        done = proc.run(script.ARGV, limit=60, stdin=text, env=self.env, cwd="/")
        assert (done.code, done.err) == (0, b"")
        return done.out

    def probe(self, wants: ProbeRequest, seconds: float = 25.0, **more: str) -> NodeProbe:
        return parse(self.output(wants, seconds, **more), MARK, wants)

    @property
    def env(self) -> Mapping[str, str]:
        return {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_reads_it_and_every_part_is_told(host: Host, shell: str) -> None:
    """dash, bash and busybox's ash; parts that need hardware or rights may say why not."""
    path = shutil.which(shell)
    assert path is not None
    (host.tools / "sh").symlink_to(path)
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    probe = host.probe(ALL_PARTS_REQUEST)
    assert set(probe.unread_parts) <= {"infiniband", "kernel"}
    assert isinstance(probe.memory, NodeMemory)
    assert isinstance(probe.steps, StepTraces)
    assert isinstance(probe.disks["/tmp"], Disk)


@pytest.mark.parametrize("busybox", [name for name in SHELLS if name == "busybox"])
def test_with_busybox_alone_it_says_what_it_cannot(host: Host, busybox: str) -> None:
    """No procps, no dd of GNU: the parts that need them are Unread, the others are read."""
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        (host.tools / name).symlink_to(str(shutil.which(busybox)))
    probe = host.probe(ALL_PARTS_REQUEST)
    assert not set(probe.unread_parts) & {"identity", "memory", "mounts", "disks./tmp"}
    assert isinstance(probe.kernel, KernelLog | Unread)
    assert {"processes", "blocked"} <= set(probe.unread_parts)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_half_a_script_does_nothing(host: Host, share: float) -> None:
    """A connection that broke while it was sent leaves no trace and no answer."""
    whole = script.text(ALL_PARTS_REQUEST, MARK, 25, place=str(host.place))
    done = proc.run(script.ARGV, limit=20, stdin=whole[: int(len(whole) * share)], env=host.env)
    assert not host.place.exists()
    with pytest.raises(NoProbe):
        parse(done.out, MARK, ALL_PARTS_REQUEST)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("grep", "slurmstepd"),
        ("sed", "comm"),
        ("grep", "job_"),
        ("awk", "cgroup"),
        ("sort", "-u"),
        pytest.param("grep", "SLURM_JOB_ID", marks=pytest.mark.root),  # of other users' processes
        pytest.param("tr", "n", marks=pytest.mark.root),
        pytest.param("sed", "environment", marks=pytest.mark.root),
        ("awk", 'print " "'),
        ("tr", "-d"),
    ],
)
def test_a_tool_that_fails_makes_nothing_empty(host: Host, tool: str, words: str) -> None:
    """Where memory is short the kernel ends whom it likes: what was not seen to its end is not
    told as none."""
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    real, wants = shutil.which(tool), ProbeRequest(parts=("steps", "gpu_processes"))
    assert not host.probe(wants).unread_parts
    host.tool(tool, f'case "$*" in *\'{words}\'*) exit 9 ;; esac; exec {real} "$@"')
    probe = host.probe(wants)
    assert "steps" in probe.unread_parts
    assert "gpu_processes" in probe.unread_parts or len(probe.gpu_processes or ()) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dmesg", "source"),
    [
        ("[ \"$*\" = '-S -r' ] || exit 1; echo '<6>[    1.500000] hello'", "dmesg"),
        ("echo BusyBox >&2; [ \"$*\" = -r ] || exit 1; echo '<6>[    1.500000] hello'", "dmesg"),
        ("[ \"$*\" = -r ] || exit 1; echo '<6>[    1.500000] hello'", ""),
        ("echo '[    1.500000] hello'", ""),
        ("echo '<6>hello'", ""),
        (":", ""),
        ("exit 1", ""),
    ],
)
def test_a_kernel_log_that_shows_nothing_is_not_believed(
    host: Host, dmesg: str, source: str
) -> None:
    """Cleared (dmesg -C), or without times (printk.time): an Xid would not be seen in it."""
    for tool, text in (("dd", "exit 1"), ("journalctl", "exit 1"), ("dmesg", dmesg)):
        host.tool(tool, text)
    log = host.probe(ProbeRequest(parts=("kernel",))).kernel
    assert isinstance(log, KernelLog if source else Unread)
    assert getattr(log, "source", "") == source


@pytest.mark.parametrize("since", [None, 1_500_000, 1_600_000])
def test_what_journald_says_of_the_kernel(host: Host, since: int | None) -> None:
    """In JSON, where a newline begins no record; by the time that the kernel noted."""
    rows = [
        {"MESSAGE": "x[7]: segfault in \nNVRM: Xid", "PRIORITY": "6", "SYSLOG_FACILITY": "0",
         "__MONOTONIC_TIMESTAMP": "1510000", "_SOURCE_MONOTONIC_TIMESTAMP": "1500000"},
        {"MESSAGE": '"__MONOTONIC_TIMESTAMP":"1"', "PRIORITY": "4", "SYSLOG_FACILITY": "0",
         "__MONOTONIC_TIMESTAMP": "1620000", "_SOURCE_MONOTONIC_TIMESTAMP": "1600000"},
        {"MESSAGE": [120, 255], "PRIORITY": "3", "SYSLOG_FACILITY": "0",
         "__MONOTONIC_TIMESTAMP": "1700000"},
    ]  # fmt: skip
    text = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (host.folder / "rows").write_text(f"{text}\n")
    for tool in ("dd", "dmesg"):
        host.tool(tool, "exit 1")
    host.tool("journalctl", f"case $* in *--output-fields*) exit 1 ;; esac; cat {host.folder}/rows")
    boot = proc.boot_id()
    cursor = Cursor(boot=boot, source="journal", position=since) if since else None
    log = host.probe(ProbeRequest(parts=("kernel",), since=cursor)).kernel
    assert isinstance(log, KernelLog)
    told = [(line.at, line.level) for line in log.lines]
    assert told == [(1.5, 6), (1.6, 4), (1.7, 3)][{None: 0, 1_500_000: 1}.get(since, 2) :]
    assert log.cursor == Cursor(boot=boot, source="journal", position=1_700_000)


@pytest.mark.parametrize(
    ("since", "shown"), [(None, 3), (1_400_000, 3), (1_500_000, 2), (1_550_000, 1)]
)
def test_the_probe_passes_on_all_lines_of_a_record(
    host: Host, since: int | None, shown: int
) -> None:
    """After a cursor of former versions too, whose source was dmesg: nothing is told twice."""
    text = "<4>[    1.500000] NVRM: a\n<4>[    1.500000] b\n<6>[    1.550000] c\n<6>[    1.6] d\n"
    (host.folder / "rows").write_text(text)
    for tool, does in (("dd", "exit 1"), ("journalctl", "exit 1"), ("dmesg", "cat $0.rows")):
        host.tool(tool, does.replace("$0.rows", f"{host.folder}/rows"))
    cursor = Cursor(boot=proc.boot_id(), source="dmesg", position=since) if since else None
    log = host.probe(ProbeRequest(parts=("kernel",), since=cursor)).kernel
    assert isinstance(log, KernelLog)
    assert [line.text for line in log.lines] == ["NVRM: a\nb", "c", "d"][-shown:]
    assert log.cursor.position == 1_600_000


def test_the_mark_is_in_no_list_of_processes(host: Host) -> None:
    """Whoever looks at /proc while it runs cannot forge an end."""
    seen = host.folder / "seen"
    host.tool("nvidia-smi", f"cat /proc/[0-9]*/cmdline /proc/self/environ >{seen} 2>/dev/null; :")
    assert not host.probe(GPU).unread_parts
    assert b"gpu_processes" in seen.read_bytes()
    assert MARK.encode() not in seen.read_bytes()


def test_a_command_line_forges_no_row(host: Host) -> None:
    """Newlines in the arguments of a process make no further process and no further section."""
    forged = f"x\n{MARK} memory ok 0\n 1 root init"
    with subprocess.Popen(["sh", "-c", "sleep 60; :", forged]) as liar:
        begun(liar)
        processes = host.probe(ProbeRequest(parts=("processes",))).processes
        assert isinstance(processes, tuple)
        rows = [p for p in processes if MARK in p.command]
        assert [p.pid for p in rows] == [liar.pid]
        subprocess.run(["pkill", "-P", str(liar.pid)], check=False)
        liar.kill()


def test_a_slow_tool_is_ended_and_the_next_probe_asks_again(host: Host) -> None:
    """What SIGTERM or SIGKILL ends is late, not hung, and holds no lock."""
    started, sleep = host.folder / "started", f"sleep 599.{os.getpid()}"
    host.tool("nvidia-smi", f"trap '' TERM; echo x >>{started}; {sleep} & wait; wait")
    first = host.probe(GPU, 9).unread_parts["gpu_processes"]
    second = host.probe(GPU, 9).unread_parts["gpu_processes"]
    assert (first.kind, second.kind) == ("late", "late")
    assert "no answer within 2 s" in first.why
    assert started.read_text() == "x\nx\n"
    assert not _running(sleep)


def test_a_tool_that_cannot_be_ended_is_never_piled_upon(host: Host, fuse: Fuse) -> None:
    """hung, by pid and since when; five further probes start none and are quick about it."""
    started = host.folder / "started"
    host.tool("nvidia-smi", f"echo $$ >>{started}; exec cat {fuse.point}/data")
    fuse.hold("open")
    both = ProbeRequest(parts=("gpu_processes", "gpus", "memory"))
    began = int(time.time())
    for number in range(6):
        probe = host.probe(both, 9)
        if number == 0:
            answered = time.time()
        for part in (probe.gpu_processes, probe.gpus):
            assert isinstance(part, Unread)
            assert part.kind == "hung", (number, part)
            assert str(part.pid) == started.read_text().strip()
            assert part.since is not None
            assert began - 2 <= part.since <= answered + 2  # however slow the machine is
        assert isinstance(probe.memory, NodeMemory)
    assert fuse.withheld() == 1
    fuse.release()
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    wait_until(lambda: host.probe(GPU, 9).gpu_processes, "the tool to be asked again")
    assert not host.probe(GPU, 9).unread_parts


def test_the_driver_is_asked_for_no_name_of_a_process(host: Host) -> None:
    """A name with a newline would forge a row: a stand-in prints what it is asked for."""
    forged = "x\\nGPU-2, 1, 5, sshd"
    host.tool(
        "nvidia-smi",
        f"case $* in *name*) printf 'GPU-1, 2, 3, {forged}\\n' ;; *) echo 'GPU-1, 2, 3' ;; esac",
    )
    found = host.probe(GPU).gpu_processes
    assert isinstance(found, tuple)
    assert [(one.gpu, one.pid, one.memory) for one in found] == [("GPU-1", 2, 3 * 2**20)]


@pytest.mark.parametrize("part", ["gpus", "gpu_processes", "nvlink"])
def test_who_hangs_is_named_by_its_own_number(host: Host, fuse: Fuse, part: str) -> None:
    """Whichever part has asked the tool: not the shell around it, which is gone by then."""
    started = host.folder / "started"
    host.tool("nvidia-smi", f"echo $$ >>{started}; exec cat {fuse.point}/data")
    fuse.hold("open")
    unread = host.probe(ProbeRequest(parts=(part,)), 9).unread_parts[part]  # type: ignore[arg-type]
    assert (unread.kind, str(unread.pid)) == ("hung", started.read_text().strip())
    fuse.release()


def test_nothing_that_hangs_holds_the_session(host: Host, fuse: Fuse) -> None:
    """The script ends, and its pipes with it, while its child is stuck in the kernel."""
    fuse.hold("statfs")
    began = time.monotonic()
    probe = host.probe(ProbeRequest(parts=("memory",), disks=(str(fuse.point), "/")), 9)
    assert time.monotonic() - began < 8
    assert probe.unread_parts[f"disks.{fuse.point}"].kind == "hung"
    assert isinstance(probe.disks["/"], Disk)
    fuse.release()


def test_what_a_task_in_state_d_waits_for_is_told(host: Host, fuse: Fuse) -> None:
    """The call, the file, and by the mount table the file system; the task is not traced."""
    fuse.hold("open")
    with subprocess.Popen(["cat", f"{fuse.point}/data"], stdout=subprocess.DEVNULL) as stuck:
        wait_until(fuse.withheld, "the hang")
        wait_until(
            lambda: (Path(f"/proc/{stuck.pid}/wchan").read_text()) not in ("", "0"), "asleep"
        )
        stuck.kill()
        wait_until(lambda: _state(stuck.pid) == "D", "state D")
        probe = host.probe(hanging.PROBE_WANTS)
        fuse.release()
    assert isinstance(probe.waits, tuple)
    assert FileWait(pid=stuck.pid, doing="opening", path=f"{fuse.point}/data") in probe.waits
    assert f"opening {fuse.point}/data (fuse" in hanging.describe_hanging(probe)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_two_probes_at_once_both_get_their_answers(host: Host) -> None:
    """A lock that is held by somebody quick is waited for."""
    host.tool("nvidia-smi", "sleep 0.5; echo 'GPU-1, 2, 3, x'")
    told: list[NodeProbe] = []
    threads = [threading.Thread(target=lambda: told.append(host.probe(GPU))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [probe.unread_parts for probe in told] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("does", "kind", "why"),
    [
        (
            "echo 'NVIDIA-SMI has failed because of the driver'; exit 9",
            "failed",
            "exit code 9: NVIDIA-SMI has failed",
        ),
        ("echo 'No devices were found'", "garbage", "No devices were found"),
        ("head -c 9000000 /dev/zero; exit", "failed", "more than 8 MiB"),
        ("kill -SEGV $$", "failed", "exit code 139"),
    ],
)
def test_a_tool_that_fails_is_quoted(host: Host, does: str, kind: str, why: str) -> None:
    """nvidia-smi complains on stdout as well; an answer that is none is no "no process"."""
    host.tool("nvidia-smi", does)
    unread = host.probe(GPU).unread_parts["gpu_processes"]
    assert unread.kind == kind
    assert why in unread.why


def test_a_tool_that_is_not_there_is_missing(host: Host) -> None:
    """No nvidia-smi in PATH, no driver of InfiniBand, no such directory."""
    wants = ProbeRequest(parts=("gpus", "infiniband"), disks=("/no/such/place",))
    unread = host.probe(wants, sys=str(host.folder)).unread_parts
    assert (unread["gpus"].kind, unread["infiniband"].kind) == ("missing", "missing")
    assert "No such file" in unread["disks./no/such/place"].why


def test_ports_and_counters_are_read_from_sysfs(host: Host) -> None:
    """Every counter the driver has; one that cannot be read is left out, the port is not."""
    port = host.folder / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "hw_counters").mkdir()
    values = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)"}
    values |= {"link_layer": "InfiniBand", "counters/link_downed": "7", "hw_counters/rnr": "9"}
    for name, value in values.items():
        (port / name).write_text(f"{value}\n")
    (port / "counters/broken").mkdir()
    found = host.probe(ProbeRequest(parts=("infiniband",)), sys=str(host.folder / "sys")).infiniband
    assert isinstance(found, tuple)
    assert (found[0].state, found[0].rate) == ("ACTIVE", "400 Gb/sec (4X NDR)")
    assert found[0].counters == {"link_downed": 7, "rnr": 9}


def test_links_are_read_from_sysfs(host: Host) -> None:
    """Physical interfaces, a bond's slaves, and the PCIe links of cards and GPUs; nothing virtual."""
    files = {
        "class/net/eth1/operstate": "up", "class/net/eth1/speed": "100000",
        "class/net/eth1/carrier_changes": "2", "class/net/eth1/statistics/rx_crc_errors": "7",
        "class/net/eth1/device/vendor": "0x15b3", "class/net/lo/operstate": "unknown",
        "class/net/vf0/device/physfn/vendor": "", "class/net/vf0/operstate": "up",
        "class/net/bond0/operstate": "up", "class/net/bond0/bonding/mode": "802.3ad 4",
        "class/net/bond0/lower_eth1/operstate": "up",
        "bus/pci/devices/0000:17:00.0/class": "0x020700",
        "bus/pci/devices/0000:17:00.0/infiniband/mlx5_0/node_type": "1: CA",
        "bus/pci/devices/0000:17:00.0/current_link_width": "8",
        "bus/pci/devices/0000:17:00.0/max_link_width": "16",
        "bus/pci/devices/0000:17:00.0/current_link_speed": "32.0 GT/s PCIe",
        "bus/pci/devices/0000:17:00.0/aer_dev_fatal": "DLP 1\nTOTAL_ERR_FATAL 1",
        "bus/pci/devices/0000:18:00.0/class": "0x030200",
        "bus/pci/devices/0000:18:00.0/current_link_width": "255",
        "bus/pci/devices/0000:19:00.0/class": "0x010802",
    }  # fmt: skip
    for name, value in files.items():
        (host.folder / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (host.folder / "sys" / name).write_text(f"{value}\n")
    found = host.probe(ProbeRequest(parts=("network",)), sys=str(host.folder / "sys")).network
    assert isinstance(found, Network)
    bond, eth = found.interfaces
    assert (bond.name, bond.slaves, eth.name, eth.up, eth.speed) == (
        "bond0", ("eth1",), "eth1", True, 100_000,
    )  # fmt: skip
    assert eth.counters == {"carrier_changes": 2, "rx_crc_errors": 7}
    card, gpu = found.pci
    assert (card.name, card.width, card.width_max, card.speed, card.errors) == (
        "mlx5_0", 8, 16, 32.0, {"fatal": 1},
    )  # fmt: skip
    assert (gpu.gpu, gpu.width, gpu.speed) == (True, None, None)


@pytest.mark.parametrize("code", [0, 14, 15])
def test_a_whole_page_of_nvidia_smi_is_one_whatever_its_exit_code(host: Host, code: int) -> None:
    """The code stands behind it; half a page is none."""
    host.tool("nvidia-smi", f"echo '<nvidia_smi_log></nvidia_smi_log>'; exit {code}")
    told = host.probe(ProbeRequest(parts=("gpus",))).gpus
    assert isinstance(told, str)
    assert told.startswith("<nvidia_smi_log></nvidia_smi_log>")
    assert (f"exit code {code}" in told) == (code != 0)
    host.tool("nvidia-smi", f"echo '<nvidia_smi_log>'; exit {code}")
    assert isinstance(host.probe(ProbeRequest(parts=("gpus",))).gpus, Unread)


def test_errors_of_nvlink_are_summed_over_the_links_of_a_gpu(host: Host) -> None:
    """As an H100 and a Blackwell print them; a counter that is none, and a GPU without links."""
    said = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
         Link 0: Replay Errors: 1
         Link 0: Recovery Errors: 0
         Link 0: CRC Errors: 5

         Link 17: Replay Errors: 2
         Link 17: CRC Errors: N/A
GPU 1: NVIDIA B200 (UUID: GPU-2)
         Link 0: Link recovery failed events: 3
GPU 2: NVIDIA L4 (UUID: GPU-3)
NVML: Unable to retrieve NVLink information as all links are inActive"""
    host.tool("nvidia-smi", f"[ \"$*\" = 'nvlink -e' ] && echo '{said}'")
    assert host.probe(ProbeRequest(parts=("nvlink",))).nvlink == {
        0: {"Replay Errors": 3, "Recovery Errors": 0, "CRC Errors": 5},
        1: {"Link recovery failed events": 3},
        2: {},
    }
    host.tool("nvidia-smi", "echo Failed to initialize NVML")
    told = host.probe(ProbeRequest(parts=("nvlink",))).nvlink
    assert isinstance(told, Unread)
    assert told.kind == "garbage"


def test_sensors_are_read_from_sysfs(host: Host) -> None:
    """By device and label, degrees in place of thousandths; throttle counts are summed."""
    files = {
        "hwmon0/name": "coretemp", "hwmon0/temp1_input": "61000", "hwmon0/temp1_crit": "100000",
        "hwmon0/temp1_label": "Package id 0", "hwmon0/temp2_input": "-5000",
        "hwmon1/name": "nvme", "hwmon1/temp1_input": "40850", "hwmon1/temp1_crit_alarm": "1",
        "hwmon2/name": "nct6798", "hwmon2/fan2_input": "0", "hwmon2/fan2_alarm": "1",
        "hwmon2/temp1_label": "PECI", "hwmon2/temp1_input": "1000",
        "hwmon2/temp2_label": "PECI", "hwmon2/temp2_input": "2000", "hwmon3/broken": "",
    }  # fmt: skip
    for name, value in files.items():
        (host.folder / "sys/class/hwmon" / name).parent.mkdir(parents=True, exist_ok=True)
        (host.folder / "sys/class/hwmon" / name).write_text(f"{value}\n")
    (host.folder / "sys/class/hwmon/hwmon1/device").symlink_to("../../nvme0")
    for cpu in ("cpu0", "cpu1"):
        counts = host.folder / "sys/devices/system/cpu" / cpu / "thermal_throttle"
        counts.mkdir(parents=True)
        (counts / "core_throttle_count").write_text("2200000000\n")
    found = host.probe(ProbeRequest(parts=("hwmon",)), sys=str(host.folder / "sys")).hwmon
    assert isinstance(found, Hwmon)
    assert found.throttled == {"core": 4_400_000_000}
    assert [(s.name, s.value, s.critical, s.alarm) for s in found.sensors] == [
        ("coretemp Package id 0", 61.0, 100.0, False),
        ("coretemp temp2", -5.0, None, False),
        ("nvme0 temp1", 40.85, None, True),
        ("nct6798 PECI (hwmon2/temp1)", 1.0, None, False),
        ("nct6798 PECI (hwmon2/temp2)", 2.0, None, False),
        ("nct6798 fan2", 0.0, None, True),
    ]


IPMI = """\
Fan1             | 30h | ok  | 29.1 | 5880 RPM
Fan2             | 31h | lcr | 29.1 | 0 RPM
Status           | 85h | ok  | 10.1 | Presence detected
Status           | 86h | ok  | 10.2 | Presence detected, Power Supply AC lost
"""


FAN2 = IPMI.splitlines()[1]


def test_a_word_that_nobody_knows_costs_its_own_sensor(host: Host) -> None:
    """Not the page; the check tells of the word."""
    host.tool("ipmitool", f"echo 'Fan1 | 30h | melting | 29.1 | 5880 RPM'; echo '{FAN2}'")
    found = host.probe(ProbeRequest(parts=("ipmi",))).ipmi
    assert isinstance(found, Ipmi)
    assert [(r.name, r.status) for r in found.readings] == [("Fan1", "melting"), ("Fan2", "lcr")]


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        (f"cat <<'X'\n{IPMI}X", ""),
        ("exit 0", "garbage"),
        ("echo 'Could not open device at /dev/ipmi0' >&2; exit 1", "failed"),
        (f"echo 'Using best available cipher suite 3'; cat <<'X'\n{IPMI}X", ""),
    ],
)
def test_a_management_controller_by_ipmitool(host: Host, says: str, kind: str) -> None:
    """Text of the tool above the sensors is none."""
    host.tool("ipmitool", f'[ "$1" = sel ] && echo "1a | Fan #0x31 | Asserted" && exit\n{says}')
    found = host.probe(ProbeRequest(parts=("ipmi",))).ipmi
    if isinstance(found, Unread):
        assert found.kind == kind
        return
    assert isinstance(found, Ipmi)
    assert [(r.name, r.status) for r in found.readings] == [
        ("Fan1", "ok"), ("Fan2", "lcr"), ("Status (85h)", "ok"), ("Status (86h)", "ok"),
    ]  # fmt: skip
    assert found.events == ("1a | Fan #0x31 | Asserted",)


def test_an_answer_of_ipmitool_that_ends_early_says_where(host: Host) -> None:
    """Of half a line nothing is read; what stands before it is."""
    host.tool("ipmitool", f"head -c 70 <<'X'\n{IPMI}X")
    found = host.probe(ProbeRequest(parts=("ipmi",))).ipmi
    assert isinstance(found, Ipmi)
    assert [(r.name, r.status) for r in found.readings] == [("Fan1", "ok")]
    assert found.cut.startswith("Fan2")


def test_processes_that_are_hidden_are_not_absent(host: Host) -> None:
    """Under hidepid nobody says "no process of that job"."""
    probe = host.probe(ProbeRequest(parts=("processes", "blocked")), proc=str(host.folder))
    for part in (probe.processes, probe.blocked):
        assert isinstance(part, Unread)
        assert (part.kind, "hidepid" in part.why) == ("denied", True)


def test_a_process_left_over_from_a_job_is_seen(host: Host) -> None:
    """By what it inherited, where only root may look."""
    forged = "/proc/1/environ:SLURM_JOB_ID=4712"
    env = {"SLURM_JOB_ID": f"4711\n999 {forged}\n{forged}"}
    with subprocess.Popen(["sleep", "60"], env=env) as left:
        begun(left)
        steps = host.probe(ProbeRequest(parts=("steps",))).steps
        left.kill()
    assert isinstance(steps, StepTraces)
    seen = [(s.pid, s.job) for s in steps.processes if s.witness == "environment"]
    if os.geteuid() == 0:
        assert (left.pid, "4711") in seen
        assert (1, "4712") not in seen
    else:
        assert steps.blind


def test_a_process_is_found_by_the_sluid_of_its_cgroup(host: Host, cgroups: Cgroups) -> None:
    """Slurm 26.05 names a job's cgroup so. What lies in its scope in another form is not known, and
    the witness says so; slurmstepd's own `system` is no job's."""
    known, inner = (
        cgroups.process(f"{SLUID}/step_batch/user/task_0"),
        cgroups.process("job_12/x/job_13"),
    )
    plain, own = cgroups.process("job_14"), cgroups.process("system")
    steps = host.probe(ProbeRequest(parts=("steps",))).steps
    assert isinstance(steps, StepTraces)
    found = {s.pid: (s.job, s.step) for s in steps.processes if s.witness == "cgroup"}
    assert (found[known], found[inner], found[plain]) == ((SLUID, "batch"), ("12", ""), ("14", ""))
    assert own not in found
    strange = cgroups.process("somehow_7/step_0")
    steps = host.probe(ProbeRequest(parts=("steps",))).steps
    assert isinstance(steps, StepTraces)
    assert ("?", strange) in {(s.job, s.pid) for s in steps.processes}


def test_cgroups_that_vanish_while_they_are_read_are_no_failure(host: Host) -> None:
    """A tree of files of the real shape: one is gone when it is opened, one cannot be read to its
    end, of one the cgroup is gone already."""
    place = host.folder / "proc"
    for pid in (11, 12, 13):
        (place / str(pid)).mkdir(parents=True)
        (place / str(pid) / "environ").touch()
    scope = "0::/system.slice/n1_slurmstepd.scope"
    (place / "11" / "cgroup").symlink_to("gone")
    (place / "12" / "cgroup").mkdir()
    (place / "13" / "cgroup").write_text(f"{scope}/{SLUID}/step_0/user/task_0 (deleted)\n")
    for file in ("sys", "uptime", "stat"):
        (place / file).symlink_to(f"/proc/{file}")
    (place / "self").mkdir()
    (place / "self" / "mountinfo").write_text(f"36 25 0:33 / {place} rw - cgroup2 none rw\n")
    if os.geteuid() == 0:
        (place / f"system.slice/n1_slurmstepd.scope/{SLUID}").mkdir(parents=True)
    steps = host.probe(ProbeRequest(parts=("steps",)), proc=str(place)).steps
    assert isinstance(steps, StepTraces)
    assert [(s.pid, s.job, s.step) for s in steps.processes if s.witness == "cgroup"] == [
        (13, SLUID if os.geteuid() == 0 else "?", "0")
    ]
    assert not [b for b in steps.blind if b.startswith("cgroups")]


@pytest.mark.root
def test_an_environment_that_repeats_an_id_is_one_line(host: Host) -> None:
    """A file of the real shape: the first one counts, as in getenv(3)."""
    place = host.folder / "proc"
    (place / "14").mkdir(parents=True)
    (place / "14" / "cgroup").touch()
    ids = [*["4711"] * 1000, *["4712"] * 1000]
    (place / "14" / "environ").write_text("".join(f"SLURM_JOB_ID={job}\0" for job in ids))
    for file in ("sys", "uptime", "stat"):
        (place / file).symlink_to(f"/proc/{file}")
    steps = host.probe(ProbeRequest(parts=("steps",)), proc=str(place)).steps
    assert isinstance(steps, StepTraces)
    found = [(s.pid, s.job) for s in steps.processes if s.witness == "environment"]
    assert (found, steps.blind) == ([(14, "4711")], ())


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o710])
def test_a_place_that_others_may_enter_is_not_used(host: Host, mode: int) -> None:
    """Another one with a name at random is, the same at the next probe; who sits there is named."""
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    host.place.mkdir()
    host.place.chmod(mode)
    for _ in range(2):
        probe = host.probe(GPU)
        assert not probe.unread_parts
        assert probe.squatter.endswith(f"belongs to uid {os.geteuid()} and is not ours alone")
    assert list(host.place.iterdir()) == []
    [another] = host.folder.glob("place.*")
    assert another.stat().st_mode & 0o777 == 0o700


@pytest.mark.root
def test_a_place_in_which_another_user_sits_is_named_and_planted_ones_are_not_taken(
    host: Host,
) -> None:
    """An ordinary user takes the place, and plants a directory whose name fits."""
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    planted = host.folder / "place.planted"
    for path in (host.place, planted):
        path.mkdir(mode=0o700)
        os.chown(path, 4242, 4242)
    probe = host.probe(GPU)
    assert not probe.unread_parts
    assert "belongs to uid 4242" in probe.squatter
    assert list(planted.iterdir()) == list(host.place.iterdir()) == []


def test_a_place_that_is_a_link_is_not_used(host: Host) -> None:
    """/tmp is for everybody: a link there leads wherever its owner likes."""
    (host.folder / "theirs").mkdir(mode=0o700)
    host.place.symlink_to(host.folder / "theirs")
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    probe = host.probe(GPU)
    assert not probe.unread_parts
    assert "not ours alone" in probe.squatter
    assert list((host.folder / "theirs").iterdir()) == []


def test_only_what_is_wanted_is_run(host: Host) -> None:
    """`memory` costs no nvidia-smi."""
    host.tool("nvidia-smi", f"touch {host.folder}/touched")
    assert not host.probe(ProbeRequest(parts=("memory",))).unread_parts
    assert not (host.folder / "touched").exists()


def test_nothing_but_locks_is_left_behind(host: Host) -> None:
    """The working directory of a call goes with it; that of one that died goes later."""
    host.tool("nvidia-smi", "echo 'GPU-1, 2, 3, x'")
    host.place.mkdir(mode=0o700)
    for name, age in (("call.1", 7200), ("call.2", 60)):
        (host.place / name).mkdir()
        os.utime(host.place / name, (time.time() - age,) * 2)
    host.probe(GPU)
    names = {path.name for path in host.place.iterdir() if path.name[:4] == "call"}
    assert names == {"call.2"}


def _running(command: str) -> bool:
    return subprocess.run(["pgrep", "-f", "-x", command], capture_output=True).returncode == 0


DRIVES = {"nvme0": "pcie", "nvme1": "tcp"}


@pytest.mark.parametrize(
    ("tool", "says", "found"),
    [
        ("nvme", "critical_warning                    : 0", {"nvme0": 0}),  # nvme-cli 1.x
        ("nvme", "critical_warning\t\t\t: 0x4", {"nvme0": 4}),  # nvme-cli 2.x
        ("smartctl", "Critical Warning:                   0x01", {"nvme0": 1}),  # smartmontools
        ("nvme", "NVMe status: INVALID_FIELD", {"nvme0": None}),
        ("nvme", "", {"nvme0": None}),
    ],
)
@pytest.mark.root
def test_the_health_of_drives_by_either_tool(
    host: Host, tool: str, says: str, found: dict[str, int | None]
) -> None:
    """Local drives only; one that tells nothing is not well."""
    for name, transport in DRIVES.items():
        (host.folder / "sys/class/nvme" / name).mkdir(parents=True)
        (host.folder / "sys/class/nvme" / name / "transport").write_text(f"{transport}\n")
    wants = ProbeRequest(parts=("smart",))
    missing = host.probe(wants, sys=str(host.folder / "sys")).smart
    if shutil.which("nvme") is None and shutil.which("smartctl") is None:
        assert isinstance(missing, Unread)
        assert missing.kind == "missing"
    host.tool(tool, f"printf '%s\\n' '{says}'; exit 4")
    assert host.probe(wants, sys=str(host.folder / "sys")).smart == found


def test_a_task_that_does_not_run_is_seen_with_its_switches(host: Host, fuse: Fuse) -> None:
    """Really in state D: at both looks it gave up the processor as often, and is the same task."""
    wants = ProbeRequest(parts=("stalled",))
    fuse.hold("open")
    with subprocess.Popen(["cat", f"{fuse.point}/data"], stdout=subprocess.DEVNULL) as stuck:
        wait_until(fuse.withheld, "the hang")
        stuck.kill()
        wait_until(lambda: _state(stuck.pid) == "D", "state D")
        looks = [host.probe(wants).stalled for _ in range(2)]
        fuse.release()
    found = []
    for look in looks:
        assert isinstance(look, StalledThreads)
        found += [one for one in look.threads if one.pid == stuck.pid]
    first, second = found
    assert first == second
    assert (first.thread, first.name) == (stuck.pid, "cat")


CHRONY_STANDS = "506 Cannot talk to daemon"


@pytest.mark.parametrize(
    ("chronyc", "timedatectl", "found"),
    [
        ("echo 'Leap status     : Normal'", "exit 9", "Normal"),
        (f"echo '{CHRONY_STANDS}'; exit 1", "echo 'System clock synchronized: yes'", "yes"),
        (f"echo '{CHRONY_STANDS}'; exit 1", "echo '    NTP synchronized: no'", "no"),  # systemd 219
        ("exit 1", "echo 'Failed to connect to bus'; exit 1", None),
        ("exit 1", "echo '      Local time: Sat 2026-11-28'", None),
    ],
)
def test_what_keeps_the_clock_is_asked_of_whoever_knows(
    host: Host, chronyc: str, timedatectl: str, found: str | None
) -> None:
    """chrony where it runs, else what the kernel was told; where neither tells, it is not known."""
    host.tool("chronyc", chronyc)
    host.tool("timedatectl", timedatectl)
    (host.folder / "run/systemd/system").mkdir(parents=True)
    told = host.probe(ProbeRequest(parts=("clock",)), run=str(host.folder / "run")).clock
    assert (told.word if isinstance(told, ClockSync) else None) == found


ENGINE_ROW = "4711 0 110592 nv-hostengine"


@pytest.mark.parametrize(
    ("ps", "dcgmi", "found"),
    [
        ("1 0 9 init", "exit 9", HostEngine()),
        (ENGINE_ROW, "exit 0", HostEngine(pid=4711, memory=108 * 2**20, answers=True, patience=2)),
        (ENGINE_ROW, "exit 3", HostEngine(pid=4711, memory=108 * 2**20)),  # another address
        (
            ENGINE_ROW,
            "exec sleep 60",
            HostEngine(pid=4711, memory=108 * 2**20, answers=False, patience=2),
        ),
        ("4711 1000 9 nv-hostengine", "exec sleep 60", HostEngine()),  # a user's own program
    ],
)
def test_the_daemon_of_dcgm_is_asked_for_as_long_as_it_may_take(
    host: Host, ps: str, dcgmi: str, found: HostEngine
) -> None:
    """With the length of its log, which anybody may see."""
    log = host.folder / "var/log/nv-hostengine.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 4096)
    host.tool("ps", f"echo '{ps}'")
    host.tool("dcgmi", dcgmi)
    text = script.text(
        ProbeRequest(parts=("dcgm",)), MARK, 13, place=str(host.place), var=str(host.folder / "var")
    )
    done = proc.run(script.ARGV, limit=60, stdin=text, env=host.env, cwd="/")
    told = parse(done.out, MARK, ProbeRequest(parts=("dcgm",))).dcgm
    assert told == replace(found, logs={str(log): 4096})


def test_memory_of_gpus_by_uuid(host: Host) -> None:
    """A driver that does not tell is none that has no memory in use."""
    host.tool("nvidia-smi", "printf 'GPU-1, 4\\nGPU-2, [N/A]\\n'")
    wants = ProbeRequest(parts=("gpu_memory",))
    assert host.probe(wants).gpu_memory == {"GPU-1": 4 * 2**20, "GPU-2": None}
    host.tool("nvidia-smi", "echo 'No devices were found'; exit 6")
    told = host.probe(wants).gpu_memory
    assert isinstance(told, Unread)
    assert told.kind == "failed"
