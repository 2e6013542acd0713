"""The output of a probe: what is read, and that nothing cut, forged or strange passes for whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.core.errors import Invalid
from sentinel.core.section_lines import StrangeLine
from sentinel.gpu import xid
from sentinel.nodes.probe import (
    ALL_PARTS_REQUEST,
    Cursor,
    CutShort,
    Disk,
    GpuProcess,
    KernelLog,
    NodeIdentity,
    NodeMemory,
    NodeProbe,
    NoProbe,
    ProbeRequest,
    StepTraces,
    UninterruptibleThread,
    Unread,
    kernel,
    parse,
)

MARK = "0123456789abcdef0123456789abcdef"
WHOLE = (Path(__file__).parent / "fixtures/probe.txt").read_bytes()
BOOT = "daf8f080-aeed-4f6a-a5ba-3c5d802ffd16"


def told(out: bytes = WHOLE, wants: ProbeRequest = ALL_PARTS_REQUEST) -> NodeProbe:
    return parse(out, MARK, wants)


def section(name: str, *lines: str, state: str = "ok", count: int | None = None) -> NodeProbe:
    """A probe of one section alone."""
    number = len(lines) if count is None else count
    body = "".join(f" {line}\n" for line in lines)
    text = f"{MARK} begin 1\n{MARK} {name} {state} {number} why\n{body}{MARK} end\n"
    parts: Any = () if name.startswith("disk") else (name,)
    disks = ("/tmp",) if name.startswith("disk") else ()
    return told(text.encode(), ProbeRequest(parts=parts, disks=disks))


def test_a_whole_probe_is_read() -> None:
    """Every part as the node told it; what hung says so, with its process."""
    probe = told()
    assert probe.identity == NodeIdentity(
        hostname="node-0",
        kernel="6.1.0-31-amd64",
        boot=BOOT,
        uptime=4971.77,
        time=1795227654,
        uid=0,
    )
    assert probe.unread_parts == {
        "disks./dev/shm": Unread(
            kind="hung", why="not even SIGKILL ends it", pid=4711, since=1795227000
        )
    }
    assert isinstance(probe.mounts, tuple)
    assert {"/", "/proc", "/scratch fast"} <= {mount.point for mount in probe.mounts}
    assert probe.disks["/tmp"] == Disk(
        type="ext2/ext3",
        total=66053021 * 4096,
        free=60000797 * 4096,
        available=20545504 * 4096,
        inodes=16777216,
        inodes_free=16349478,
    )
    assert probe.memory == NodeMemory(
        total=24683888 * 1024, available=23889116 * 1024, swap_total=0, swap_free=0, oom_kills=2
    )
    assert probe.gpus is None


def test_processes_have_their_owner_and_start() -> None:
    """Start in epoch seconds; where a command line is missing the kernel's name stands in."""
    processes = told().processes
    assert isinstance(processes, tuple)
    train, dead = processes[3], processes[4]
    assert (train.pid, train.parent, train.uid, train.user, train.state) == (
        120,
        116,
        1000,
        "alice",
        "R",
    )
    assert (train.started, train.command) == (1793494924, "python train.py --lr 0.1")
    assert (dead.user, dead.command) == ("", "[sh <defunct>]")


def test_a_process_in_a_debugger_leaves_the_others_readable() -> None:
    """State t (ps(1)): a py-spy at work must not make the node's whole list unreadable."""
    line = " 6819  6772     0 t Sat Nov 21 07:57:59 2026 python3"
    [process] = section("processes", line).processes or ()
    assert (process.pid, process.state) == (6819, "t")


def test_a_mount_without_a_source_leaves_the_others_readable() -> None:
    """mount(2) takes an empty one, and the kernel shows it as it is."""
    probe = section("mounts", " /job tmpfs rw,relatime 0 0", "/dev/vda1 / ext4 rw 0 0")
    assert isinstance(probe.mounts, tuple)
    assert [mount.point for mount in probe.mounts] == ["/job", "/"]


def test_a_file_system_may_count_up_to_64_bits() -> None:
    """What has no fixed number of inodes says 2^64-1."""
    most = 2**64 - 1
    found = section("disk.1", f"4096 10 5 4 {most} {most} nfs").disks["/tmp"]
    assert isinstance(found, Disk)
    assert (found.total, found.inodes, found.inodes_free) == (40960, most, most)


def test_a_counter_may_have_any_name() -> None:
    """Drivers name those in hw_counters as they like."""
    ports = section("infiniband", "hfi1_0 1 state 4: ACTIVE", "hfi1_0 1 RxTID-Err 7").infiniband
    assert isinstance(ports, tuple)
    assert ports[0].counters == {"RxTID-Err": 7}


def test_blocked_threads_tell_the_kernels_own_apart() -> None:
    """A child of kthreadd is the kernel's."""
    assert told().blocked == (
        UninterruptibleThread(pid=120, thread=120, name="cat", wait="fuse_get_req", kernel=False),
        UninterruptibleThread(pid=99, thread=99, name="kworker/u8:1", wait="-", kernel=True),
    )


def test_steps_are_named_by_whoever_saw_them() -> None:
    """A process of job 7 without a daemon or a cgroup is left over from it."""
    steps = told().steps
    assert isinstance(steps, StepTraces)
    assert [(s.pid, s.job, s.step, s.witness) for s in steps.processes] == [
        (116, "12", "batch", "daemon"),
        (120, "12", "batch", "cgroup"),
        (120, "12", "", "environment"),
        (130, "7", "", "environment"),
    ]
    assert steps.blind == ()


def test_a_witness_that_says_nothing_is_blind() -> None:
    """Steps without the sight of cgroups are not "no steps"."""
    steps = section("steps", "saw daemons", "blind environments: only root may read them").steps
    assert isinstance(steps, StepTraces)
    assert steps.blind == (
        "environments: only root may read them",
        "cgroups: nothing was said of them",
    )


def test_gpu_processes_have_the_names_that_ps_knows() -> None:
    """The driver is asked for none: a row is whole without, and one that is not is no process."""
    rows = b" GPU-5f1b2c3d-0000-0000-0000-000000000001, 120, 70310, python train.py, with a comma\n"
    bare = WHOLE.replace(rows, rows[:57].rpartition(b",")[0] + b"\n")
    assert bare != WHOLE
    first, second = told(bare).gpu_processes  # type: ignore[misc]
    assert (first.pid, first.memory, second.pid) == (120, 70310 * 2**20, 121)
    processes = told().processes
    assert isinstance(processes, tuple)
    assert first.name == next(p.command for p in processes if p.pid == 120)
    unknown = section("gpu_processes", "GPU-1, 7, [N/A]").gpu_processes
    assert unknown == (GpuProcess(gpu="GPU-1", pid=7, memory=None, name=""),)


def test_gpu_processes_keep_commas_and_what_is_not_told() -> None:
    """nvidia-smi separates by commas and puts words in brackets where it may not tell."""
    assert told().gpu_processes == (
        GpuProcess(
            gpu="GPU-5f1b2c3d-0000-0000-0000-000000000001",
            pid=120,
            memory=70310 * 2**20,
            name="python train.py, with a comma",
        ),
        GpuProcess(
            gpu="MIG-5f1b2c3d-0000-0000-0000-000000000002",
            pid=121,
            memory=None,
            name="[Insufficient Permissions]",
        ),
    )


def test_ports_have_state_rate_and_counters() -> None:
    """Words without the kernel's number before them; a port that is down is there as well."""
    ports = told().infiniband
    assert isinstance(ports, tuple)
    up, down = ports
    assert (up.device, up.port, up.state, up.phys_state) == ("mlx5_0", 1, "ACTIVE", "LinkUp")
    assert (up.rate, up.link_layer) == ("400 Gb/sec (4X NDR)", "InfiniBand")
    assert up.counters == {"link_downed": 3}
    assert (down.state, down.counters) == ("DOWN", {})


@pytest.mark.parametrize(
    ("since", "lost"),
    [
        (None, None),
        (Cursor(boot=BOOT, source="kmsg", position=3732), 0),
        (Cursor(boot=BOOT, source="kmsg", position=3722), 10),
        (Cursor(boot="another", source="kmsg", position=3732), None),
        (Cursor(boot=BOOT, source="dmesg", position=3732), None),
    ],
)
def test_lines_that_were_overwritten_are_counted(since: Cursor | None, lost: int | None) -> None:
    """Only within one log of one boot; the cursor for next time is its last number."""
    log = told(wants=replace(ALL_PARTS_REQUEST, since=since)).kernel
    assert isinstance(log, KernelLog)
    assert log.lost == lost
    assert log.cursor == Cursor(boot=BOOT, source="kmsg", position=3734)
    assert (log.lines[1].level, log.lines[1].text[:9]) == (3, "NVRM: Xid")


def journaled(
    text: str | list[int], *, at: int = 1_500_000, level: str = "6", facility: str = "0"
) -> str:
    """A line of `journalctl -o json`; journald noted it 2 ms after the kernel."""
    record = {"__MONOTONIC_TIMESTAMP": f"{at + 2000}", "_SOURCE_MONOTONIC_TIMESTAMP": f"{at}"}
    record |= {"PRIORITY": level, "SYSLOG_FACILITY": facility}
    return json.dumps({**record, "MESSAGE": text, "_TRANSPORT": "kernel"})


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("syslog", "<4>[ 3987.203252] NVRM: Xid", "NVRM: Xid"),
        ("syslog", "<4>[ 3987.203252][   T17] NVRM: Xid", "NVRM: Xid"),
        ("syslog", "<4>[ 3987.203252] [12] NVRM: Xid", "[12] NVRM: Xid"),
        ("syslog", "<4>[ 3987.203252] <3>[ 3987.203252] NVRM: Xid", "<3>[ 3987.203252] NVRM: Xid"),
        ("journal", journaled("NVRM: Xid", at=3987203252, level="4"), "NVRM: Xid"),
    ],
)
def test_logs_without_numbers_go_by_time(source: str, line: str, text: str) -> None:
    """Microseconds since boot are the cursor; what was lost cannot be known."""
    log = section("kernel", source, line).kernel
    assert isinstance(log, KernelLog)
    assert (log.lines[0].text, log.lines[0].at, log.lines[0].level) == (text, 3987.203252, 4)
    assert (log.cursor.position, log.lost) == (3987203252, None)


LOST = (
    "NVRM: The NVIDIA GPU 0000:18:00.0",
    "NVRM: (PCI ID: 10de:2901) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("kmsg", ("3,7,1500000,-;" + r"\x0a".join(LOST), "6,8,1600000,-;eth0: up")),
        ("syslog", (*(f"<4>[    1.500000] {one}" for one in LOST), "<6>[    1.600000] eth0: up")),
        (
            "indented",
            (
                "[    1.500000] " + LOST[0],
                *(f"{'':15}{one}" for one in LOST[1:]),
                "[ 1.6] eth0: up",
            ),
        ),
        ("journal", (journaled("\n".join(LOST)), journaled("eth0: up", at=1_600_000))),
    ],
)
def test_a_record_of_several_lines(source: str, lines: tuple[str, ...]) -> None:
    """As the driver prints a GPU that is lost while it is loaded: three lines in one call. It stays
    one record: of a file name that holds a newline no line is a record of its own."""
    log = section("kernel", source, *lines).kernel
    assert isinstance(log, KernelLog)
    assert [line.text for line in log.lines] == ["\n".join(LOST), "eth0: up"]
    assert [line.at for line in log.lines] == [1.5, 1.6]
    assert log.cursor.position == (8 if source == "kmsg" else 1_600_000)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"a\x09b", "a\tb"),
        (r"a\x5cx0ab", r"a\x0ab"),
        (r"a\x0", r"a\x0"),
        (r"a\xzz\x0Ab", "a\\xzz\nb"),
        ("a\\", "a\\"),
        (r"a\x1b[31m", r"a\x1b[31m"),
        (r"\x0a", "\n"),
    ],
)
def test_escapes_of_the_kernel(written: str, meant: str) -> None:
    """A broken one stays as it is, and takes nothing else with it."""
    fallen = "NVRM: Xid (PCI:0000:10:1c): 79, lost"
    log = section("kernel", "kmsg", f"3,7,15,-;{written}", f"3,8,16,-;{fallen}").kernel
    assert isinstance(log, KernelLog)
    assert [line.text for line in log.lines] == [meant, fallen]


FALLEN = "NVRM: Xid (PCI:0000:10:1c): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        # facility user: written to /dev/kmsg by a program
        ("kmsg", (f"12,7,15,-;{FALLEN}", "6,8,16,-;eth0: up")),
        # daemon, and level 3 of local7
        ("kmsg", (f"30,7,15,-;{FALLEN}", f"187,8,15,-;{FALLEN}", "6,9,16,-;eth0: up")),
        ("syslog", (f"<12>[ 1.5] {FALLEN}", "<6>[ 1.6] eth0: up")),
        ("syslog", (f"<187>[ 1.5] {FALLEN}", "<6>[ 1.6] eth0: up")),
        ("syslog", (f"<12>[ 1.6] {FALLEN}", "<6>[ 1.6] eth0: up")),
        ("journal", (journaled(FALLEN, facility="1"), journaled("eth0: up", at=1_600_000))),
        # without any facility
        ("journal", (journaled(FALLEN, facility=""), journaled("eth0: up", at=1_600_000))),
    ],
)
def test_only_what_the_kernel_said_counts(source: str, lines: tuple[str, ...]) -> None:
    """A program that writes to /dev/kmsg has another facility; the healthy control is the kernel's."""
    log = section("kernel", source, *lines).kernel
    assert isinstance(log, KernelLog)
    assert [line.text for line in log.lines] == ["eth0: up"]
    if source == "kmsg":
        since = Cursor(boot=BOOT, source="kmsg", position=6)
        again = kernel.log([source, *lines], BOOT, since)
        assert (again.lost, again.cursor.position) == (0, 8 if len(lines) == 2 else 9)


@pytest.mark.parametrize(
    ("source", "lines", "level"),
    [
        ("kmsg", (f"3,7,15,-;{FALLEN}",), 3),
        ("kmsg", (f"6,7,15,-,caller=T12;{FALLEN}",), 6),
        ("syslog", (f"<3>[    1.500000] {FALLEN}",), 3),
        ("syslog", (f"<0>[    1.500000][   T12] {FALLEN}",), 0),
        ("syslog", ("<6>[    1.400000] eth0: up", f"<4>[    1.500000] {FALLEN}"), 4),
        # two records in one microsecond: of the driver, and at two levels
        ("syslog", (f"<4>[ 1.5] {FALLEN}", f"<4>[ 1.5] {FALLEN}"), 4),
        ("syslog", ("<6>[ 1.5] eth0: up", f"<4>[ 1.5] {FALLEN}"), 4),
        ("indented", (f"[    1.500000] {FALLEN}",), None),
        ("journal", (journaled(FALLEN, level="3"),), 3),
        ("journal", (journaled(list(FALLEN.encode()), level="3"),), 3),
        ("journal", (journaled(FALLEN, level=""),), None),
    ],
)
def test_the_drivers_own_record_is_its_own(
    source: str, lines: tuple[str, ...], level: int | None
) -> None:
    """In every source, with its level where that is told."""
    log = section("kernel", source, *lines).kernel
    assert isinstance(log, KernelLog)
    assert (log.lines[-1].text, log.lines[-1].level) == (FALLEN, level)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("kmsg", (f"4,7,15,-;process 'x\\x0a{FALLEN}' started with executable stack",)),
        ("kmsg", ("4,7,15,-;oom-kill:cpuset=", f"4,8,15,c;{FALLEN}", f"4,9,15,+;{FALLEN}")),
        ("kmsg", (f"4,8,15,c;{FALLEN}", "6,9,15,-;eth0: up")),
        ("syslog", ("<4>[ 1.5] overlayfs: x", f"<4>[ 1.5] {FALLEN}")),
        ("syslog", ("<6>[ 1.5] NVRM: x[7]: segfault in x", f"<6>[ 1.5] {FALLEN}[1+1]")),
        ("syslog", ("<6>[ 1.5] x[7]: segfault in ", f"<6>[ 1.5] <3>[ 1.6] {FALLEN}[1+1]")),
        ("indented", ("[ 1.5] overlayfs: x", f"     {FALLEN}")),
        ("indented", ("[ 1.5] overlayfs: x", f"     [ 1.6] {FALLEN}")),
        ("journal", (journaled(f"overlayfs: x\n{FALLEN}"),)),
        ("journal", (journaled(f'x", "MESSAGE":"{FALLEN}'),)),
    ],
)
def test_a_newline_in_a_name_begins_no_record(source: str, lines: tuple[str, ...]) -> None:
    """Users choose the names of processes and files, and a name may hold a newline. What a piece of
    a line (flag c or +) begins with says nothing either."""
    log = section("kernel", source, *lines).kernel
    assert isinstance(log, KernelLog)
    assert not [line for line in log.lines if line.text.startswith("NVRM: Xid")]
    assert not xid.read(line.text for line in log.lines).events


def test_dmesgs_json_keeps_a_record_whole() -> None:
    """util-linux from 2.38 on, `dmesg -x --json`; broken JSON is garbage."""
    text = """{
   "dmesg": [
      {
         "fac": "kern",
         "pri": "warn",
         "time":     1.500000,
         "msg": "overlayfs: x\\nNVRM: Xid (PCI:0000:10:1c): 79, lost"
      },{
         "fac": "user",
         "pri": "err",
         "time":     1.550000,
         "msg": "NVRM: Xid (PCI:0000:10:1c): 79, lost"
      },{
         "fac": "kern",
         "pri": "err",
         "time":  1600.194323,
         "msg": "NVRM: Xid (PCI:0000:10:1c): 48, DBE"
      }
   ]
}"""
    log = kernel.log_of_json(text, BOOT, None)
    assert [(line.at, line.level, line.text[:9]) for line in log.lines] == [
        (1.5, 4, "overlayfs"),
        (1600.194323, 3, "NVRM: Xid"),
    ]
    assert [event.code for event in xid.read(line.text for line in log.lines).events] == [48]
    since = Cursor(boot=BOOT, source="dmesg", position=1_500_000)
    assert [line.level for line in kernel.log_of_json(text, BOOT, since).lines] == [3]
    with pytest.raises(StrangeLine):
        kernel.log_of_json(text[:200], BOOT, None)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("dmesg", ("[ 1.5] x[7]: segfault in ", f"[ 1.6] {FALLEN}")),
        ("dmesg", ("kern  :info  : [ 1.5] x[7]: segfault in ", f"kern  :err   : [ 1.6] {FALLEN}")),
        ("dmesg", (f"<4>[ 1.6] {FALLEN}",)),
        ("journal", ("[ 1.5] n1 kernel: x[7]: segfault in ", f"[ 1.6] n1 kernel: {FALLEN}")),
        ("journal", (journaled("eth0: up"), "[ 1.6] n1 kernel: eth1: up")),
        ("syslog", ("<6>[ 1.5] x[7]: segfault in ", f"[ 1.6] {FALLEN}")),
        ("syslog", ("<6>[ 1.5] x[7]: segfault in ", FALLEN)),
    ],
)
def test_text_for_people_is_unknown(source: str, lines: tuple[str, ...]) -> None:
    """An old dmesg begins a record at a newline in the name of a file, with any time and level."""
    assert section("kernel", source, *lines).unread_parts["kernel"].kind == "garbage"


def test_nobody_said_the_first_line_of_a_log_that_was_cut() -> None:
    """Only the last lines of a long log come, and that one may be a later line of its record."""
    lines = [f"<4>[ 1.5] {FALLEN}", *(f"<6>[{n}.0] eth0: up" for n in range(2, 5001))]
    (cut, *rest) = kernel.log(["syslog", *lines], BOOT, None).lines
    assert (cut.at, cut.text, len(rest)) == (1.5, f"\n{FALLEN}", 4999)
    assert kernel.log(["syslog", *lines[:-1]], BOOT, None).lines[0].text == FALLEN


def test_a_cursor_of_former_versions_goes_on() -> None:
    """It named dmesg, and its position is the time that syslog(2) tells: nothing is told twice."""
    since = Cursor(boot=BOOT, source="dmesg", position=1_500_000)
    lines = ["syslog", f"<4>[    1.500000] {FALLEN}", "<6>[    1.600000] eth0: up"]
    log = kernel.log(lines, BOOT, since)
    assert [line.text for line in log.lines] == ["eth0: up"]
    assert log.cursor == Cursor(boot=BOOT, source="dmesg", position=1_600_000)


def test_a_quiet_kernel_keeps_the_cursor() -> None:
    """No new line is no lost line, and the next call starts where this one did."""
    begin, _, rest = WHOLE.partition(b" 6,3733")
    quiet = begin.replace(b"kernel ok 3", b"kernel ok 1") + rest[rest.index(MARK.encode()) :]
    since = Cursor(boot=BOOT, source="kmsg", position=9000)
    log = told(quiet, replace(ALL_PARTS_REQUEST, since=since)).kernel
    assert isinstance(log, KernelLog)
    assert (log.lines, log.lost, log.cursor) == ((), 0, since)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("processes", ()),
        ("processes", ("    1     0     0 S yesterday systemd",)),
        ("processes", ("    1     0     0 S Sat Foo 21 00:58:03 2026 systemd",)),
        ("mounts", ()),
        ("mounts", ("nonsense",)),
        ("blocked", ("  120   116   120 S fuse cat",)),
        ("kernel", ()),
        ("kernel", ("printk", "6,1,2,-;x")),
        ("kernel", ("kmsg", "forged")),
        ("steps", ("saw daemons", "daemon x 12.0")),
        ("gpu_processes", ("No devices were found",)),
        ("gpus", ("<nvidia_smi_log>", "cut")),
        ("infiniband", ("mlx5_0 1 rate 400 Gb/sec (4X NDR)",)),
        ("memory", ("MemTotal: 1 kB",)),
        ("memory", ()),
        ("disk.1", ()),
        ("disk.1", ("4096 1 1 1 1 ext4",)),
        ("disk.1", ("4096 1 1 1 1 1 ext4", "4096 1 1 1 1 1 ext4")),
    ],
)
def test_a_section_of_an_unknown_form_is_garbage(name: str, lines: tuple[str, ...]) -> None:
    """Half a list is worse than none: the section is Unread and says where it went wrong."""
    unread = section(name, *lines).unread_parts
    found = unread[name] if "disk" not in name else unread["disks./tmp"]
    assert found.kind == "garbage"
    assert found.why


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("denied", "denied"),
        ("missing", "missing"),
        ("failed", "failed"),
        ("late", "late"),
        ("hung", "hung"),
        ("splendid", "garbage"),
    ],
)
def test_a_section_that_was_not_read_says_why(state: str, kind: str) -> None:
    """A state that sentinel does not know is not believed either."""
    assert section("memory", state=state).unread_parts["memory"].kind == kind


def test_a_section_with_fewer_lines_than_it_says_is_cut() -> None:
    """The count stands before the lines."""
    assert section("blocked", count=1).unread_parts["blocked"].kind == "cut"


def test_what_was_asked_and_not_answered_is_absent() -> None:
    """None means not asked for; nothing else does."""
    probe = section("memory", "MemTotal: 1 kB")
    both = told(f"{MARK} begin 1\n{MARK} end\n".encode(), ProbeRequest(parts=("memory", "steps")))
    assert (probe.steps, probe.processes) == (None, None)
    assert {u.kind for u in both.unread_parts.values()} == {"absent"}
    assert set(both.unread_parts) == {"identity", "memory", "steps"}


def test_trouble_of_the_script_is_the_reason_of_every_part() -> None:
    """No place for the lock: nothing was looked at, and each part says so."""
    out = f"{MARK} begin 1\n{MARK} trouble /run is full\n{MARK} end\n".encode()
    probe = told(out, ProbeRequest(parts=("memory",)))
    assert set(probe.unread_parts) == {"identity", "memory"}
    assert probe.unread_parts["memory"] == Unread(kind="failed", why="/run is full")


def test_names_that_could_not_be_read_leave_the_rest() -> None:
    """A hung name service costs users and command lines, not the list of processes."""
    cut = WHOLE.replace(b" commands ok 4 \n", b" commands late 0 no answer within 5 s\n")
    probe = told(cut)
    assert isinstance(probe.processes, tuple)
    assert {p.user for p in probe.processes} == {""}
    assert probe.processes[3].command == "[python (train)]"
    assert probe.unread_parts["commands"].kind == "late"


@pytest.mark.parametrize(
    "out",
    [
        b"",
        b"Last login: yesterday\n",
        WHOLE.replace(MARK.encode(), b"f" * 32),
        WHOLE.replace(b"begin 1", b"begin 2"),
        WHOLE.replace(b"begin 1", b"begin"),
    ],
)
def test_what_is_no_probe_is_not_read(out: bytes) -> None:
    """Another mark, another version, no mark at all."""
    with pytest.raises(NoProbe):
        told(out)


def test_nothing_a_process_prints_can_look_like_a_mark() -> None:
    """Even with the mark known, a forged section stands behind a blank and stays a line."""
    forged = f" x\n {MARK} memory ok 0\n {MARK} end\n"
    text = f"{MARK} begin 1\n{MARK} blocked ok 3\n{forged}{MARK} end\n"
    probe = told(text.encode(), ProbeRequest(parts=("blocked", "memory")))
    assert {n: u.kind for n, u in probe.unread_parts.items()} == {
        "identity": "absent",
        "blocked": "garbage",
        "memory": "absent",
    }


def test_the_first_section_of_a_name_counts() -> None:
    """A second one of the same name changes nothing."""
    again = f"{MARK} memory ok 0\n{MARK} end\n".encode()
    assert told(WHOLE.replace(f"{MARK} end\n".encode(), again)).memory == told().memory


@given(st.integers(0, len(WHOLE) - 1))
def test_an_answer_cut_at_any_byte_is_never_whole(length: int) -> None:
    """Whatever the connection swallowed, the rest is no NodeProbe."""
    with pytest.raises((CutShort, NoProbe)):
        told(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 1))
def test_what_a_cut_answer_tells_is_what_the_whole_one_told(length: int) -> None:
    """A part is as in the whole answer or Unread; the cut invents nothing."""
    try:
        told(WHOLE[:length])
    except NoProbe:
        return
    except CutShort as cut:
        whole = told()
        for name in set(whole.__struct_fields__) - {"disks", "processes", "commands"}:
            part = getattr(cut.seen, name)
            assert part == getattr(whole, name) or isinstance(part, Unread)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_raise_anything_else(noise: bytes) -> None:
    """Noise is NoProbe; noise between the marks is an unread section."""
    with pytest.raises(NoProbe):
        told(noise)
    framed = f"{MARK} begin 1\n".encode() + noise + f"\n{MARK} end\n".encode()
    assert told(framed).unread_parts


@given(
    st.sampled_from(["identity", *ALL_PARTS_REQUEST.parts, "gpus", "commands", "disk.1"]),
    st.lists(st.text(st.characters(blacklist_characters="\n", codec="utf-8"), max_size=80)),
)
def test_no_lines_make_a_section_raise(name: str, lines: list[str]) -> None:
    """Each section reads what it knows and is Unread otherwise."""
    body = "".join(f" {line}\n" for line in lines)
    text = f"{MARK} begin 1\n{MARK} {name} ok {len(lines)}\n{body}{MARK} end\n"
    told(text.encode(), replace(ALL_PARTS_REQUEST, parts=(*ALL_PARTS_REQUEST.parts, "gpus")))


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=3))
def test_a_changed_byte_makes_it_raise_nothing_else(at: int, other: bytes) -> None:
    """Line noise is at worst a part that cannot be read."""
    try:
        told(WHOLE[:at] + other + WHOLE[at + len(other) :])
    except (CutShort, NoProbe):
        return


@pytest.mark.parametrize("path", ["tmp", "", "/a\nb", "/a\0b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    """Paths travel one to a line."""
    with pytest.raises(Invalid, match="no absolute path"):
        ProbeRequest(disks=(path,))
