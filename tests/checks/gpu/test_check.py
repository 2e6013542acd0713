"""What a pass over nodes says of their GPUs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as replace_node

from sentinel.checks.gpu import GpuCheck, words
from sentinel.checks.gpu.judge import CRIT, WARN, Limits, problems
from sentinel.core.actions import ActionOutcome, ActionRecord, NodeReading
from sentinel.core.cluster import JobEnd, Node
from sentinel.core.errors import CannotTell, Invalid, StoreError
from sentinel.core.gpu_ledger import LedgerEntry
from sentinel.core.guidance import DRAIN_STEP
from sentinel.core.model import Status
from sentinel.core.values import clock_text
from sentinel.gpu.smi import parse
from sentinel.nodes.probe import Unread
from sentinel.testing import START, context
from tests.checks.gpu.world import UPTIME, World, job
from tests.kinds import looks
from tests.lab.gpus import gpus_of, moved, nvidia_smi
from tests.store.gpu_memory import MemoryGpus

MB = 10**6


def world(*names: str, **settings: Any) -> World:
    return World(GpuCheck(nodes="all", **settings), names or ("n1",))


def uuid(number: int, node: int = 0) -> str:
    return gpus_of(node)[number].uuid


def test_healthy_gpus_are_fine_each_by_itself() -> None:
    """Eight findings a node, with their numbers; the ledger knows them all."""
    here = world("n1", "n2")
    report = here.look()
    assert len(report.findings) == 16
    assert {f.status for f in report.findings} == {Status.OK}
    first = report.findings[0]
    assert (first.subject, first.summary) == (uuid(0), "41°C, 71.5 W, 0%")
    assert first.values["temperature_c"] == 41
    assert first.labels == {"node": "n1"}
    assert here.gpus is not None
    assert len(here.gpus.read_entries()) == 16
    assert ("temperature_c", 41.0) in {(s.name, s.value) for s in report.samples}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"temperature": 84}, None, ""),
        ({"temperature": 85}, "warning", "temperature 85°C (warning from 85°C)"),
        ({"temperature": 95}, "critical", "temperature 95°C (critical from 95°C)"),
        ({"pending": True}, "warning", "reset it when it is idle"),
        ({"failed": True}, "critical", "row remapping failed"),
        ({"remapped": (0, 511)}, None, ""),
        ({"remapped": (0, 512)}, "critical", "spare rows"),
        ({"ecc": {"dram_uncorrectable": 2}}, "warning", "2 uncorrectable"),
        ({"ecc": {"dram_correctable": 900}}, None, ""),
        ({"life": {"sram_uncorrectable_parity": 4}}, None, ""),
        ({"life": {"sram_uncorrectable_parity": 5}}, "warning", "5 uncorrectable SRAM"),
        ({"recovery": "Reset"}, "critical", "the driver asks for: Reset"),
        ({"recovery": "Reboot"}, "critical", "the driver asks for: Reboot"),
        ({"recovery": "Dance"}, "warning", "sentinel does not know"),
        ({"recovery": "N/A"}, None, ""),
        ({"throttled": ("gpu_idle", "sw_power_cap")}, None, ""),
        ({"throttled": ("hw_thermal_slowdown",)}, "warning", "slowed down"),
        ({"trouble": "GPU is lost"}, "critical", "does not answer properly"),
        ({"trouble": "[Unknown Error]"}, None, ""),
        ({"fabric": ("Completed", "Insufficient Resources")}, "warning", "Insufficient Resources"),
        ({"fabric": ("In Progress", "N/A")}, "warning", "its NVLink fabric is not well"),
    ],
)
def test_what_a_gpu_says_of_itself(changes: Any, status: str | None, words: str) -> None:
    """Thresholds on both sides; NVIDIA's recovery action; what the driver cannot read."""
    here = world()
    here.nodes["n1"].gpus[3] = replace(here.nodes["n1"].gpus[3], **changes)
    found = here.bad()
    if status is None:
        assert found == {}
    else:
        assert [(k, f.status.value) for k, f in found.items()] == [(uuid(3), status)]
        assert words in found[uuid(3)].summary


def test_old_drivers_say_it_by_retired_pages() -> None:
    """Before Ampere; a pending retirement is a reset."""
    here = world()
    here.nodes["n1"].version = "v10"
    here.nodes["n1"].gpus[0] = replace(here.nodes["n1"].gpus[0], pending=True)
    assert "retirement is pending" in here.bad()[uuid(0)].summary


@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_missing_gpu_is_named(with_ledger: bool) -> None:
    """With its slot and when it was seen last; from the ledger, or from the last run."""
    here = world()
    here.gpus = here.gpus if with_ledger else None
    here.look()
    lost = here.nodes["n1"].gpus.pop(5)
    at = here.clock.now().wall / 1e6
    seen = clock_text(at, at)
    for seconds in (300, 300):
        found = here.bad(seconds)
        assert list(found) == [lost.uuid]
        assert found[lost.uuid].summary == (
            f"GPU missing: 7 of 8 GPUs on n1 are there (slot {lost.address}, last seen {seen})"
        )
    here.nodes["n1"].gpus.insert(5, lost)
    assert here.bad() == {}


def test_of_all_nodes_those_without_gpus_in_slurm_are_not_meant() -> None:
    """A login or CPU node in Slurm is not asked for GPUs; where no node has Gres all are."""
    here = world("n1", "cpu1")
    here.listed["cpu1"] = Node(name="cpu1", state="IDLE", gres="")
    here.nodes["cpu1"].smi = Unread(kind="tool", why="no nvidia-smi")
    report = here.look()
    assert {f.labels["node"] for f in report.findings} == {"n1"}
    assert report.coverage.whole
    assert report.coverage.meant == 1
    here.listed["n1"] = Node(name="n1", state="IDLE", gres="")
    assert here.look().coverage.meant == 2


def test_a_missing_gpu_nobody_ever_saw() -> None:
    """The node is the subject then; Slurm's Gres says how many there have to be."""
    here = world()
    here.nodes["n1"].gpus.pop()
    found = here.bad()
    assert (
        found["n1"].summary
        == "1 missing: 7 of 8 GPUs on n1 are there; the missing ones were never seen here, so their UUIDs are not known"
    )
    assert DRAIN_STEP in found["n1"].guidance.todo
    assert looks(found["n1"])[-1].startswith("sentinel nodes drain n1 --reason '1 missing")
    here.check = GpuCheck(nodes="all", expect=7)
    assert here.bad() == {}


def test_a_gpu_that_was_replaced_is_not_the_missing_one() -> None:
    """Another sits in its slot; the one whose slot is empty is missed."""
    here = world()
    here.look()
    node = here.nodes["n1"]
    node.gpus[0] = replace(node.gpus[0], uuid="GPU-new")
    lost = node.gpus.pop(5)
    assert list(here.bad()) == [lost.uuid]


def test_gpus_that_went_with_their_machine_are_not_missed() -> None:
    """A VM made anew has others; eight of eight."""
    here = world()
    here.look()
    here.nodes["n1"].gpus = list(gpus_of(9))
    assert here.bad() == {}


@pytest.mark.parametrize(
    ("smi", "status", "words"),
    [
        (Unread(kind="hung", why="an earlier one does not end"), "critical", "hangs"),
        (Unread(kind="late", why="no answer within 10 s"), "critical", "hangs"),
        (Unread(kind="failed", why="exit code 6: No devices were found"), "critical", "No devices"),
        (Unread(kind="failed", why="exit code 255: what?"), "unknown", "what?"),
        (Unread(kind="missing", why="nvidia-smi is not installed"), "unknown", "not installed"),
        ("<?xml version='1.0'?><nvidia_smi_log>", "unknown", "no whole XML"),
    ],
)
def test_an_nvidia_smi_that_says_nothing(smi: Any, status: str, words: str) -> None:
    """A hang and a driver without devices are bad; what could not be asked is unknown, and nobody
    drains a node for that."""
    here = world()
    here.nodes["n1"].smi = smi
    found = here.bad()
    assert (list(found), found["n1"].status.value) == (["n1"], status)
    assert words in found["n1"].summary
    drains = any("nodes drain" in command for command in looks(found["n1"]))
    assert drains == (status == "critical")


def test_silent_nodes_and_closed_logs_are_unknown() -> None:
    """Never fine; the others are judged."""
    here = world("n1", "n2")
    here.nodes["n1"].gone = True
    here.nodes["n2"].kernel = Unread(kind="denied", why="dmesg_restrict")
    assert {k: f.status.value for k, f in here.bad().items()} == {"n1": "unknown", "n2": "unknown"}


def test_without_a_way_to_nodes_it_is_blind() -> None:
    """As a whole."""
    with pytest.raises(CannotTell):
        GpuCheck(nodes="n1").run(context())


@pytest.mark.parametrize(
    ("code", "status"),
    [(13, None), (31, None), (43, None), (45, None), (94, None), (92, None), (63, "warning"),
     (999, "warning"), (48, "critical"), (79, "critical"), (119, "critical")],
)  # fmt: skip
def test_xids_by_what_they_demand(code: int, status: str | None) -> None:
    """What a program can cause is no trouble of the device."""
    here = world()
    here.nodes["n1"].xid(code)
    found = here.bad()
    assert {k: f.status.value for k, f in found.items()} == ({uuid(0): status} if status else {})
    if status:
        assert found[uuid(0)].summary.partition(" at ")[0].endswith(f" (Xid {code}")


def test_an_xid_stays_bad_until_it_is_mended() -> None:
    """It is in the log once; a boot, NVIDIA's own word, a person or time end it."""
    here = world(remember=3600.0)
    node = here.nodes["n1"]
    node.xid(48)
    assert list(here.bad()) == [uuid(0)]
    assert list(here.bad()) == [uuid(0)]
    node.reboot()
    assert here.bad() == {}
    node.xid(48)
    assert list(here.bad()) == [uuid(0)]
    assert here.gpus is not None
    here.gpus.set_mark(uuid(0), "", "replaced", "root", here.clock.now())
    assert here.bad() == {}
    node.xid(74)
    assert list(here.bad()) == [uuid(0)]
    assert here.bad(3700) == {}


def test_what_somebody_says_never_happened_is_over() -> None:
    """That event alone, and not one that comes after; a GPU that only such lines named is gone."""
    here = world()
    node = here.nodes["n1"]
    node.xid(74)
    node.xid(79)
    fake = "GPU-11111111-2222-3333-4444-555555555555"
    node.say(f"NVRM: GPU at PCI:0000:9b:00: {fake}")
    node.say("NVRM: Xid (PCI:0000:9b:00): 48, DBE")
    assert set(here.bad()) == {uuid(0), fake}
    assert here.gpus is not None
    for subject, what in ((uuid(0), "xid 79"), (fake, "xid 48")):
        assert here.gpus.forget_events(subject, {what}, 0, "forged", "root", here.clock.now()) == 1
    found = here.bad()
    assert list(found) == [uuid(0)]
    assert "Xid 74" in found[uuid(0)].summary
    assert "Xid 79" not in found[uuid(0)].summary
    node.xid(79)
    assert "Xid 79" in here.bad()[uuid(0)].summary
    assert "Xid 79" in here.bad()[uuid(0)].summary


def test_a_reset_is_seen_by_the_drivers_own_word() -> None:
    """Recovery action None ends what a reset mends; while a remapping is pending it does not."""
    here = world()
    node = here.nodes["n1"]
    assert here.gpus is not None
    here.gpus.set_mark(
        uuid(0), "good", "of it the ledger is not asked here", "me", here.clock.now()
    )
    node.gpus[0] = replace(node.gpus[0], recovery="Reset", pending=True)
    node.xid(95)
    assert "Xid 95" in here.bad()[uuid(0)].summary
    node.gpus[0] = replace(node.gpus[0], recovery="None")
    assert "Xid 95" in here.bad()[uuid(0)].summary
    node.gpus[0] = replace(node.gpus[0], pending=False)
    assert here.bad() == {}


@pytest.mark.parametrize("reset_is_due", ["xid 63", "xid 154", ""])
def test_a_reset_mends_the_memory_errors_beside_what_asked_for_it(reset_is_due: str) -> None:
    """Xid 48 and 171 with a remapped row or a recovery action; alone they wait for a person. A row
    for which there was no spare one is not mended by a reset."""
    here = world()
    node = here.nodes["n1"]
    assert here.gpus is not None
    here.gpus.set_mark(
        uuid(0), "good", "of it the ledger is not asked here", "me", here.clock.now()
    )
    node.xid(48, text="An uncorrectable double bit error (DBE) has been detected on GPU")
    node.xid(171, text="GDDR, Uncorrectable DRAM error in FBPA 3 subpartition 0")
    if reset_is_due == "xid 63":
        node.xid(63, text="Row Remapper: New row marked for remapping, reset gpu to activate.")
    if reset_is_due == "xid 154":
        node.xid(154, text="GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
    node.gpus[0] = replace(node.gpus[0], recovery="Drain and Reset", pending=True)
    assert "Xid 48" in here.bad()[uuid(0)].summary
    node.gpus[0] = replace(node.gpus[0], recovery="None", pending=True)
    assert "Xid 48" in here.bad()[uuid(0)].summary
    node.gpus[0] = replace(node.gpus[0], pending=False)
    whole = node.gpus[0]
    node.gpus[0] = replace(whole, failed=True)
    assert "Xid 48" in str(here.bad()[uuid(0)])
    node.gpus[0] = whole
    assert list(here.bad()) == ([] if reset_is_due else [uuid(0)])


def test_the_xid_of_a_mig_instance_is_its_gpus() -> None:
    """Whatever the driver adds to the address; a user's text in the log is nobody's."""
    here = world()
    node = here.nodes["n1"]
    bus = node.gpus[3].address[4:-2].lower()
    node.say(f"NVRM: Xid (PCI:{bus} GPU-I:05 GPU-CI:01): 95, pid=7, name=python, Uncontained")
    name = f"NVRM: Xid (PCI:{bus}): 79, pid=1, GPU has fallen off the bus."
    node.say(f"NVRM: Xid (PCI:[9]: segfault at 0 ip 0 sp 0 error 4 in {name}[4+1]")
    node.say(f"process 'x\n{name}' started with executable stack")
    found = here.bad()
    assert list(found) == [uuid(3)]
    assert "Xid 95" in found[uuid(3)].summary
    assert here.gpus is not None
    assert {e.what for s in here.gpus.read_entries() for e in here.gpus.read_events(s.subject)} == {
        "xid 95"
    }


def test_old_lines_of_a_log_that_was_never_read() -> None:
    """The first look at a node goes back as long as Xids are remembered, not further."""
    here = world(remember=3600.0)
    node = here.nodes["n1"]
    node.say("NVRM: Xid (PCI:0000:18:00): 48, old", UPTIME - 3700)
    node.say("NVRM: Xid (PCI:0000:20:00): 48, new", UPTIME - 3500)
    assert list(here.bad()) == [uuid(1)]


def test_a_lost_gpu_is_one_trouble() -> None:
    """Xid 79 and the missing device have one subject, whatever names it."""
    here = world()
    here.look()
    node = here.nodes["n1"]
    node.xid(79, 2)
    node.say(f"NVRM: GPU at PCI:{node.gpus[2].address[4:-2].lower()}: {uuid(2)}")
    node.gpus.pop(2)
    found = here.bad()
    assert list(found) == [uuid(2)]
    assert "7 of 8" in found[uuid(2)].summary
    assert "Xid 79" in found[uuid(2)].summary


def test_an_nvidia_smi_that_hangs_hides_nobody() -> None:
    """The driver named the GPU before its first Xid."""
    here = world()
    node = here.nodes["n1"]
    node.smi = Unread(kind="hung", why="does not end")
    node.say("NVRM: GPU at PCI:0000:9b:00: GPU-11111111-2222-3333-4444-555555555555")
    node.say("NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=nvidia-smi, Timeout")
    assert set(here.bad()) == {"n1", "GPU-11111111-2222-3333-4444-555555555555"}


def test_switches_are_troubles_of_their_node() -> None:
    """An NVSwitch is no GPU."""
    here = world()
    here.nodes["n1"].say("nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30")
    found = here.bad()
    assert (list(found), found["n1"].status.value) == (["n1"], "critical")


def test_the_ledger_counts_a_flood_once() -> None:
    """Fifty lines of an hour are one event with its count; read again they are the same."""
    here = world()
    for _ in range(50):
        here.nodes["n1"].xid(119)
    here.look()
    assert here.gpus is not None
    (event,) = here.gpus.read_events(uuid(0))
    assert (event.what, event.count, event.node) == ("xid 119", 50, "n1")
    here.memory = {}
    here.look(1)
    assert len(here.gpus.read_events(uuid(0))) == 1


def test_states_are_events_once_a_boot() -> None:
    """Pending, failed, uncorrected: not once every five minutes."""
    here = world()
    node = here.nodes["n1"]
    node.gpus[0] = replace(node.gpus[0], pending=True, ecc={"dram_uncorrectable": 1})
    for _ in range(3):
        here.look()
    assert here.gpus is not None
    assert sorted(e.what for e in here.gpus.read_events(uuid(0))) == [
        "ecc uncorrected",
        "remap pending",
    ]
    node.gpus[0] = replace(node.gpus[0], ecc={"dram_uncorrectable": 2})
    here.look()
    assert len(here.gpus.read_events(uuid(0))) == 3


def test_a_lemon_is_recognised_under_another_name() -> None:
    """In the pass that sees it there, as an alert of its own: where it was, what to do, and a
    drain where allowed."""
    here = world("n1", "n2", drain=True)
    here.look()
    assert here.gpus is not None
    here.gpus.set_mark(uuid(4), "lemon", "RMA", "root", here.clock.now())
    assert here.bad()[f"{uuid(4)}@n1"].summary.startswith("lemon (marked by hand): report it")
    here.nodes["n1"].gpus, here.nodes["n2"].gpus = list(gpus_of(7)), list(moved(gpus_of(0)))
    for _ in range(2):
        report = here.look()
        (finding,) = [f for f in report.findings if f.status is Status.CRITICAL]
        assert (finding.subject, finding.labels["node"]) == (f"{uuid(4)}@n2", "n2")
        was = f"it left n1 slot {gpus_of(0)[4].address} at "
        assert f"turned up here; {was}" in finding.summary
        assert "hold this VM until its replacement runs" in finding.summary
        assert [(r.action, r.target) for r in report.requests] == [("drain", "n2")]
    here.listed["n2"] = msgspec.structs.replace(here.listed["n2"], flags=frozenset({"DRAIN"}))
    assert here.look().requests == ()


def test_nothing_is_drained_unless_the_file_says_so() -> None:
    """A lemon is told; consent is `drain: true`."""
    here = world()
    assert here.check.grants() == {}
    assert GpuCheck(nodes="all", drain=True).grants() == {"drain": None}
    assert here.gpus is not None
    here.gpus.set_mark(uuid(4), "lemon", "RMA", "root", here.clock.now())
    assert here.look().requests == ()


def test_suspects_are_named_but_no_trouble() -> None:
    """One that was repaired does not stay bad; a lemon does."""
    here = world()
    here.nodes["n1"].xid(48)
    here.look()
    here.nodes["n1"].reboot()
    report = here.look()
    assert report.findings[0].summary == "41°C, 71.5 W, 0%, suspect (score 3.0)"
    assert report.status is Status.OK
    here.nodes["n1"].xid(64)
    assert "lemon (score 5.9)" in here.bad(86_400)[f"{uuid(0)}@n1"].summary


class Log:
    """One node was given back."""

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        return [
            ActionRecord(
                id="a1", action="undrain", target="n1", reason="", by="drained", at=START,
                outcome=ActionOutcome.DONE,
            )
        ]  # fmt: skip

    def readings(self, node: str, limit: int = 100) -> list[NodeReading]:
        return []


def test_what_slurm_says_against_nodes_is_kept() -> None:
    """Drains, exclusion lists, and jobs that ended with NODE_FAIL, of one node or of several."""
    here = world("n1", "n2")
    here.listed["n1"] = msgspec.structs.replace(
        here.listed["n1"],
        flags=frozenset({"DRAIN"}), reason="bad", reason_user="root", reason_time=1_799_999_000,
    )  # fmt: skip
    here.listed["n2"] = msgspec.structs.replace(here.listed["n2"], state="DOWN")
    here.jobs = [job("7", "n2"), job("8", "n[1-2]"), job("9", "", exclude="n1", state="PENDING")]
    here.ends = {
        "7": JobEnd(job_id="7", state="NODE_FAIL", nodes="n2"),
        "8": JobEnd(job_id="8", state="NODE_FAIL", nodes="n[1-2]", failed_node="n2"),
    }
    here.logbook = Log()
    here.look()
    here.jobs = here.jobs[2:]
    here.look()
    here.look()
    assert here.gpus is not None
    assert sorted(e.what for e in here.gpus.read_events("node:n1")) == [
        "drained",
        "excluded",
        "undrained",
    ]
    assert sorted(e.what for e in here.gpus.read_events("node:n2")) == [
        "node fail",
        "node fail alone",
    ]


def test_a_ledger_that_cannot_be_written_hides_no_trouble() -> None:
    """It is a finding of its own, and the GPUs are judged by what is seen."""

    class Broken(MemoryGpus):
        def read_entries(self, node: str = "") -> Any:
            raise StoreError("disk full")

    here = world()
    here.gpus = Broken()
    here.nodes["n1"].xid(48)
    found = here.bad()
    assert set(found) == {uuid(0), "ledger"}
    assert found["ledger"].status is Status.UNKNOWN


def test_what_is_remembered_may_be_anything() -> None:
    """Memory of another version is no reason to fail."""
    here = world()
    here.memory = {"cursors": {"n1": 7}, "open": "x", "known": {"n1": [1]}, "running": {"a": 1}}
    assert here.bad() == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": "n[1"}, "list of nodes"),
        ({"expect": 0}, "1 to 64"),
        ({"expect": 65}, "1 to 64"),
        ({"warn": Limits(temperature=96)}, "critical at 95 already"),
        ({"dmon": ["relative"]}, "absolute"),
    ],
)
def test_settings_that_make_no_sense(settings: Any, words: str) -> None:
    """Said when the file is read."""
    with pytest.raises(Invalid, match=words):
        GpuCheck(**settings)


@pytest.mark.parametrize(("gres", "expect"), [("", None), ("gpu:h100:8", None), ("", 2)])
def test_a_node_that_shows_no_gpu_at_all_proves_nothing(gres: str, expect: int | None) -> None:
    """Where nobody says how many there have to be; else they are missing."""
    here = world("n1", "n2", expect=expect)
    here.nodes["n1"].gpus = []
    here.listed = {n: replace_node(node, gres=gres) for n, node in here.listed.items()}
    report = here.look()
    bad = {f.status for f in report.findings if f.labels["node"] == "n1"}
    if gres or expect:
        assert bad == {Status.CRITICAL}
        assert report.coverage.whole
    else:
        assert bad == {Status.UNKNOWN}
        assert report.coverage.words == "saw 1 of 2 nodes: not n1"


def test_a_silent_node_is_not_covered() -> None:
    """And is not excused by one that Slurm does not hear from."""
    here = world("n1", "n2", "n3")
    here.nodes["n2"].gone = True
    here.listed["n3"] = replace_node(here.listed["n3"], state="DOWN")
    seen = here.look().coverage
    assert (seen.words, seen.status) == ("saw 1 of 3 nodes: not n[2-3]", Status.UNKNOWN)


@pytest.mark.parametrize(
    ("name", "seen", "limit"),
    [("temperature", 70, 60), ("memory_temperature", 90, 80), ("pcie_rx", 9e9, 5000)],
)
def test_each_limit_of_a_gpu_can_be_set(name: str, seen: float, limit: float) -> None:
    """What is fine by default is bad from the limit on."""
    gpu = replace_node(parse(nvidia_smi(gpus_of(0)[:1])).gpus[0], **{name: seen})
    mine = Limits(**{name: limit})
    assert list(problems(gpu, WARN, CRIT)) == []
    assert [status for status, _ in problems(gpu, mine, CRIT)] == [Status.WARNING]
    assert [status for status, _ in problems(gpu, WARN, mine)] == [Status.CRITICAL]


class WalkedEntries(list[LedgerEntry]):
    """Entries that count how often somebody goes through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[LedgerEntry]:
        WalkedEntries.walks += 1
        return super().__iter__()


class WalkedLedger(MemoryGpus):
    def read_entries(self, node: str = "") -> WalkedEntries:
        return WalkedEntries(super().read_entries(node))


def count_walks(nodes: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Through the ledger, and through all GPUs for what they ask for, in one pass."""
    counted, WalkedEntries.walks = list[object](), 0
    plain = words.widespread
    monkeypatch.setattr(words, "widespread", lambda sights: counted.append(1) or plain(sights))
    here = world(*(f"n{number}" for number in range(nodes)))
    here.gpus = WalkedLedger()
    here.look()
    monkeypatch.undo()
    return WalkedEntries.walks, len(counted)


def test_a_node_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the same for all of them is found once for all."""
    few, many = (count_walks(nodes, monkeypatch) for nodes in (2, 7))
    assert few == many
    assert min(few) > 0
