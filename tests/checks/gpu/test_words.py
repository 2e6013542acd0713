"""What a newer driver says in other words, fields that cannot be read, and text beside the page."""

from dataclasses import replace

import pytest

from sentinel.checks.gpu import GpuCheck
from sentinel.core.model import Finding
from sentinel.nodes.probe import Unread
from tests.checks.gpu.world import World
from tests.lab.gpus import gpus_of, nvidia_smi

NAMES = ("n1", "n2", "n3")
INFOROM = "WARNING: infoROM is corrupted at gpu 0000:20:00.0"


def page(node: int = 0, old: str = "", new: str = "", times: int = -1) -> str:
    """The page of a node with a part of it replaced, in the first `times` GPUs (-1: in all)."""
    text = nvidia_smi(gpus_of(node))
    assert not old or old in text
    return text.replace(old, new, times) if old else text


def world(*texts: str) -> World:
    here = World(GpuCheck(nodes="n[1-3]"), NAMES)
    for name, text in zip(NAMES, texts, strict=False):
        here.nodes[name].smi = text
    return here


def notes(here: World) -> dict[str, Finding]:
    return {f.subject: f for f in here.look().findings if f.subject.startswith("nvidia-smi")}


def with_field(node: int, name: str, word: str, times: int = -1) -> str:
    return page(node, "</ecc_errors>", f"<{name}>{word}</{name}></ecc_errors>", times)


def test_a_new_field_of_a_newer_driver_is_one_note_for_all_nodes() -> None:
    """24 GPUs on three nodes say it: one warning, no GPU is unknown, and what is known is judged."""
    here = world(*(with_field(n, "row_repair_exhausted", "Yes") for n in range(3)))
    sick = here.nodes["n2"].smi
    assert isinstance(sick, str)
    old = "<remapped_row_failure>No<"
    here.nodes["n2"].smi = sick.replace(old, "<remapped_row_failure>Yes<", 1)
    found = here.bad()
    assert {k: f.status.value for k, f in found.items()} == {
        "nvidia-smi ecc_errors/row_repair_exhausted: Yes": "warning",
        gpus_of(1)[0].uuid: "critical",
    }
    note = found["nvidia-smi ecc_errors/row_repair_exhausted: Yes"]
    assert "on 3 nodes, among them n1" in note.summary
    assert "sentinel does not know" in note.summary
    report = here.look()
    assert report.coverage.whole
    well = next(f for f in report.findings if f.subject == gpus_of(0)[0].uuid)
    assert well.summary.endswith("; sentinel does not know 1 of its fields")


@pytest.mark.parametrize("word", ["No", "0", "False", "Not Active", "0 us"])
def test_a_new_field_that_says_no_wakes_nobody(word: str) -> None:
    """It stands on the page; a driver's upgrade is no trouble."""
    here = world(*(with_field(n, "row_repair_exhausted", word) for n in range(3)))
    found = notes(here)
    assert [f.status.value for f in found.values()] == ["ok"]
    assert "nothing is concluded" in next(iter(found.values())).summary


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("<remapped_row_failure>No<", "<remapped_row_failure>Perhaps<", "remapped_row_failure"),
        ("<remapped_row_pending>No<", "<remapped_row_pending>Soon<", "remapped_row_pending"),
        ("<state>Completed<", "<state>Half<", "fabric/state"),
        (
            "</status>",
            "</status><health><summary>Sickly</summary></health>",
            "fabric/health/summary",
        ),
        (
            "</status>",
            "</status><health><gfm_mood>Sad</gfm_mood></health>",
            "fabric/health/gfm_mood",
        ),
        (
            "</clocks_event_reasons>",
            "<clocks_event_reason_hw_rust>Active</clocks_event_reason_hw_rust>"
            "</clocks_event_reasons>",
            "clocks_event_reason_hw_rust",
        ),
        ("</temperature>", "</temperature><memory_fault>Bad</memory_fault>", "memory_fault"),
        ("<dram_uncorrectable>0<", "<dram_uncorrectable>many<", "dram_uncorrectable"),
    ],
)
def test_an_unknown_word_is_told_and_the_other_fields_are_judged(
    old: str, new: str, field: str
) -> None:
    """In whichever field of a GPU's health: neither well nor broken."""
    text = page(0, old, new, 1).replace(">41 C<", ">86 C<", 1)
    found = world(text).bad()
    notes = [k for k in found if k.startswith("nvidia-smi")]
    assert any(field in note for note in notes), notes
    assert "86°C (warning from 85°C)" in found[gpus_of(0)[0].uuid].summary


def test_a_known_page_has_no_note() -> None:
    """The control: every form of the lab, and a fabric that says that it is well."""
    health = (
        "</status><health><summary>Healthy</summary><bandwidth>Full</bandwidth>"
        "<route_unhealthy>False</route_unhealthy><gfm_state>Connected</gfm_state>"
        "<incorrect_configuration>None</incorrect_configuration>"
        "<partition_assigned>True</partition_assigned></health>"
    )
    here = world(page(0, "</status>", health))
    assert here.look().findings
    assert notes(here) == {}
    assert here.bad() == {}
    for version in ("v10", "v11", "v12", "v13"):
        here = World(GpuCheck(nodes="n1"), ("n1",))
        here.nodes["n1"].version = version
        assert notes(here) == {}


def test_a_recovery_action_that_all_gpus_ask_for_is_a_new_word() -> None:
    """Of one GPU it is its trouble; of all of them it is the driver's new word for "none"."""
    old, new = "<gpu_recovery_action>None<", "<gpu_recovery_action>Nothing to do<"
    alone = world(page(0, old, new, 1))
    assert list(alone.bad()) == [gpus_of(0)[0].uuid]
    every = world(*(page(n, old, new) for n in range(3)))
    found = every.bad()
    assert list(found) == ["nvidia-smi gpu_recovery_action: Nothing to do"]
    assert "on 3 nodes" in next(iter(found.values())).summary


def test_a_field_that_cannot_be_read_costs_itself() -> None:
    """Not the GPU: it is looked at a second time, and a warning then. A one-shot has one look."""
    here = world(page(0, ">41 C<", ">[Unknown Error]<", 1))
    first = here.look()
    said = {f.subject: f for f in first.findings}
    assert said[gpus_of(0)[0].uuid].status.value == "ok"
    assert "could not be read once: gpu_temp: Unknown Error" in said[gpus_of(0)[0].uuid].summary
    found = here.bad()
    assert [f.status.value for f in found.values()] == ["warning"]
    assert "answers, but 1 of its fields cannot be read" in found[gpus_of(0)[0].uuid].summary
    here.nodes["n1"].smi = page(0)
    assert here.bad() == {}
    assert here.gpus is not None
    assert [e.what for e in here.gpus.read_events(gpus_of(0)[0].uuid)] == []


def test_a_gpu_of_which_nothing_measured_can_be_read_does_not_answer() -> None:
    """Heat, power and load: the names are told of a dead one too."""
    text = page(0, ">41 C<", ">[Unknown Error]<", 1)
    text = text.replace(">71.5 W<", ">ERR!<", 1).replace("<gpu_util>0 %<", "<gpu_util>ERR!<", 1)
    here = world(text)
    found = here.bad()
    assert [f.status.value for f in found.values()] == ["critical"]
    assert here.gpus is not None
    assert [e.what for e in here.gpus.read_events(gpus_of(0)[0].uuid)] == ["unreadable"]


def test_text_beside_the_page_is_told_of_the_gpu_that_it_names() -> None:
    """Before and after it; the page is judged all the same."""
    for text in (f"{page()}{INFOROM}\n", f"{INFOROM}\n{page()}"):
        found = world(text.replace(">41 C<", ">96 C<", 1)).bad()
        assert {k: f.status.value for k, f in found.items()} == {
            gpus_of(0)[0].uuid: "critical",
            gpus_of(0)[1].uuid: "warning",
        }
        assert "infoROM is corrupted" in found[gpus_of(0)[1].uuid].summary


def test_an_exit_code_beside_a_whole_page_is_told_of_the_node() -> None:
    """14: an infoROM is corrupted, and nobody says whose."""
    found = world(f"{page()}nvidia-smi ended with exit code 14: an infoROM is corrupted\n").bad()
    assert {k: f.status.value for k, f in found.items()} == {"n1": "warning"}
    harmless = world(f"Tip of the day: drink water\n{page()}")
    assert harmless.bad() == {}
    assert len(notes(harmless)) == 1


def test_a_page_that_is_cut_is_none() -> None:
    """Whatever stands around it."""
    text = page()
    for part in (text[: len(text) // 2], f"{INFOROM}\n{text[:-20]}"):
        assert {f.status.value for f in world(part).bad().values()} == {"unknown"}
    assert {f.status.value for f in world().bad().values()} == set()
    here = world()
    here.nodes["n1"].smi = Unread(kind="failed", why="something")
    assert [f.status.value for f in here.bad().values()] == ["unknown"]


def test_memory_that_cannot_be_repaired_and_repairs_that_wait() -> None:
    """Fields since R580: nvmlDeviceGetUnrepairableMemoryFlag, nvmlDeviceGetRepairStatus."""
    cases = [
        ("unrepairable_memory", "critical", "replace it (RMA)", "memory unrepairable"),
        ("channel_repair_pending", "warning", "a repair is pending (memory channel)", ""),
        ("tpc_repair_pending", "warning", "a repair is pending (TPC)", "repair pending"),
    ]
    for name, status, words, what in cases:
        for said, bad in (("Yes", True), ("No", False), ("N/A", False)):
            here = world(with_field(0, name, said, 1))
            found = here.bad()
            assert [f.status.value for f in found.values()] == ([status] if bad else [])
            assert not bad or words in next(iter(found.values())).summary
            assert here.gpus is not None
            kept = [e.what for e in here.gpus.read_events(gpus_of(0)[0].uuid)]
            assert (what in kept) == bad or not what


LEDGER = [
    ("<remapped_row_failure>No<", "<remapped_row_failure>Yes<", "v13", "remap failed"),
    ("<remapped_row_pending>No<", "<remapped_row_pending>Yes<", "v13", "remap pending"),
    ("<sram_threshold_exceeded>No<", "<sram_threshold_exceeded>Yes<", "v13", "sram threshold"),
    ("<retired_count>2<", "<retired_count>62<", "v10", "retired pages"),
    ("<pending_retirement>No<", "<pending_retirement>Yes<", "v10", "retired pending"),
    ("<dram_uncorrectable>0<", "<dram_uncorrectable>3<", "v13", "ecc uncorrected"),
]


@pytest.mark.parametrize(("old", "new", "version", "what"), LEDGER, ids=[row[-1] for row in LEDGER])
def test_each_fault_of_the_memory_reaches_the_ledger(
    old: str, new: str, version: str, what: str
) -> None:
    """Once a boot, however often it is seen; a healthy neighbour has none."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    text = nvidia_smi(gpus_of(0), version)
    assert old in text
    here.nodes["n1"].smi = text.replace(old, new, 1)
    here.look()
    here.look()
    assert here.gpus is not None
    assert [e.what for e in here.gpus.read_events(gpus_of(0)[0].uuid)] == [what]
    assert [*here.gpus.read_events(gpus_of(0)[1].uuid)] == []


def test_pages_are_retired_up_to_a_limit() -> None:
    """63 in all, single and double bit together; 62 are none."""
    for count, due in (("61", []), ("62", ["retired pages"])):
        here = World(GpuCheck(nodes="n1"), ("n1",))
        text = nvidia_smi(gpus_of(0), "v10").replace(
            "<retired_count>2<", f"<retired_count>{count}<"
        )
        here.nodes["n1"].smi = text
        here.look()
        assert here.gpus is not None
        found = {e.what for g in gpus_of(0) for e in here.gpus.read_events(g.uuid)}
        found |= {e.what for e in here.gpus.read_events("node:n1")}
        assert sorted(found) == due


def test_who_does_not_tell_its_uuid_is_not_overwritten_by_another() -> None:
    """Two GPUs without one are two."""
    gpus = [replace(g, uuid="[Unknown Error]") for g in gpus_of(0)]
    here = world(nvidia_smi(gpus))
    assert [f.status.value for f in here.bad().values()] == ["critical"]


def test_a_driver_that_calls_the_heat_otherwise_makes_no_node_unknown() -> None:
    """One note; a page in which nothing is told in a known form stays unknown."""
    new = [page(n, "gpu_temp>", "heat_of_gpu>") for n in range(3)]
    here = world(*new)
    assert list(here.bad()) == ["nvidia-smi temperature/gpu_temp: nothing"]
    assert here.look().coverage.whole
    empty = new[0].replace("gpu_util>", "load>").replace("fb_memory_usage>", "memory>")
    assert {f.status.value for f in world(empty).bad().values()} == {"unknown"}
