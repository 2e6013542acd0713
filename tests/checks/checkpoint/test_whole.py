"""When a checkpoint is whole: markers, ranks, shards, names, and what `latest` says."""

import getpass
import json
import os
import re
import resource
from collections.abc import Iterable, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.checkpoint import CheckpointPlace, CheckpointRule, describe_work_at_risk
from sentinel.checks.checkpoint.files import CheckpointFolder
from sentinel.checks.checkpoint.look import CheckpointLook, Memory
from sentinel.core.checkpoint_names import is_staging, parse_step_numbers
from sentinel.core.checkpoint_parts import find_missing_part
from sentinel.core.clock import shift_instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.testing import START
from sentinel.user_files.files import UserFiles
from sentinel.user_files.whose import Whose
from tests.checks.checkpoint.test_checkpoint import HOUR, NOW, check, only, run

DCP = {f"__{rank}_0.distcp": "x" * 1000 for rank in range(4)} | {".metadata": "m"}
INDEX = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})
HF = {
    "model.safetensors": "x" * 1000,
    "optimizer.pt": "o" * 2000,
    "trainer_state.json": '{"global_step": 1}',
}
SPLIT = {
    "model-1.safetensors": "x",
    "model-2.safetensors": "x",
    "model.safetensors.index.json": INDEX,
}


def write(place: Path, files: Mapping[str, str], age: float) -> None:
    """Files, and with them all folders, that were written so many seconds before START."""
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        os.utime(path, (NOW - age, NOW - age))


def without(files: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: text for name, text in files.items() if name not in names}


def step_found(folder: Path, **rule: Any) -> object:
    return only(run(check(folder, complete=CheckpointRule(**rule)))).values["step"]


@pytest.mark.parametrize(
    ("marker", "whole", "broken"),
    [
        pytest.param(".metadata", DCP, without(DCP, "__3_0.distcp"), id="a rank"),
        pytest.param(".metadata", DCP, DCP | {"__1_0.distcp": ""}, id="a shard of no byte"),
        pytest.param(".metadata", DCP, DCP | {".metadata": ""}, id="a marker of no byte"),
        pytest.param("trainer_state.json", HF, without(HF, "optimizer.pt"), id="the optimizer"),
        pytest.param("trainer_state.json", HF, HF | {"trainer_state.json": ""}, id="empty JSON"),
        pytest.param("trainer_state.json", HF, HF | {"trainer_state.json": '{"a": '}, id="cut JSON"),
        pytest.param("", SPLIT, without(SPLIT, "model-2.safetensors"), id="named by the index"),
        pytest.param(
            "", {"a-1-of-2.pt": "x", "a-2-of-2.pt": "x"}, {"a-1-of-2.pt": "x"}, id="one of two"
        ),
        pytest.param(
            "", {f"r-rank{n}.pt": "x" for n in range(3)}, {"r-rank0.pt": "x", "r-rank2.pt": "x"},
            id="a rank between others",
        ),
    ],
)  # fmt: skip
def test_what_lacks_a_part_is_not_complete(
    tmp_path: Path, marker: str, whole: Mapping[str, str], broken: Mapping[str, str]
) -> None:
    """The one before it is the newest; with the part it would be itself."""
    for step in (1, 2):
        write(tmp_path / f"step-{step}", whole, (9 - step) * HOUR)
    write(tmp_path / "step-3", broken, HOUR)
    assert step_found(tmp_path, marker=marker) == 2
    assert (
        "step-3 is not complete: "
        in only(run(check(tmp_path, complete=CheckpointRule(marker=marker)))).summary
    )
    write(tmp_path / "step-3", whole, HOUR)
    assert step_found(tmp_path, marker=marker) == 3


def test_a_rank_that_has_nothing_to_save_writes_an_empty_file(tmp_path: Path) -> None:
    """It is right where it is so in each step, also at later looks, and wrong where it was filled."""
    idle = DCP | {"__4_0.distcp": ""}
    for step in (1, 2, 3):
        write(tmp_path / f"step-{step}", idle, (9 - step) * HOUR)
    assert step_found(tmp_path, marker=".metadata") == 3
    where = CheckpointPlace(path=FilePath(tmp_path), complete=CheckpointRule(marker=".metadata"))
    told = describe_work_at_risk(where, START, None, user="root", limit=20.0)
    assert "since checkpoint step-3" in told
    checked = check(tmp_path, complete=CheckpointRule(marker=".metadata"))
    first = run(checked)
    write(tmp_path / "step-4", idle, 0)
    assert only(run(checked, now=shift_instant(START, 300), before=first)).values["step"] == 4
    write(tmp_path / "step-5", DCP | {"__3_0.distcp": ""}, 0)
    assert step_found(tmp_path, marker=".metadata") == 4


@pytest.mark.parametrize(("named", "step"), [((0, 1, 2, 3), 2), ((0, 1, 2, 3, 4), None)])
def test_the_metadata_says_which_file_has_content(
    tmp_path: Path, named: tuple[int, ...], step: int | None
) -> None:
    """In torch's pickle the names stand as they are."""
    text = " ".join(f"__{rank}_0.distcp" for rank in named)
    for number in (1, 2):
        files = DCP | {"__4_0.distcp": "", ".metadata": text}
        write(tmp_path / f"step-{number}", files, (9 - number) * HOUR)
    assert step_found(tmp_path, marker=".metadata") == step


def test_a_run_on_fewer_ranks_is_complete(tmp_path: Path) -> None:
    """Fewer files of as many bytes."""
    write(tmp_path / "step-1", DCP, 5 * HOUR)
    few = {f"__{rank}_0.distcp": "x" * 2000 for rank in range(2)} | {".metadata": "m"}
    write(tmp_path / "step-2", few, HOUR)
    assert step_found(tmp_path, marker=".metadata") == 2


def test_a_form_that_others_have_too_is_no_loss(tmp_path: Path) -> None:
    """The training saves its weights alone from now on."""
    write(tmp_path / "step-1", HF, 9 * HOUR)
    for step in (2, 3, 4):
        write(tmp_path / f"step-{step}", without(HF, "optimizer.pt"), (9 - step) * HOUR)
    assert step_found(tmp_path, marker="trainer_state.json") == 4


@pytest.mark.parametrize(
    ("anew", "complete"),
    [
        (["__0_0.distcp"], 1),
        (["__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"], 1),
        (["README.md"], 2),
        (["exported.bin"], 2),
    ],
)
def test_what_is_written_after_the_marker_is_half_a_save(
    tmp_path: Path, anew: list[str], complete: int
) -> None:
    """Saved again over itself after a rollback. A note or an export was only laid into it."""
    for step in (1, 2):
        write(tmp_path / f"step-{step}", DCP, (9 - step) * HOUR)
    write(tmp_path / "step-2", dict.fromkeys(anew, "x" * 1000), HOUR)
    assert step_found(tmp_path, marker=".metadata") == complete


def pointed(folder: Path, name: str, text: str, age: float) -> None:
    (folder / name).write_text(text)
    os.utime(folder / name, (NOW - age, NOW - age))


@pytest.mark.parametrize(
    "text",
    [
        "step-2", "step-2\n", "2", "0002", "2.0", "'2'\n", "global_step: 2.0\n", "loss: 3.0\nstep: 2.0",
        "/where/it/ran/step-2", "s3://b/run/step-2?version=9",
        '{"latest": "step-2"}', '{"last_step": 2}', 'path: "step-2"\nall: "step-1"\nall: "step-3"\n',
    ],
)  # fmt: skip
def test_latest_is_read_in_every_form(tmp_path: Path, text: str) -> None:
    for step in (1, 2, 3):
        write(tmp_path / f"step-{step}", HF, (9 - step) * HOUR)
    pointed(tmp_path, "latest", text, HOUR)
    assert step_found(tmp_path, latest="latest") == 2


def test_latest_may_be_a_link(tmp_path: Path) -> None:
    """To a folder here, by a whole path, or to one of its files."""
    for step in (1, 2, 3):
        write(tmp_path / f"step-{step}", HF, (9 - step) * HOUR)
    for target in ("step-2", str(tmp_path / "step-2"), "step-2/model.safetensors"):
        link = tmp_path / "LATEST"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        os.utime(link, (NOW, NOW), follow_symlinks=False)
        assert step_found(tmp_path, latest="LATEST") == 2


def test_what_is_younger_than_latest_is_not_complete_though_its_step_is_lower(
    tmp_path: Path,
) -> None:
    """The run began again from an earlier step, and is just saving."""
    write(tmp_path / "step-2000", HF, 20 * HOUR)
    pointed(tmp_path, "latest", "step-2000", 20 * HOUR)
    write(tmp_path / "step-1100", HF, 60)
    finding = only(run(check(tmp_path, complete=CheckpointRule(latest="latest"))))
    assert finding.values["step"] == 2000
    assert "step-1100 is not complete: it was written after latest" in finding.summary
    pointed(tmp_path, "latest", "step-1100", 0)
    assert step_found(tmp_path, latest="latest") == 1100


@pytest.mark.long
def test_what_latest_names_is_looked_into_whatever_lies_above(tmp_path: Path) -> None:
    """At the first look, in each later run, and for the message of another check."""
    for step in range(1000, 1600):
        write(tmp_path / f"step-{step}", {"w.pt": "x"}, 9 * HOUR)
    write(tmp_path / "step-7", {"w.pt": "x"}, HOUR)
    pointed(tmp_path, "latest", "step-7", HOUR)
    checked = check(tmp_path, complete=CheckpointRule(latest="latest"))
    first = run(checked)
    assert only(first).values["step"] == 7
    (tmp_path / "step-7" / "w.pt").write_text("")
    assert only(run(checked, now=shift_instant(START, 300), before=first)).values["step"] is None
    (tmp_path / "step-7" / "w.pt").write_text("x")
    where = CheckpointPlace(path=FilePath(tmp_path), complete=CheckpointRule(latest="latest"))
    assert "since checkpoint step-7" in describe_work_at_risk(
        where, START, None, user="root", limit=20.0
    )


@pytest.mark.parametrize(
    "name",
    ["step-2-tmp", "tmp-step-2", "step-2.tmp", "step-2.incomplete", "2.orbax-checkpoint-tmp",
     "step-2.partial", "_tmp_step-2", "step-2.corrupt"],
)  # fmt: skip
def test_a_name_of_a_save_that_was_not_ended_is_never_complete(tmp_path: Path, name: str) -> None:
    write(tmp_path / "step-1", HF, 9 * HOUR)
    write(tmp_path / name, HF, HOUR)
    assert step_found(tmp_path) == 1


def test_nemos_marker_beside_it_says_that_it_is_not_ended(tmp_path: Path) -> None:
    write(tmp_path / "step-1", HF, 9 * HOUR)
    write(tmp_path / "step-2", HF, HOUR)
    (tmp_path / "step-2-unfinished").touch()
    finding = only(run(check(tmp_path)))
    assert finding.values["step"] == 1


def test_it_says_where_no_name_fits(tmp_path: Path) -> None:
    """Several numbers in a name; an empty folder has nothing that could fit."""
    assert "match" not in only(run(check(tmp_path))).summary
    (tmp_path / "epoch=0-step=100.ckpt").touch()
    finding = only(run(check(tmp_path)))
    assert finding.status is Status.WARNING
    assert "none of 1 entries fits `match` (\\D*(\\d+)\\D*), such as epoch=0-step=100.ckpt" in (
        finding.summary
    )


@pytest.mark.parametrize(
    ("name", "staging"),
    [("tmpfs_run_3", False), ("zero_stage_3", False), ("model_part_0.pt", False),
     ("template_3", False), ("attempt-3", False), ("step-3.bak", False),
     ("checkpoint_1000.tmp-1699", True), ("m.ckpt-1.data-00000-of-00001.tempstate12", True),
     ("checkpoint_tmpa8s7d", True), ("step_100.tmp.pt", True), ("step_100.tmpdir", True), ("step_100.dir", False), ("tmp_17.checkpoint_001", True)],
)  # fmt: skip
def test_names_of_unfinished_saves(name: str, staging: bool) -> None:
    """One list for `checkpoint` and `clean`."""
    assert is_staging(name) is staging


def test_numbers_of_ranks_are_no_steps() -> None:
    assert parse_step_numbers("ep0-ba3000-rank2.pt") == (0, 3000)
    assert parse_step_numbers("model.ckpt-7.data-00000-of-00002") == (7,)
    assert find_missing_part(["a-rank8", "a-rank9"]) == ""
    assert find_missing_part(["__0_0.distcp", "__2_0.distcp"]) == ""


OWN = Whose(user=getpass.getuser(), literal=True)


class ListedFiles(UserFiles):
    """Each checkpoint has these files."""

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__(10.0, 20.0, {})
        self._paths = paths

    def sum_sizes(
        self, path: str, whose: Whose, most: int = 0
    ) -> tuple[int, float | None, list[tuple[str, int, float]]]:
        return 9000, NOW - HOUR, [(path, 9, NOW - HOUR) for path in islice(self._paths, most)]


def look_at(place: Path, paths: Iterable[str]) -> CheckpointLook:
    write(place / "step_1", HF, HOUR)
    folder = CheckpointFolder(str(place), re.compile(r"step_(\d+)"), ListedFiles(paths), OWN)
    return CheckpointLook(folder, CheckpointRule(), Memory(), START)


@pytest.mark.parametrize(("lost", "seen"), [(None, "yes"), (777, "no: rank 777 is missing")])
def test_a_rank_among_more_than_twenty_thousand_files_is_missed(
    tmp_path: Path, lost: int | None, seen: str
) -> None:
    """A folder for each node; so many files were once not compared."""
    ranks = [rank for rank in range(30_000) if rank != lost]
    look = look_at(tmp_path, (f"node_{rank // 32}/rank_{rank}.dat" for rank in ranks))
    assert [row["complete"] for row in look.show_checkpoints().rows] == [seen]


def test_of_what_has_too_many_files_nobody_knows_whether_it_is_whole(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="step_1 holds more than 200000 files to compare"):
        look_at(tmp_path, (f"{number}.bin" for number in count()))


SAVED = HF | {"rng_state_0.pth": "r" * 50, "config.json": "c" * 30, "tokenizer.json": "t" * 40}
LATER = {
    # lm-evaluation-harness with its output in the folder of the model
    "evaluation": {"lm_eval/results_2026-11-27T03-14-15.926535.json": '{"results": {}}'},
    # DeepSpeed's zero_to_fp32.py, and a merge of an adapter: larger than all that was saved
    "fp32": {"pytorch_model.bin": "m" * 9000},
    "merge": {"merged/model-00001-of-00002.safetensors": "m" * 5000},
    # huggingface_hub upload_large_folder(): _local_folder.py
    "upload": {".cache/huggingface/upload/model.safetensors.metadata": "u", ".gitattributes": "g"},
    "note": {"README.md": "# a model", ".hf_metadata": "h", "empty.bin": ""},
    # files that the save wrote, mended
    "tokenizer": {"tokenizer.json": "t" * 44},
    "config": {"config.json": "c" * 33},
}


@pytest.mark.parametrize("marker", ["trainer_state.json", ""])
@pytest.mark.parametrize(
    "steps", [(1, 2, 3, 4), (5,), (1, 2, 3, 4, 5)], ids=["old", "newest", "all"]
)
@pytest.mark.parametrize("what", LATER)
def test_what_is_laid_into_a_step_later_changes_nothing(
    tmp_path: Path, what: str, steps: tuple[int, ...], marker: str
) -> None:
    """Neither which steps are complete nor how old they are; work at risk counts from the save."""
    for step in range(1, 6):
        write(tmp_path / f"step-{step}", SAVED, (9 - step) * HOUR)
    for step in steps:
        folder = tmp_path / f"step-{step}"
        for name in LATER[what]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder, LATER[what], HOUR)
    found = only(run(check(tmp_path, late_after=10 * HOUR, complete=CheckpointRule(marker=marker))))
    assert (found.values["step"], found.values["complete"]) == (5, 5)
    assert found.values["age_seconds"] == 4 * HOUR
    assert found.values["size_bytes"] < 4000
    where = CheckpointPlace(path=FilePath(tmp_path), complete=CheckpointRule(marker=marker))
    said = describe_work_at_risk(where, START, None, user="", limit=10.0)
    assert said == "4h of work since checkpoint step-5 at risk"


def test_a_step_that_is_saved_anew_is_not_complete(tmp_path: Path) -> None:
    """Its weights are later than its marker; those of the others are not."""
    for step in range(1, 6):
        write(tmp_path / f"step-{step}", SAVED, (9 - step) * HOUR)
    write(tmp_path / "step-5", {"model.safetensors": "x" * 700, "optimizer.pt": "o" * 900}, HOUR)
    assert step_found(tmp_path, marker="trainer_state.json") == 4


@pytest.mark.parametrize("stubs", [1, 9, 30])
def test_the_work_at_risk_counts_from_the_last_that_is_complete(tmp_path: Path, stubs: int) -> None:
    """However many saves broke off since, and although nothing but the others shows that they did."""
    for step in range(1, 40 - stubs):
        write(tmp_path / f"step-{step}", HF, (41 - step) * HOUR)
    for step in range(40 - stubs, 40):
        write(tmp_path / f"step-{step}", {"model.safetensors": ""}, (41 - step) * HOUR)
    where = CheckpointPlace(path=FilePath(tmp_path))
    said = describe_work_at_risk(where, START, None, user="root", limit=20.0)
    assert f"since checkpoint step-{39 - stubs} at risk" in said


COSTLY = "[[[]]]," * 1_100_000
"""7.7 MB of JSON, which are 240 MB of lists."""


def test_what_a_user_wrote_into_an_index_costs_the_service_nothing(tmp_path: Path) -> None:
    """The service's own process never holds more of it than its bytes; the steps beside it are seen."""
    write(tmp_path / "step-1", SPLIT, HOUR)
    write(tmp_path / "step-2", SPLIT | {"model.safetensors.index.json": f"[{COSTLY}[]]"}, HOUR / 2)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + 3 * 2**26
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        finding = only(run(check(tmp_path)))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert finding.values["step"] == 1
    assert "step-2 is not complete: model.safetensors.index.json is no index" in finding.summary


@pytest.mark.parametrize("form", ["{}.index.json", "rank{}/.metadata"])
def test_forty_thousand_indexes_are_not_asked_about_one_by_one(tmp_path: Path, form: str) -> None:
    """They took 77 of the 120 s of a pass, for one user. Nobody can tell what lacks there."""
    with pytest.raises(CannotTell, match="step_1 holds 40000 indexes, too many to compare"):
        look_at(tmp_path, map(form.format, range(40_000)))


def test_files_below_an_index_and_those_of_its_folder_are_found(tmp_path: Path) -> None:
    """Names in an index are relative to its own folder."""
    index = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "parts/model-2.bin"}})
    files = {"a/x.index.json": index, "a/model-1.safetensors": "x", "a/parts/model-2.bin": "x"}
    write(tmp_path / "step-1", files, HOUR)
    assert step_found(tmp_path) == 1
    write(tmp_path / "step-2", without(files, "a/parts/model-2.bin"), HOUR / 2)
    assert step_found(tmp_path) == 1
