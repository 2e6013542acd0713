"""Each item of the proof: what is clean, what is not, and what nobody knows."""

from dataclasses import replace as dataclass_replace
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.drained.node_evidence import NodeEvidence, ProofItem, ProofRules, ReasonHistory
from sentinel.checks.drained.proof import (
    can_ask_node,
    get_expected_gpus,
    is_momentary,
    is_proven,
    prove_by_commands,
    prove_by_node,
    prove_by_slurm,
)
from sentinel.core.node_answers import (
    Answered,
    Garbage,
    HostKeyChanged,
    NotAsked,
    Partial,
    Refused,
    TimedOut,
    Unreachable,
)
from sentinel.nodes.probe import GpuProcess, NodeProbe, StepTraces, Unread
from sentinel.slurm.job_states import EXPEDITED
from tests.checks.drained.nodes import (
    CLEAN,
    GPUS,
    LEFT_SERVICE,
    NODE,
    NOW,
    RULES,
    blocked,
    kernel,
    process,
    sight,
    spoilt,
    step,
)
from tests.lab.gpus import nvidia_smi

LATE = Unread(kind="late", why="no answer within 5 s; it was ended")
HUNG = Unread(kind="hung", why="not even SIGKILL ends it", pid=99)
XID = "NVRM: Xid (PCI:0000:10:1c): {}, pid=1896, name=python"
FELL_OFF = "NVRM: GPU 0000:29:00.0: GPU has fallen off the bus."
OLD_FELL_OFF = "NVRM: fallen off the bus and is not responding to commands."
INSTALLED = "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:1e07) installed in this"
INIT = "NVRM: GPU 0000:29:00.0: RmInitAdapter failed! (0x26:0x65:1)"
RAS = (
    "amdgpu 0000:c1:00.0: amdgpu: socket: 0, die: 0, {} new {}correctable hardware errors detected"
)
SXID = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): {}, Link 32"
ALICE = process(50, 1000, "alice")


def items(seen: NodeEvidence, rules: ProofRules = RULES) -> dict[str, ProofItem]:
    return {i.name: i for i in [*prove_by_slurm(seen, rules), *prove_by_node(seen, rules)]}


def one(seen: NodeEvidence, rules: ProofRules = RULES) -> ProofItem:
    """The only item that is not good."""
    [bad] = [i for i in items(seen, rules).values() if not i.good]
    return bad


def test_a_clean_node_is_proven() -> None:
    """By all ten; an empty proof proves nothing."""
    assert all(i.good for i in items(sight()).values())
    assert len(items(sight())) == 10
    assert is_proven(list(items(sight()).values()))
    assert not is_proven([])


SPOILT = [
    (
        {"blocked": (blocked(),)},
        "blocked",
        "processes hang in the kernel (state D): cat (pid 7) in request_wait_answer (FUSE)",
    ),
    (
        {"steps": StepTraces(processes=(step(7),))},
        "steps",
        "processes left by job 12: cat (pid 7) of root",
    ),
    (
        {"steps": StepTraces(processes=(step(1),))},
        "steps",
        "processes left by job 12: init (pid 1) of root",
    ),
    ({"processes": (ALICE,)}, "users", "processes of users are left: python3 (pid 50) of alice"),
    (
        {"processes": (process(50, 1000, ""),)},
        "users",
        "processes of users are left: python3 (pid 50) of 1000",
    ),
    (
        {"gpu_processes": (GpuProcess(gpu="GPU-1", pid=9, memory=1, name="python"),)},
        "gpu processes",
        "python (pid 9) on GPU-1",
    ),
    (
        {"processes": (process(50, command="/usr/libexec/datacenter-gpu-manager/nvvs -s"),)},
        "gpu processes",
        "a diagnostic (pid 50)",
    ),
    (
        {"processes": (process(50, command="dcgmi diag -r 4"),)},
        "gpu processes",
        "a diagnostic (pid 50)",
    ),
    ({"gpus": nvidia_smi(GPUS[:1])}, "gpus", "1 of 2 there"),
    ({"kernel": kernel((-3599, XID.format(79)))}, "xids", "1 errors, the last: NVRM: Xid"),
    ({"kernel": kernel((60, FELL_OFF))}, "xids", "1 errors, the last: NVRM: GPU 0000:29"),
    ({"kernel": kernel((60, OLD_FELL_OFF))}, "xids", "1 errors, the last: NVRM: fallen"),
    ({"kernel": kernel((60, SXID.format("20034, Fatal")))}, "xids", "1 errors, the last: nvidia"),
    ({"kernel": kernel((60, SXID.format("20034, Severity 1")))}, "xids", "1 errors, the last: nv"),
    ({"kernel": kernel((60, INIT))}, "xids", "1 errors, the last: NVRM: GPU 0000:29"),
    ({"kernel": kernel((60, RAS.format(2, "un")))}, "xids", "1 errors, the last: amdgpu"),
    ({"kernel": kernel((60, SXID.format("20034, FATAL")))}, "xids", "1 errors, the last: nv"),
    (
        {"kernel": kernel((60, INSTALLED), (60, "NVRM: system has fallen off the bus and is not"))},
        "xids",
        "1 errors, the last: NVRM: system has fallen",
    ),
]


@pytest.mark.parametrize(("parts", "name", "text"), SPOILT)
def test_what_is_not_clean(parts: dict[str, Any], name: str, text: str) -> None:
    """One thing is bad, and the node is not given back."""
    bad = one(spoilt(**parts))
    assert (bad.name, bad.good) == (name, False)
    assert bad.text.startswith(text)


HARMLESS = [
    {"processes": (process(50, 999, "slurm"), process(51, 65534, "nobody"))},
    {"processes": (process(50, 1000, "alice", state="Z"),)},
    {"processes": (process(50, command="dcgmi dmon -e 155"),)},
    {"kernel": kernel((-3601, XID.format(79)), (5, XID.format(43)), (6, XID.format(45)))},
    {"kernel": kernel((5, SXID.format("12028, Non-fatal")), (5, SXID.format("20034, Data {0x0}")))},
    {"kernel": kernel((5, SXID.format("20034, Severity 0")), (5, RAS.format(2, "")))},
    {"steps": StepTraces(processes=(), blind=("environments: only root may read them",))},
]


@pytest.mark.parametrize("parts", HARMLESS)
def test_what_does_not_matter(parts: dict[str, Any]) -> None:
    """System users, the dead, Xids of programs or of long before, what only root may read."""
    assert all(i.good for i in items(spoilt(**parts)).values())


@pytest.mark.parametrize("pid", [8, 9], ids=["seconds old", "after the list"])
def test_state_d_of_this_moment_is_looked_at_again(pid: int) -> None:
    """It may be the probe's own ps: no proof, and no hang either."""
    bad = one(spoilt(blocked=(blocked(pid),)))
    assert (bad.name, bad.good) == ("blocked", None)
    assert "the next look tells: cat (pid " in bad.text
    assert one(spoilt(blocked=(blocked(pid), blocked(7)))).good is False
    older = (*CLEAN.processes, process(10, started=NOW - 4))  # type: ignore[misc]
    assert one(spoilt(blocked=(blocked(10),), processes=older)).good is False


PARTS = {
    "processes": "users",
    "blocked": "blocked",
    "steps": "steps",
    "gpu_processes": "gpu processes",
    "gpus": "gpus",
    "kernel": "xids",
}


@pytest.mark.parametrize("unread", [LATE, HUNG, None], ids=["late", "hung", "not asked"])
@pytest.mark.parametrize(("part", "name"), PARTS.items())
def test_a_part_that_was_not_read_is_not_clean(part: str, name: str, unread: Unread | None) -> None:
    """Never empty instead; the pid on the node is told where something hangs."""
    bad = one(spoilt(**{part: unread}))
    assert (bad.name, bad.good) == (name, None)
    assert ("process 99" in bad.text) is (unread is HUNG)


UNREACHED = [
    NotAsked("x"),
    Unreachable("x"),
    Refused("x"),
    HostKeyChanged("x"),
    TimedOut("x"),
    Partial(why="x", seen=CLEAN),
    Garbage("x"),
    None,
]


@pytest.mark.parametrize("answer", UNREACHED, ids=lambda a: type(a).__name__)
def test_a_node_that_did_not_answer_is_not_clean(answer: object) -> None:
    """Also where half of an answer looks as clean as can be."""
    bad = one(sight(answer=answer))
    assert (bad.name, bad.good) == ("responds", None)


def test_another_host_in_its_place_is_not_believed() -> None:
    """Its name tells; an alias is known by the boot, unless it is another node's name."""
    told = CLEAN.identity
    assert not isinstance(told, Unread)
    rules = replace(RULES, names=frozenset({"n1", "n7"}))
    alias, other = replace(told, hostname="alias"), replace(told, hostname="n7")
    for wrong in (other, replace(alias, uptime=5_000.0)):
        assert one(spoilt(identity=wrong), rules).text.endswith("answered in its place")
    for same in (replace(told, hostname="N1", uptime=1.0), alias):
        assert items(spoilt(identity=same), rules)["responds"].good


def test_nodes_that_differ_behind_the_first_dot() -> None:
    """The full name counts where it is another node's."""
    told = CLEAN.identity
    assert not isinstance(told, Unread)
    rules = replace(RULES, names=frozenset({"n1.east", "n1.west"}))
    node = replace(NODE, name="n1.east")
    for name, good in (("n1.east", True), ("n1", True), ("n1.west", False)):
        probe = replace(CLEAN, identity=replace(told, hostname=name))
        assert items(sight(node, answer=probe), rules)["responds"].good is good
        more = replace(rules, names=rules.names | {"n9"})  # which has no part in it
        assert items(sight(node, answer=probe), more)["responds"].good is good
    # Of another boot, what both names begin with may be the other one's.
    for name, good in (("n1", False), ("n1.west.site", False), ("n1.east.site", True)):
        probe = replace(CLEAN, identity=replace(told, hostname=name, uptime=5_000.0))
        assert items(sight(node, answer=probe), rules)["responds"].good is good


def test_a_flag_that_nobody_knows_is_no_proof() -> None:
    """A Slurm that is newer than this sentinel may mean anything by it."""
    for flags in ({"DRAIN", "CLOUD"}, {"DRAIN", "RESERVED", "PLANNED", "DYNAMIC_NORM"}):
        assert all(i.good for i in items(sight(replace(NODE, flags=frozenset(flags)))).values())
    bad = one(sight(replace(NODE, flags=frozenset({"DRAIN", "QUARANTINED"}))))
    assert (bad.name, bad.good) == ("drained", None)


SLURM = [
    ({"state": "DOWN"}, "drained", "it is DOWN"),
    ({"state": "MIXED"}, "drained", "jobs still run there (MIXED+DRAIN)"),
    ({"flags": frozenset({"DRAIN", "COMPLETING"})}, "drained", "it is IDLE and COMPLETING"),
    ({"flags": frozenset({"DRAIN", "NOT_RESPONDING"})}, "drained", "it is IDLE and NOT_RESPONDING"),
    ({"reason": "Kill task failed, RMA GPU3"}, "history", "its reason goes on with somebody's"),
    ({"reason_user": "alice"}, "history", "its reason was given by alice, not by Slurm"),
]


@pytest.mark.parametrize(("fields", "name", "text"), SLURM)
def test_what_slurm_says_against_it(fields: dict[str, Any], name: str, text: str) -> None:
    """Drained is not draining; a person's note is never lost."""
    bad = one(sight(replace(NODE, **fields)))
    assert (bad.name, bad.good) == (name, False)
    assert bad.text.startswith(text)


def test_a_maintenance_reservation_and_a_missing_ledger() -> None:
    """The one is not to be touched, the other proves nothing."""
    reserved = sight(replace(NODE, flags=frozenset({"DRAIN", "MAINTENANCE"})))
    for node, is_free, word in ((reserved, False, "a"), (sight(NODE), True, "no")):
        item = items(node)["reservation"]
        assert (item.good, item.text) == (is_free, f"in {word} maintenance reservation")
    assert not can_ask_node(reserved)
    assert one(sight(readings=None)) == ProofItem(
        name="history", good=None, text="unknown: this command does not read the service's records"
    )


def test_a_node_that_was_drained_while_nobody_looked() -> None:
    """What its reason replaced is known by a log of slurmctld alone, and only where that goes back
    to when the node was at work; nobody guesses."""
    before_us = replace(LEFT_SERVICE, left=None)
    tail = ReasonHistory(("Kill task failed",), whole=False)
    for readings in ((), (before_us,), (before_us, before_us)):
        for log in (ReasonHistory(), tail):
            item = one(sight(readings=readings, history=log))
            assert (item.name, item.good) == ("history", None)
        whole = sight(readings=readings, history=replace(tail, whole=True))
        assert all(i.good for i in items(whole).values())


def test_a_reason_that_was_there_before_is_no_reason_of_now() -> None:
    """Newer Slurms without accounting keep it, whatever drains the node the next time."""
    kept = replace(
        LEFT_SERVICE,
        out=False,
        left=None,
        reason=NODE.reason,
        user=NODE.reason_user,
        reason_time=NODE.reason_time,
    )
    item = one(sight(readings=(LEFT_SERVICE, kept)))
    assert (item.name, item.good) == ("history", False)
    assert item.text.startswith("its reason is an older one")


def test_users_who_may_be_there() -> None:
    """`ignore_users` are not strangers, and `first_uid` is the site's."""
    seen = spoilt(processes=(ALICE,))
    for rules in (
        replace(RULES, ignore_users=frozenset({"alice"})),
        replace(RULES, first_uid=1001),
    ):
        assert all(i.good for i in items(seen, rules).values())


def test_a_blind_witness_counts_where_users_are_there() -> None:
    """Without root nobody knows whose job an ignored user's process inherited."""
    steps = StepTraces(processes=(), blind=("environments: only root may read them",))
    rules = replace(RULES, ignore_users=frozenset({"alice"}))
    assert one(spoilt(steps=steps, processes=(ALICE,)), rules).name == "steps"
    daemons = StepTraces(processes=(), blind=("daemons: nothing was said of them",))
    assert one(spoilt(steps=daemons)).name == "steps"


SICK = [
    ({"trouble": "GPU is lost"}, "does not answer properly"),
    ({"recovery": "Reset"}, "the driver asks for: Reset"),
    ({"recovery": "Dance"}, "the driver asks for 'Dance'"),
    ({"failed": True}, "row remapping failed"),
    ({"pending": True}, "a row remapping is pending"),
    ({"fabric": ("In Progress", "N/A")}, "its NVLink fabric is not ready (In Progress)"),
]


@pytest.mark.parametrize(("fields", "text"), SICK)
def test_a_gpu_that_is_listed_may_be_broken(fields: dict[str, Any], text: str) -> None:
    """What the driver says of it counts as in the check of GPUs; an idle node can be reset."""
    bad = one(spoilt(gpus=nvidia_smi([GPUS[0], dataclass_replace(GPUS[1], **fields)])))
    assert (bad.name, bad.good) == ("gpus", False)
    assert bad.text.startswith(f"{GPUS[1].uuid}: {text}")


HEALTH = "</status><health><summary>{}</summary><bandwidth>{}</bandwidth></health>"
ODD = [
    ("</status>", HEALTH.format("Unhealthy", "Full"), False, "its NVLink fabric is not ready"),
    ("</status>", HEALTH.format("Healthy", "Degraded"), False, "its NVLink fabric is not ready"),
    ("</status>", HEALTH.format("Sickly", "Full"), None, "fabric/health/summary says 'Sickly'"),
    ("</status>", HEALTH.format("Healthy", "Full"), True, "2 of 2 there"),
    ("</volatile>", "</volatile><tpc_repair_pending>Yes</tpc_repair_pending>", False, "a repair"),
    ("</volatile>", "</volatile><tpc_repair_pending>No</tpc_repair_pending>", True, "2 of 2"),
    ("</volatile>", "</volatile><unrepairable_memory>Yes</unrepairable_memory>", False, "its memo"),
    (">71.5 W<", ">[Unknown Error]<", None, "not read: instant_power_draw: Unknown Error"),
]


@pytest.mark.parametrize(("old", "new", "good", "text"), ODD)
def test_what_cannot_be_told_of_a_gpu_proves_nothing(
    old: str, new: str, good: bool | None, text: str
) -> None:
    """Words that are not known here and fields that cannot be read; known good ones are the control."""
    page = nvidia_smi(GPUS)
    assert old in page
    item = items(spoilt(gpus=page.replace(old, new, 1)))["gpus"]
    assert item.good is good
    assert text in item.text


def test_a_node_of_slices_with_no_gpu_is_not_clean() -> None:
    """With MIG Slurm does not say how many GPUs there are: one at least has to be there."""
    node = replace(NODE, gres="gpu:a100_1g.5gb:14")
    for gpus, good in ((GPUS[:1], True), (GPUS[:0], False)):
        item = items(sight(node, answer=replace(CLEAN, gpus=nvidia_smi(gpus))))["gpus"]
        assert (item.good, item.text) == (good, f"{len(gpus)} of at least one there")


def test_old_errors_of_a_gpus_memory_do_not_matter() -> None:
    """A warning of the check of GPUs is no reason to keep a node out."""
    hit = dataclass_replace(GPUS[1], ecc={"dram_uncorrectable": 1}, life={"dram_uncorrectable": 1})
    assert all(i.good for i in items(spoilt(gpus=nvidia_smi([GPUS[0], hit]))).values())


def test_half_a_page_of_nvidia_smi_proves_nothing() -> None:
    """Its beginning lists as many GPUs as there should be."""
    page = nvidia_smi(GPUS)
    assert one(spoilt(gpus=page[: page.rindex("</gpu>")])).good is None


def test_a_clock_that_is_behind_hides_no_error() -> None:
    """The node's or sentinel's: the later of the two counts."""
    told = CLEAN.identity
    assert not isinstance(told, Unread)
    late = kernel((-3000, XID.format(79)))
    for seconds in (-3000, 0, 3000):
        off = replace(told, time=told.time + seconds)
        assert one(spoilt(identity=off, kernel=late)).name == "xids"


def test_an_empty_kernel_log_proves_nothing() -> None:
    """Somebody has cleared it (dmesg -C)."""
    empty = replace(kernel(), lines=())
    assert one(spoilt(kernel=empty)).text == "the kernel's log is empty"


def test_a_kernel_log_that_is_too_short_proves_nothing() -> None:
    """It was overwritten since the drain."""
    log = kernel((1, "eth0: link up"))
    short = replace(log, lines=log.lines[1:])
    assert one(spoilt(kernel=short)).text == "the kernel's log does not go back to the drain"
    assert all(i.good for i in items(spoilt(kernel=short), replace(RULES, xids=False)).values())


def test_a_node_without_gpus_needs_none() -> None:
    """nvidia-smi is missing there, rightly."""
    missing = Unread(kind="missing", why="nvidia-smi is not installed")
    probe: NodeProbe = replace(CLEAN, gpu_processes=missing, gpus=missing, kernel=missing)
    assert all(i.good for i in items(sight(replace(NODE, gres=""), answer=probe)).values())


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("", 0),
        ("gpu:8", 8),
        ("gpu:8(S:0,2)", 8),
        ("gpu:h100:8(S:0-1)", 8),
        ("gpu:a:4,gpu:b:2,shard:16", 6),
        ("gpu", 1),
        ("shard:64", 0),
        ("gpu:1g.10gb:7", None),
        ("gpu:a100:1,gpu:nvidia_a100_3g.20gb:2", None),
        ("gpu:a100_1c.2g.20gb:2", None),
        ("gpu:rtx_4090:2", 2),
        ("gpu:h100:no_consume:8", None),
        ("gpus:8", 0),
        ("(null)", 0),
    ],
)
def test_how_many_gpus_slurm_promises(gres: str, count: int | None) -> None:
    """MIG slices are no GPUs: then one has to be there, or `expect_gpus` says."""
    assert get_expected_gpus(gres) == count
    assert get_expected_gpus(gres, 4) == 4


@pytest.mark.parametrize(
    ("answer", "good", "text"),
    [
        (Answered(code=0, out=b"OK\n"), True, "exit code 0: OK"),
        (
            Answered(code=1, err=b"a\nERROR: nhc: check_fs\n"),
            False,
            "exit code 1: ERROR: nhc: check_fs",
        ),
        (TimedOut("no answer within 30s"), None, "did not end: no answer within 30s"),
        (None, None, "runs only after all else is proven"),
    ],
)
def test_a_configured_proof(answer: object, good: bool | None, text: str) -> None:
    """NHC or a quick diag: 0 is good, anything else is not, silence is neither."""
    rules = replace(RULES, proofs=("nhc",))
    seen = sight(ran={} if answer is None else {"nhc": answer})
    wanted = ProofItem(name="nhc", good=good, text=text, moment=answer is None)
    assert prove_by_commands(seen, rules) == [wanted]


@pytest.mark.parametrize(("number", "good"), [(13, 1), (31, 1), (43, 1), (45, 1), (48, 0), (79, 0)])
def test_which_xids_are_of_a_program(number: int, good: int) -> None:
    """Its own faults, and its being killed; all others are the device's."""
    found = items(spoilt(kernel=kernel((5, XID.format(number)))))["xids"]
    assert found.good is bool(good)


@pytest.mark.parametrize(("begins", "good"), [(0.0, True), (60.0, True), (60.5, None)])
def test_a_log_that_begins_with_the_boot_is_whole(begins: float, good: bool | None) -> None:
    """Within its first minute; the node booted shortly before it was drained."""
    assert CLEAN.identity is not None
    young = replace(CLEAN.identity, uptime=1000.0)  # type: ignore[type-var]
    log = kernel()
    log = replace(log, lines=(replace(log.lines[0], at=begins),))
    assert items(spoilt(kernel=log, identity=young))["xids"].good is good


def test_how_many_gpus_are_sick_is_told() -> None:
    """The first by its words, the others by their number."""
    sick = [dataclass_replace(gpu, failed=True) for gpu in GPUS]
    assert items(spoilt(gpus=nvidia_smi(sick)))["gpus"].text.endswith("(and 1 more)")
    one_of_them = items(spoilt(gpus=nvidia_smi([GPUS[0], sick[1]])))["gpus"]
    assert one_of_them.good is False
    assert "more)" not in one_of_them.text


@pytest.mark.parametrize(
    ("since", "person"),
    [
        (None, False),
        (NOW + 10**9, False),
        (NOW - int(EXPEDITED) + 1, False),
        (NOW - int(EXPEDITED), True),
        (0, True),
    ],
)
def test_a_job_that_expedites_there_keeps_it_out(since: int | None, person: bool) -> None:
    """After a while it needs a person; where nobody knows since when it is only said."""
    node = replace(NODE, reason_time=since)
    found = items(sight(node, expediting=("7", "8")))["drained"]
    assert (found.good, "it needs a person" in found.text) == (False, person)
    assert found.text.startswith("job 7, 8 is EXPEDITING there")


def test_an_sxid_of_which_nobody_knows_how_bad_it_is_counts() -> None:
    """What is not told to be harmless is not."""
    found = items(spoilt(kernel=kernel((5, SXID.format("99999, Something new")))))["xids"]
    assert found.good is False


GOOD, BAD = ProofItem(name="a", good=True, text=""), ProofItem(name="b", good=False, text="")
SOON = ProofItem(name="c", good=None, text="", moment=True)


@pytest.mark.parametrize(
    ("found", "momentary"),
    [([GOOD], False), ([GOOD, SOON], True), ([SOON, BAD], False), ([BAD], False)],
)
def test_what_the_next_look_may_prove(found: list[ProofItem], momentary: bool) -> None:
    """Only where all that is missing is of this moment."""
    assert is_momentary(found) is momentary


@pytest.mark.parametrize(
    ("state", "flag", "may"),
    [("IDLE", "DRAIN", True), ("DOWN", "DRAIN", False), ("IDLE", "NOT_RESPONDING", False)],
)
def test_who_can_be_asked(state: str, flag: str, may: bool) -> None:
    assert can_ask_node(sight(replace(NODE, state=state, flags=frozenset({flag})))) is may


def test_of_many_five_are_named_and_the_rest_is_counted() -> None:
    many = tuple(GpuProcess(gpu="G", pid=n, memory=1, name="") for n in range(7))
    named = ", ".join(f"a process (pid {n}) on G" for n in range(5))
    assert one(spoilt(gpu_processes=many)).text == named
    pids = range(100, 107)
    tasks = tuple(blocked(pid) for pid in pids)
    for count, more in ((5, ""), (6, " and 1 more"), (7, " and 2 more")):
        old = (*CLEAN.processes, *(process(pid) for pid in pids))  # type: ignore[misc]
        text = one(spoilt(processes=old, blocked=tasks[:count])).text
        assert text.count("cat (pid ") == 5
        assert text.endswith(f"in request_wait_answer (FUSE){more}")


@pytest.mark.parametrize("part", ["processes", "identity"])
def test_a_task_in_state_d_of_unknown_age_hangs(part: str) -> None:
    """Where nobody knows how old it is, it is not taken for the probe's own."""
    found = items(spoilt(blocked=(blocked(8),), **{part: LATE}))
    assert found["blocked"].good is False


@pytest.mark.parametrize(
    ("off", "same"), [(0, True), (119, True), (-119, True), (120, False), (-120, False)]
)
def test_an_alias_is_known_by_its_boot_to_two_minutes(off: int, same: bool) -> None:
    """slurmd and the node do not count it to the second; a node without a boot time has no alias."""
    told = CLEAN.identity
    assert not isinstance(told, Unread)
    alias = replace(told, hostname="alias", uptime=told.uptime + off)
    assert items(spoilt(identity=alias))["responds"].good is same
    unbooted = sight(replace(NODE, boot_time=None), answer=replace(CLEAN, identity=alias))
    assert items(unbooted)["responds"].good is False


def test_an_xid_of_an_hour_before_the_drain_counts() -> None:
    """To the second; where the drain's time is unknown nobody knows since when to look."""
    assert one(spoilt(kernel=kernel((-3600, XID.format(79))))).good is False
    undated = items(sight(replace(NODE, reason_time=None)))["xids"]
    assert (undated.good, undated.text) == (None, "not known since when to look")
    unknown = items(spoilt(identity=LATE))["xids"]
    assert (unknown.good, unknown.text) == (None, "not known since when to look")


def test_a_log_that_begins_an_hour_before_the_drain_is_whole() -> None:
    for begins, good in ((-3600.0, True), (-3599.0, None)):
        log = kernel((begins, "eth0: link up"))
        short = replace(log, lines=log.lines[1:])
        assert items(spoilt(kernel=short))["xids"].good is good


def test_why_no_xid_was_looked_for_is_said() -> None:
    assert items(sight(), replace(RULES, xids=False))["xids"].text == "switched off"
    assert items(sight(replace(NODE, gres="")))["xids"].text == "not asked for"


def test_long_lines_are_cut() -> None:
    """Of the kernel at 160 characters, of a command at 200, of its last line."""
    long = XID.format(79) + "x" * 500
    told = one(spoilt(kernel=kernel((5, long)))).text.removeprefix("1 errors, the last: ")
    assert len(told) == 160
    seen = sight(ran={"nhc": Answered(code=1, out=b"first\n" + b"y" * 500)})
    [item] = prove_by_commands(seen, replace(RULES, proofs=("nhc",)))
    assert len(item.text.removeprefix("exit code 1: ")) == 200


@pytest.mark.parametrize(("field", "text"), [("remapped", "a row"), ("retired", "a page")])
def test_what_waits_for_a_reset_keeps_the_node_out(field: str, text: str) -> None:
    """An idle node can have the reset now; the ends of pending repairs are good."""
    page = nvidia_smi([GPUS[0], dataclass_replace(GPUS[1], pending=True)])
    if field == "retired":
        rows = page[page.rindex("<remapped_rows>") : page.rindex("</remapped_rows>")]
        old = "<pending_retirement>Yes</pending_retirement>"
        pages = f"<retired_pages>{old}</retired_pages><remapped_rows>N/A"
        page = page.replace(rows, pages)
    bad = one(spoilt(gpus=page))
    assert (bad.name, bad.good) == ("gpus", False)
    assert text in bad.text


def test_a_node_that_ends_a_job_has_no_reason_to_lose() -> None:
    """Drained as well, its reason counts as that of every other."""
    other = {"reason": "RMA", "reason_user": "alice"}
    undrained = replace(NODE, flags=frozenset({"COMPLETING"}), **other)
    assert items(sight(undrained, completing=700.0))["history"].good
    assert items(sight(undrained))["history"].good is False
    assert items(sight(replace(NODE, **other), completing=700.0))["history"].good is False
