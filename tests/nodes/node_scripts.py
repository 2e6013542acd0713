"""Each script that runs on nodes: how it is run, what is right of its answer, a fault for each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sentinel.actions import clean_up
from sentinel.checks.log import ask
from sentinel.core.host_parts import (
    ClockSync,
    HostHardware,
    MemoryController,
    NvmeController,
    RaidArray,
    StalledThread,
    StalledThreads,
)
from sentinel.nodes import script as probe_script
from sentinel.nodes.probe import (
    Disk,
    NodeIdentity,
    NodeMemory,
    ProbeRequest,
    StepTraces,
    Unread,
)
from sentinel.nodes.probe.parse import parse
from sentinel.proc.own_package import read_program_file
from sentinel.stacks import script as stacks_script
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node
from tests.nodes.columns import Tools

MARK = "5eed" * 8


class Scene(NamedTuple):
    """Processes of a job: by the kernel's count; one that only inherited its id; two of another job that
    carry it; strangers of the same user that pose as its own by a scope of their systemd and by one in a
    service that is theirs; a slurmstepd; and one that waits for somebody to open the fifo."""

    job: str
    uid: int
    counted: int
    inherited: int
    others: tuple[int, int]
    strangers: tuple[int, int]
    daemon: int
    opening: int
    fifo: Path


Change = Callable[[bytes], bytes]


def check_clean_up(tools: Tools, scene: Scene, change: Change) -> None:
    """By its cgroup; never what another job's cgroup holds, or what carries an id alone."""
    argv = ["sh", "-s", "list", scene.job, "1000", f"{scene.uid},{scene.uid + 1}", "1"]
    done = tools.run(argv, change(clean_up.read_clean_up_script()))
    if tools.column.ps == "busybox":
        said = b"the processes of this node cannot be seen: ps gives no whole list\n"
        assert (done.returncode, done.stdout) == (3, b"")
        assert done.stderr.endswith(said)
        return
    assert (done.returncode, done.stderr) == (0, b"")
    found = {tuple(line.split()[:3]) for line in done.stdout.decode().splitlines()}
    uid = str(scene.uid)
    assert found == {
        ("may", str(scene.counted), uid),
        ("kept", str(scene.daemon), "system"),
    }


def check_witness(tools: Tools, scene: Scene, change: Change) -> None:
    """One process that stands still, and none that poses as one; whoever sees them whole is sure."""
    argv = [*ask._WITNESS_ARGV, scene.job, scene.job, "0", str(scene.uid)]
    lines = tools.run(argv, change(ask.read_witness_script())).stdout.decode().splitlines()
    assert lines.pop(0) == "stepped"
    words = lines[0].split()
    assert words[:5] == ["tasks", "0", "root", "1", "0"]
    assert words[6:8] == ["1", "0"]
    assert words[9:] == ["0", str(os.sysconf("SC_CLK_TCK"))]
    assert "cut" not in lines


def check_probe(tools: Tools, scene: Scene, change: Change) -> None:
    """The node itself, its processes, where it has procps, and those of jobs by three witnesses."""
    parts = ("identity", "processes", "memory", "steps")
    wants = ProbeRequest(parts=parts, disks=("/dev/shm",))
    text = probe_script.text(wants, MARK, 25.0, place=str(tools.folder.parent / "place"))
    probe = parse(tools.run(list(probe_script.ARGV), change(text)).stdout, MARK, wants)
    assert isinstance(probe.identity, NodeIdentity)
    assert (probe.identity.hostname, probe.identity.uid) == (os.uname().nodename, 0)
    assert isinstance(probe.memory, NodeMemory)
    disk, room = probe.disks["/dev/shm"], os.statvfs("/dev/shm")
    assert isinstance(disk, Disk)
    assert disk.total == room.f_blocks * room.f_frsize
    if tools.column.ps == "busybox":
        assert isinstance(probe.processes, Unread)
        assert "ps" in probe.processes.why
    else:
        assert not isinstance(probe.processes, Unread)
        mine = {p.pid: (p.parent, p.uid) for p in probe.processes or ()}
        assert mine[scene.counted] == (os.getpid(), scene.uid)
    assert isinstance(probe.steps, StepTraces)
    seen = {(one.pid, one.witness) for one in probe.steps.processes if one.job == scene.job}
    assert seen == {
        (scene.counted, "cgroup"),
        (scene.daemon, "daemon"),
        *((pid, "environment") for pid in (scene.inherited, *scene.others)),
    }
    assert not probe.steps.blind


SYSFS = {
    "devices/system/edac/mc/mc0/ce_count": "12",
    "devices/system/edac/mc/mc0/ue_count": "0",
    "devices/system/edac/mc/mc0/dimm0/dimm_label": "CPU_SrcID#0_MC#0_Chan#0_DIMM#0",
    "devices/system/edac/mc/mc0/dimm0/dimm_ce_count": "0",
    "devices/system/edac/mc/mc0/dimm1/dimm_label": "CPU_SrcID#0_MC#0_Chan#0_DIMM#1",
    "devices/system/edac/mc/mc0/dimm1/dimm_ce_count": "12",
    "block/md0/md/array_state": "clean",
    "block/md0/md/level": "raid1",
    "block/md0/md/degraded": "1",
    "block/md0/md/sync_action": "recover",
    "block/md0/md/metadata_version": "1.2",
    "class/nvme/nvme0/state": "live",
    "class/nvme/nvme0/transport": "pcie",
    "class/nvme/nvme1/state": "deleting (no IO)",
    "class/nvme/nvme1/transport": "tcp",
}


def check_host(tools: Tools, scene: Scene, change: Change) -> None:
    """Memory, arrays and drives as the kernel shows them, and a thread in state D; one that has ended
    meanwhile and one of the kernel are none."""
    sysfs = tools.folder.parent / "sys"
    for name, value in SYSFS.items():
        (sysfs / name).parent.mkdir(parents=True, exist_ok=True)
        (sysfs / name).write_text(f"{value}\n")
    pid = scene.counted
    tools.add_stand_in(
        "nvme", '[ "$*" = "smart-log /dev/nvme0" ] && printf "critical_warning\\t\\t: 0x4\\n"'
    )
    rows = (
        "4194303 1 4194303 D x gone",
        f"{pid} 1 {pid} D nfs_wait python -u",
        "3 2 3 D worker kworker/0:1",
    )
    chrony = (
        "Reference ID    : 00000000 ()",
        "System time     : 7.810536861 seconds slow of NTP time",
        "Leap status     : Not synchronised",
    )
    tools.add_stand_in("nvidia-smi", "echo 'GPU-1, 9000'")
    tools.add_stand_in("chronyc", "\n".join(f"echo '{line}'" for line in chrony))
    tools.add_stand_in("ps", "\n".join(f"echo '{row}'" for row in (*rows, f"{pid} 1 {pid} S x y")))
    wants = ProbeRequest(parts=("hardware", "smart", "stalled", "clock", "gpu_memory"))
    place = str(tools.folder.parent / "place")
    text = probe_script.text(wants, MARK, 25.0, sys=str(sysfs), place=place)
    probe = parse(tools.run(list(probe_script.ARGV), change(text)).stdout, MARK, wants)
    assert probe.hardware == HostHardware(
        memory=(
            MemoryController(
                name="mc0", corrected=12, uncorrected=0, worst="CPU_SrcID#0_MC#0_Chan#0_DIMM#1"
            ),
        ),
        raid=(
            RaidArray(
                name="md0", state="clean", level="raid1", missing=1, sync="recover", metadata="1.2"
            ),
        ),
        nvme=(
            NvmeController(name="nvme0", state="live", transport="pcie"),
            NvmeController(name="nvme1", state="deleting (no IO)", transport="tcp"),
        ),
    )
    assert probe.smart == {"nvme0": 4}
    assert probe.gpu_memory == {"GPU-1": 9000 * 2**20}
    assert probe.clock == ClockSync(word="Not synchronised", offset=-7.810536861)
    status = Path(f"/proc/{pid}/status").read_text()
    switches = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])
    thread = StalledThread(
        pid=pid, thread=pid, started=started, switches=switches, wait="nfs_wait", name="python -u"
    )
    assert probe.stalled == StalledThreads(threads=(thread,), total=1)


def check_waits(tools: Tools, scene: Scene, change: Change) -> None:
    """The file that a task waits for; the task itself need not be in state D for that."""
    text = change(probe_script.waits().encode()).decode()
    script = f"tab='\t'\n{text}\ncall {scene.opening} {scene.opening}\n"
    done = tools.run(["sh", "-s"], script.encode())
    words = done.stdout.decode().rstrip().split("\t")
    assert words == ["waits", str(scene.opening), "opening", str(scene.fifo)], done.stderr


def check_stacks(tools: Tools, scene: Scene, change: Change) -> None:
    """Without slurmd they are found by what the kernel counts; with it, as it names them."""
    options = stacks_script.ScriptOptions(job_id=scene.job, user=str(scene.uid))
    text = change(stacks_script.script_text(options, "MARK", 8.0).encode())
    done = tools.run(list(stacks_script.ARGV), text)
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "n1")
    assert {(p.pid, p.step) for p in told.processes} == {(scene.counted, "0")}
    assert {process.state for process in told.processes} == {"S"}


def check_diag(tools: Tools, scene: Scene, change: Change) -> None:
    """What dcgmi printed, what the GPUs are, and last of all how it ended."""
    tools.add_stand_in("dcgmi", 'echo "dcgmi $*"; echo trouble >&2; exit 7')
    tools.add_stand_in("nvidia-smi", 'echo "gpus $*"')
    out = tools.folder.parent / "archive" / "n1.json"
    script = change(read_program_file("checks/diag/job.sh").encode())
    tools.run(["sh", "-s", "--", "2", str(out), "20"], script)
    found = {path.name: path.read_text() for path in out.parent.glob("*")}
    assert found == {
        "n1.json": "dcgmi diag -r 2 -j\n",
        "n1.json.gpus": "gpus -q -x\n",
        "n1.json.err": "trouble\n",
        "n1.json.rc": "7\n",
    }
    for path in out.parent.iterdir():
        path.unlink()


class NodeScript(NamedTuple):
    """A script with its check, and faults in it: a field shifted, an `in` turned, a word swapped."""

    check: Callable[[Tools, Scene, Change], None]
    faults: tuple[tuple[str, str], ...]
    needs_procps: bool = False
    """Whether the faults lie behind a ps that busybox does not have: there it says so, fault or not."""


SCRIPTS = {
    "actions/clean_up.sh": NodeScript(
        check_clean_up,
        (
            ("uid[pid] = $4", "uid[pid] = $3"),
            ("if (!(job in wanted) ||", "if ((job in wanted) ||"),
            ("cgroup[$2] = $3 }", "cgroup[$3] = $2 }"),
        ),
        needs_procps=True,
    ),
    "nodes/cgroups.sh": NodeScript(
        check_witness,
        (
            ('"cgroup", pids[at], (judged', '"cgroup", at, (judged'),
            ("own = RSTART", "own = 0"),
            ("owner[folder] != 0", "0"),
            ("field[3]", "field[4] + 1"),
        ),
    ),
    "checks/log/witness.sh": NodeScript(
        check_witness,
        (
            ('print "task", $2', 'print "task", $3'),
            ("(uid == user)", "(uid != user)"),
            ('("kernel" in saw)', '("slurm" in saw)'),
        ),
    ),
    "nodes/probe.sh": NodeScript(
        check_probe,
        (
            ("environment \\1 \\2", "environment \\2 \\1"),
            ("pid=,ppid=,uid=", "ppid=,pid=,uid="),
        ),
        needs_procps=True,
    ),
    "nodes/host.sh": NodeScript(
        check_host,
        (
            ("critical_warning[^:]*: */", "critical_warning: */"),
            ("shift 19", "shift 18"),
            ("offset \\1 \\2", "offset \\2 \\1"),
            ("&& $2 != 2", ""),
            ("dimm_ce_count dimm_ue_count", "dimm_ue_count"),
            ("= pcie ] || drives=", "= tcp ] || drives="),
        ),
    ),
    "nodes/waits.sh": NodeScript(
        check_waits,
        (
            ('opening "$second"', 'opening "$first"'),
            ('told waits "$1" "$2" "$path"', 'told waits "$2" "$1" "$path"'),
        ),
    ),
    "stacks/stacks.sh": NodeScript(
        check_stacks,
        (("print $2, step[1]", "print step[1], $2"), ("*whole) printf", "*cut) printf")),
    ),
    "checks/diag/job.sh": NodeScript(
        check_diag, (("code=$?", "code=0"), ("level=$1 out=$2", "level=$2 out=$1"))
    ),
}


def plant(old: str, new: str) -> Change:
    """The change of a text that plants the fault, which has to be there once at least."""

    def change(text: bytes) -> bytes:
        assert old.encode() in text, f"no {old!r} in the script any more"
        return text.replace(old.encode(), new.encode())

    return change
