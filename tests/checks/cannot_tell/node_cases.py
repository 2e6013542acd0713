"""Kinds that ask nodes, and this machine's own tools."""

import re
import time
from collections.abc import Callable

from msgspec import to_builtins

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.fs import FsCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.host import HostCheck
from sentinel.checks.host.check import HostPast
from sentinel.checks.host.check import Memory as HostMemory
from sentinel.checks.host.judge import StalledPast
from sentinel.checks.idle import IdleCheck
from sentinel.checks.idle.check import IdleMemory
from sentinel.checks.idle.job_watch import JobWatch, NodeCounter
from sentinel.checks.memory import MemoryCheck
from sentinel.checks.network import NetworkCheck
from sentinel.checks.sensors import SensorsCheck
from sentinel.checks.service import ServiceCheck
from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from tests.checks.cannot_tell.probes import FALLEN, GPUS, IDENTITY, MEMINFO, probe, section
from tests.checks.cannot_tell.slurm_cases import BUSY, job, nodes, queue, slurm, training_runs
from tests.checks.cannot_tell.world import (
    DENIED,
    EMPTY,
    ERROR,
    HANG,
    MIDDLE,
    NEWER,
    NOTHING,
    RECORD,
    SAYS,
    Case,
    World,
    spoilt,
)
from tests.checks.idle.world import use_text
from tests.lab.gpus import gpus_of
from tests.slurm.answers import row

USE = use_text({gpu.address: 0.0 for gpu in gpus_of(1)})
STEPS = "daemon 7 15.batch\nsaw daemons\ncgroup 8 15 /step_0\nsaw cgroups\nsaw environments\n"
TRAFFIC = "net eth0 rx_bytes 5000\ndisk vmstat pgpgin 100\n"
VERSION_2 = "MARK begin 2\nMARK end\n"
HOT = GPUS.replace("<gpu_temp>41 C", "<gpu_temp>99 C")
LOST = GPUS.replace("<attached_gpus>8", "<attached_gpus>7")


def in_words_of_the_probe(world: World, name: str, text: str, newer: str) -> str:
    """A section as probe.sh prints it when the tool behind it has that fault."""
    fault = world.fault if world.target == name else ""
    why = {NOTHING: "missing", DENIED: "denied", HANG: "hung"}.get(fault)
    whole = section(name, text)
    if why:
        return f"MARK {name} {why} 0 no answer\n"
    if fault in (MIDDLE, RECORD):  # on the way here: the probe has counted its lines
        return spoilt(whole, fault, "\n", "")
    return section(name, {EMPTY: "", ERROR: SAYS, NEWER: newer}.get(fault, text))


def gpu_node(world: World) -> RunOutcome:
    """The driver says that one has fallen off the bus; nvidia-smi shows nothing of it yet."""
    slurm(world)
    world.says("scontrol", nodes("IDLE"), when="show node", newer=nodes("ASLEEP"))
    kernel = in_words_of_the_probe(
        world, "kernel", f"kmsg\n6,1,1,-;eth0: up\n{FALLEN}\n", "ebpf\n<6>{1}: eth0: up\n"
    )
    gpus = in_words_of_the_probe(
        world,
        "gpus",
        GPUS,
        GPUS.replace("nvsmi_device_v13", "nvsmi_device_v99")
        .replace("gpu_temp", "gpu_heat")
        .replace("<uuid>", "<id>")
        .replace("</uuid>", "</id>"),
    )
    whole = probe()
    world.node(whole.replace("MARK end", f"{gpus}{kernel}MARK end"), newer=VERSION_2)
    return world.look("gpu", GpuCheck(nodes="n1", signals=False))


def gpu_hot(world: World) -> RunOutcome:
    """A GPU at 99 degrees; the kernel says nothing."""
    slurm(world)
    world.says("scontrol", nodes("IDLE"), when="show node", newer=nodes("ASLEEP"))
    quiet = section("kernel", "kmsg\n6,1,1,-;eth0: up\n")
    new = re.sub("gpu_temp>", "gpu_heat>", HOT.replace("device_v13", "device_v99"))
    gpus = in_words_of_the_probe(world, "gpus", HOT, new)
    world.node(probe().replace("MARK end", f"{gpus}{quiet}MARK end"), newer=VERSION_2)
    return world.look("gpu", GpuCheck(nodes="n1", signals=False))


def gpu_here(world: World) -> RunOutcome:
    new = re.sub("gpu_temp>", "gpu_heat>", HOT.replace("device_v13", "device_v99"))
    world.says("nvidia-smi", HOT, newer=new)
    world.says("dmesg", "<6>[    1.000000] eth0: up\n", newer="")
    return world.look("gpu", GpuCheck())


def kernel_here(world: World) -> RunOutcome:
    world.says("nvidia-smi", GPUS, newer="")
    # What is older than a day is past, and the host may have been up for longer.
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    log = f"<6>[    1.000000] eth0: up\n<3>[{up - 9:12.6f}] {FALLEN.partition(';')[2]}\n"
    world.says("dmesg", log, newer="{1.0} eth0: up\n")
    return world.look("gpu", GpuCheck())


def amd_here(world: World) -> RunOutcome:
    listing = (
        '[\n{"gpu": 0, "bdf": "0000:05:00.0", "uuid": "aaff74a1-0000-1000-8000-000000000001"}\n]\n'
    )
    metric = '[\n{"gpu": 0, "temperature": {"hotspot": 120}, "ecc": {"total_uncorrectable_count": 2}}\n]\n'
    world.says("dmesg", "<6>[    1.000000] eth0: up\n", newer="")
    world.says("amd-smi", listing, when="list", newer='{"gpus": {"0": {}}}\n')
    world.says(
        "amd-smi", metric, when="metric", newer='[{"gpu": 0, "heat": {"hotspot": {"K": 393}}}]\n'
    )
    return world.look("gpu", GpuCheck(vendor="amd"))


def memory_node(world: World) -> RunOutcome:
    world.node(probe("memory", MEMINFO), newer=VERSION_2)
    return world.look("memory", MemoryCheck(nodes="n1"))


def memory_of_job(world: World) -> RunOutcome:
    training_runs(world)
    world.node(probe("memory", MEMINFO), newer=VERSION_2)
    return world.look("memory", MemoryCheck(job="train", users=["root"]))


def memory_section(world: World) -> RunOutcome:
    text = in_words_of_the_probe(world, "memory", MEMINFO, "MemTotal: 1 TB\nMemFree: much\n")
    world.node(probe().replace("MARK end", f"{text}MARK end"), newer=VERSION_2)
    return world.look("memory", MemoryCheck(nodes="n1"))


FULL = "4096 1000000 1000 0 1000000 999999 ext2/ext3\n"


def fs_node(world: World) -> RunOutcome:
    disk = section("mounts", "/dev/vda1 / ext4 rw,relatime 0 0\n") + in_words_of_the_probe(
        world, "disk.1", FULL, "blocks=1000000 free=0\n"
    )
    world.node(probe().replace("MARK end", f"{disk}MARK end"), newer=VERSION_2)
    return world.look("fs", FsCheck(nodes="n1", paths=[FilePath("/data")]))


def fs_of_job(world: World) -> RunOutcome:
    training_runs(world)
    disk = section("mounts", "/dev/vda1 / ext4 rw,relatime 0 0\n") + section("disk.1", FULL)
    world.node(probe().replace("MARK end", f"{disk}MARK end"), newer=VERSION_2)
    return world.look("fs", FsCheck(job="train", users=["root"], paths=[FilePath("/data")]))


def fs_here(world: World) -> RunOutcome:
    """stat(1) is the child that asks statfs(2)."""
    from sentinel.checks.filesystems.limits import FORMAT

    values = {
        "%S": "4096",
        "%b": "1000000",
        "%f": "1000",
        "%a": "0",
        "%c": "1000000",
        "%d": "999999",
        "%T": "ext2/ext3",
    }
    full = FORMAT
    for letter, value in values.items():
        full = full.replace(letter, value)
    world.says("stat", full + "\n", newer="blocks=1000000 free=0\n")
    return world.look("fs", FsCheck(paths=[FilePath(str(world.home))]))


PS = "    1     0 S systemd\n   77     0 Z munged\n"
UNIT = "Id=sssd.service\nLoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\n"


def service_ps(world: World) -> RunOutcome:
    world.says("ps", PS, newer="    1     0 S systemd\n   77     0 Q munged\n")
    return world.look("service", ServiceCheck(processes=["munged"]))


def service_units(world: World) -> RunOutcome:
    new = UNIT.replace("ActiveState=failed", "ActiveState=hibernating")
    world.says("systemctl", UNIT, newer=new)
    return world.look("service", ServiceCheck(units=["sssd.service"]))


def service_node(world: World) -> RunOutcome:
    world.says("ps", PS, newer="")
    world.node()
    return world.look("service", ServiceCheck(processes=["munged"], nodes="n1"))


def failed_jobs(world: World) -> RunOutcome:
    """A node on which a job was lost is known to the ledger; a GPU at 99 degrees is told in any case."""
    slurm(world)
    world.says("scontrol", nodes("IDLE"), when="show node", newer=nodes("ASLEEP"))
    world.says("squeue", queue(), when="%o", newer="x", record="§.\n")
    world.says("sacct", "", when="--delimiter", newer="x")
    gpus, quiet = section("gpus", HOT), section("kernel", "kmsg\n6,1,1,-;eth0: up\n")
    world.node(probe().replace("MARK end", f"{gpus}{quiet}MARK end"), newer=VERSION_2)
    return world.look("gpu", GpuCheck(nodes="n1", signals=True))


NO_MARK = (
    "dmesg has no end mark; what was cut off is newer than what was seen, and read at the next look"
)
NO_TOOL = "a node need not have this tool; the check says that it has none"
PORT = """\
mlx5_0 1 state {state}
mlx5_0 1 phys_state {phys}
mlx5_0 1 rate 400 Gb/sec (4X NDR)
mlx5_0 1 link_layer InfiniBand
"""
ETHERNET = "net eth1 operstate {state}\nnet eth1 speed 100000\nnet eth1 carrier_changes 2\n"
CARD = "3,2,2,-;mlx5_core 0000:17:00.0: device's health compromised - reached miss count\n"


def network(
    port_up: bool = True, ethernet_up: bool = True, log: str = ""
) -> Callable[[World], RunOutcome]:
    """It was up at first, and is down for longer than it may settle."""
    check = NetworkCheck(nodes="n1", settle=Duration(0.001), trial=Duration(0))

    def told(world: World, port_up: bool, ethernet_up: bool, log: str) -> None:
        state, phys = ("4: ACTIVE", "5: LinkUp") if port_up else ("1: DOWN", "2: Polling")
        parts = (
            ("infiniband", PORT.format(state=state, phys=phys), "mlx5_0 p1 state=DOWN\n"),
            ("network", ETHERNET.format(state="up" if ethernet_up else "down"), "eth1: DOWN\n"),
            ("kernel", f"kmsg\n6,1,1,-;eth0: up\n{log}", "ebpf\n<6>{1}: eth0: up\n"),
        )
        whole = "".join(in_words_of_the_probe(world, *part) for part in parts)
        whole += section("nvlink", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n")
        world.node(probe().replace("MARK end", f"{whole}MARK end"), newer=VERSION_2)

    def look(world: World) -> RunOutcome:
        for is_up in (True, False):
            before = World(world.folder)
            before.memory = world.memory
            told(before, is_up or port_up, is_up or ethernet_up, "")
            seen = before.look("network", check)
            assert seen.report is not None
            world.memory = seen.report.memory or {}
        told(world, port_up, ethernet_up, log)
        return world.look("network", check)

    return look


HWMON = (
    "hwmon0 coretemp.0 coretemp temp1_input 101000\nhwmon0 coretemp.0 coretemp temp1_crit 100000\n"
)
FANS = "Fan1 | 30h | cr | 29.1 | 0 RPM\n"


def sensors(world: World) -> RunOutcome:
    """A processor is too hot, or a fan stands still; at the first look all was well."""
    check = SensorsCheck(nodes="n1", ipmi=True, trial=Duration(0))

    def told(world: World, hwmon: str, ipmi: str) -> None:
        parts = (
            ("hwmon", hwmon, "hwmon0 heat=101\n"),
            ("ipmi", ipmi, "Fan1 | 30h | hot | 29.1 | 0\n"),
        )
        whole = "".join(in_words_of_the_probe(world, *part) for part in parts)
        world.node(probe().replace("MARK end", f"{whole}MARK end"), newer=VERSION_2)

    cool, turns = HWMON.replace("101000", "61000"), FANS.replace("| cr |", "| ok |")
    hot = HWMON if world.target == "hwmon" else cool
    still = turns if world.target == "hwmon" else FANS
    for hwmon in (cool, hot):
        before = World(world.folder)
        before.memory = world.memory
        told(before, hwmon, turns)
        seen = before.look("sensors", check)
        assert seen.report is not None
        world.memory = seen.report.memory or {}
    for node in world.memory["nodes"].values():
        node["asked"] = 0  # ten minutes later
    told(world, hot, still)
    return world.look("sensors", check)


ARRAYS = "memory mc0 ce_count 0\nmemory mc0 ue_count 0\nraid md0 array_state clean\nraid md0 degraded {}\nend\n"
GPU_SECTIONS = ("gpu_memory", "gpu_processes")
ERROR_OF_MEMORY = "3,2,2,-;EDAC MC0: 1 UE memory read error on CPU0 (channel:0 page:0x1)\n"
STUCK = "7 8 900 41 nfs_wait_bit_killable python\nall 1\n"


def host(world: World) -> RunOutcome:
    """One of its sources shows a trouble: an error of memory, a mirror without a drive, a drive that can
    only be read, a clock that nothing keeps in step, a GPU that holds memory, a daemon that leaks, or a task that did not run for an hour."""
    parts = (
        ("hardware", ARRAYS.format(int(world.target == "hardware")), "md0: degraded\n"),
        (
            "smart",
            "nvme0 0x8\nend\n" if world.target == "smart" else "nvme0 0\nend\n",
            "nvme0: 8\n",
        ),
        (
            "clock",
            f"chrony {'Not synchronised' if world.target == 'clock' else 'Normal'}\nend\n",
            "chrony: Odd\n",
        ),
        (
            "gpu_memory",
            f"GPU-1, {9000 if world.target in GPU_SECTIONS else 4}\nend\n",
            "GPU-1: 9000\n",
        ),
        ("gpu_processes", "", "GPU-1: none\n"),
        ("dcgm", f"engine 9 {9 * 2**20 if world.target == 'dcgm' else 9000}\nend\n", "engine: 9\n"),
        ("stalled", STUCK if world.target == "stalled" else "all 0\n", "python: D\n"),
        (
            "kernel",
            f"kmsg\n6,1,1,-;eth0: up\n{ERROR_OF_MEMORY if world.target in ('kernel', 'ssh') else ''}",
            "ebpf\n<6>{1}: eth0: up\n",
        ),
    )
    whole = "".join(in_words_of_the_probe(world, *part) for part in parts)
    world.node(probe().replace("MARK end", f"{whole}MARK end"), newer=VERSION_2)
    task = StalledPast(since=SystemClock().now().wall / 1e6 - 3600, started=900, switches=41)
    past = HostPast(boot=IDENTITY[2], off=1, held=1, stalled={"7/8": task})
    world.memory = to_builtins(HostMemory(nodes={"n1": past}))
    slurm(world)
    world.says("scontrol", nodes("IDLE"), when="show node", newer=nodes("ASLEEP"))
    return world.look("host", HostCheck(nodes="n1", trial=Duration(0), offset=Duration(10**9)))


def idle(world: World) -> RunOutcome:
    """A job has not used its GPUs for two hours; the last look was five minutes ago."""
    training_runs(world)
    other = row(state=b"RUNNING", user=b"root", nodes=b"n2", id=b"14", job=b"14", name=b"other")
    mine, new = (job(state, started=b"1790000000") for state in (b"RUNNING", b"HIBERNATING"))
    whole, newer = queue(other, mine), queue(other, new)
    world.says("squeue", whole, when="%o", newer=newer, record="§.\n")
    sizes = ["15", "cpu=8,gres/gpu=8", "N/A", "N/A", "N/A", "N/A", "1", "1"]
    world.says("squeue", "§|".join(sizes) + "§.\n", when="tres-alloc", newer=BUSY, record="§.\n")
    parts = (
        ("gpus", GPUS, GPUS.replace("gpu_util", "gpu_use")),
        ("gpu_use", USE, USE.replace("GPU 0000", "Device 0000")),
        ("steps", STEPS, STEPS.replace("cgroup 8", "scope 8")),
        ("traffic", TRAFFIC, "net.eth0.rx=5000\n"),
    )
    shown = "".join(in_words_of_the_probe(world, *part) for part in parts)
    world.node(probe().replace("MARK end", f"{shown}MARK end"), newer=VERSION_2)
    now = SystemClock().now()
    before = shift_instant(now, -7200)
    watch = JobWatch(
        started=1790000000,
        looked=shift_instant(now, -300),
        quiet=before,
        used={gpu.uuid: before for gpu in gpus_of(1)},
        counters={"n1": NodeCounter(boot=IDENTITY[2], moved_bytes=0)},
        is_batch=True,
    )
    world.memory = to_builtins(IdleMemory(jobs={"15": watch}))
    return world.look("idle", IdleCheck(users=["root"], trial=Duration(0)))


CASES = [
    Case(kind="host", source=0, asked="ssh", truth="memory lost data", look=host),
    Case(kind="host", source=0, asked="kernel", truth="memory lost data", look=host),
    Case(kind="host", source=0, asked="hardware", truth="a mirror lost a drive", look=host),
    Case(kind="host", source=0, asked="smart", truth="a drive can only be read", look=host, believed={NOTHING: NO_TOOL}),
    Case(kind="host", source=0, asked="gpu_memory", truth="a GPU at rest holds memory", look=host, believed={NOTHING: NO_TOOL}),
    Case(kind="host", source=0, asked="dcgm", truth="nv-hostengine leaks", look=host),
    Case(kind="host", source=0, asked="clock", truth="nothing keeps the clock in step", look=host, believed={NOTHING: NO_TOOL}),
    Case(kind="host", source=0, asked="stalled", truth="a task does not run", look=host),
    Case(kind="idle", source=0, asked="squeue %o", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=0, asked="squeue tres-alloc", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=1, asked="ssh", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=1, asked="gpus", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=1, asked="gpu_use", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=1, asked="steps", truth="GPUs are not used", look=idle),
    Case(kind="idle", source=1, asked="traffic", truth="GPUs are not used", look=idle),
    Case(kind="gpu", source=0, asked="ssh", truth="a GPU has fallen off the bus", look=gpu_node),
    Case(kind="gpu", source=0, asked="kernel", truth="a GPU has fallen off the bus", look=gpu_node),
    Case(kind="gpu", source=0, asked="gpus", truth="a GPU at 99 degrees", look=gpu_hot),
    Case(kind="gpu", source=0, asked="nvidia-smi", truth="a GPU at 99 degrees", look=gpu_here),
    Case(kind="gpu", source=0, asked="dmesg", truth="a GPU has fallen off the bus", look=kernel_here, believed=dict.fromkeys((MIDDLE, RECORD), NO_MARK)),
    Case(kind="gpu", source=0, asked="amd-smi list", truth="a GPU with errors", look=amd_here),
    Case(kind="gpu", source=0, asked="amd-smi metric", truth="a GPU with errors", look=amd_here),
    Case(kind="gpu", source=1, asked="sacct --delimiter", truth="a GPU at 99 degrees", look=failed_jobs),
    Case(kind="memory", source=0, asked="ssh", truth="no memory is left", look=memory_node),
    Case(kind="memory", source=0, asked="memory", truth="no memory is left", look=memory_section),
    Case(kind="memory", source=0, asked="squeue %o", truth="no memory is left", look=memory_of_job),
    Case(kind="fs", source=0, asked="stat", truth="the disk is full", look=fs_here),
    Case(kind="fs", source=0, asked="ssh", truth="the disk is full", look=fs_node),
    Case(kind="fs", source=0, asked="disk.1", truth="the disk is full", look=fs_node),
    Case(kind="fs", source=0, asked="squeue %o", truth="the disk is full", look=fs_of_job),
    Case(kind="network", source=0, asked="ssh", truth="a link is down", look=network(port_up=False)),
    Case(kind="network", source=0, asked="infiniband", truth="a link is down", look=network(port_up=False)),
    Case(kind="network", source=0, asked="network", truth="a link is down", look=network(ethernet_up=False)),
    Case(kind="network", source=0, asked="kernel", truth="a card has failed", look=network(log=CARD)),
    Case(kind="sensors", source=0, asked="ssh", truth="a fan stands still", look=sensors),
    Case(kind="sensors", source=0, asked="hwmon", truth="a processor is too hot", look=sensors),
    Case(kind="sensors", source=0, asked="ipmi", truth="a fan stands still", look=sensors),
    Case(kind="service", source=0, asked="ps", truth="munged is dead", look=service_ps),
    Case(kind="service", source=0, asked="systemctl", truth="sssd has failed", look=service_units),
    Case(kind="service", source=0, asked="ssh", truth="munged is dead", look=service_node),
]  # fmt: skip
