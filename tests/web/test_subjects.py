"""One node, one training, the ledger of GPUs: what their pages tell, over a real connection."""

import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.observations import RunOutcome
from sentinel.checks.du.check import DuCheck
from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, Finding, Status
from sentinel.status.collect import read_status_inputs
from sentinel.status.last_seen import encode_looks
from sentinel.status.view_model import build_facts
from sentinel.testing import START
from sentinel.web.auth import Gate
from sentinel.web.metrics import render_metrics
from tests.checks.quota.test_further import look
from tests.web.proof import program
from tests.web.scenery import KINDS, alert, around, big, ledger, store
from tests.web.stage import TOKEN, stage
from tests.web.test_site import ask

NODE, JOB = "/nodes/one?name=gpu00003", "/jobs/one?check=progress&subject=llm-10b"
STACKS = "rank 37 (gpu00007) in load_batch (train.py:11); 63 ranks in all_reduce\n\n<b>rank 37"


def test_a_node_shows_its_gpus_its_diagnoses_and_what_was_done_to_it() -> None:
    """From ledger and log by its name: sixty newer actions on another node hide nothing."""
    with stage() as s:
        page = ask(s, "GET", NODE)[1]
    assert "Kill task failed" in page
    assert page.index("GPU-0-gpu00003") < page.index("GPU-1-gpu00003")
    for text in ("fallen off the bus", "memory: 3 errors", "below 10", "lemon", "undrain"):
        assert text in page, text
    assert "gpu00007" not in page


def test_the_ledger_page_and_the_metrics_tell_who_is_under_suspicion() -> None:
    """A GPU and a node with failed diagnoses; not those to which nothing happened."""
    with stage() as s:
        page = ask(s, "GET", "/gpus")[1]
        told = ask(s, "GET", "/metrics")[1]
        rows = ask(s, "GET", "/api/v1/gpus")[1]
    assert 'sentinel_gpus{cluster="h100-prod",standing="lemon"} 1.0' in told
    assert 'sentinel_gpus{cluster="h100-prod",standing="suspect"} 1.0' in told
    for text in (page, rows):
        assert "GPU-0-gpu00003" in text
        assert "node:gpu00003" in text
        assert "GPU-1-gpu00003" not in text


def test_a_mark_of_a_person_is_on_the_ledger_page() -> None:
    """It counts more than any sum; one that was called good is shown as that, with its reason."""
    gpus = ledger()
    gpus.set_mark("GPU-0-gpu00003", "good", "replaced by the vendor", "ann", START)
    told = build_facts(read_status_inputs(store([]), around(KINDS, gpus=gpus), START))
    found = {g.subject: g for g in told.gpus}
    assert found["GPU-0-gpu00003"].judged == "good"
    assert found["GPU-0-gpu00003"].reason == "replaced by the vendor"
    assert told.gpu_standings == {"good": 1, "suspect": 1}
    assert b'standing="good"' in render_metrics(told)


def bundle(folder: Path, name: str, text: str = STACKS) -> None:
    (folder / name).mkdir()
    (folder / name / "stacks.txt").write_text(text)


def test_a_training_shows_where_its_ranks_stood(tmp_path: Path) -> None:
    """The stacks that were kept of its jobs, the newest first, as text; those of no other job."""
    bundle(tmp_path, "job-4711-20260321T031207Z", "the older one")
    bundle(tmp_path, "job-4711-20260321T041207Z")
    bundle(tmp_path, "job-4712-20260321T041207Z", "of somebody else")
    (tmp_path / "job-4711-20260321T051207Z").mkdir()
    with stage(evidence=str(tmp_path)) as s:
        page = ask(s, "GET", JOB)[1]
    assert page.index("cannot be read") < page.index("load_batch") < page.index("the older one")
    assert "2026-03-21 04:12:07 UTC" in page
    assert "&lt;b&gt;rank 37" in page
    assert "of somebody else" not in page
    assert "hang: no new step for 20m" in page


@pytest.mark.parametrize("folder", ["", "/nonexistent"])
def test_without_any_evidence_a_training_is_shown_all_the_same(folder: str) -> None:
    """No section about ranks."""
    with stage(evidence=folder) as s:
        status, page, _ = ask(s, "GET", JOB)
    assert status == 200
    assert "Where its ranks stood" not in page


@pytest.mark.parametrize("path", [NODE, "/nodes/one?name=..%2F..", JOB, "/jobs/one", "/files/one"])
def test_a_subject_that_nobody_knows_has_a_page_that_says_so(path: str) -> None:
    """Whatever the address names."""
    with stage([replace(alert(1, "gpu00003", Status.WARNING), labels={})]) as s:
        assert ask(s, "GET", path)[0] == 200


def test_an_address_without_a_check_leads_to_the_training() -> None:
    """Reports and messages know its name alone; the time in the address stays. A name that nothing
    has is a page that says so."""
    with stage() as s:
        status, _, headers = ask(s, "GET", "/jobs/one?subject=llm-10b&at=1784600000&span=3600")
        assert ask(s, "GET", "/jobs/one?subject=nobody")[0] == 200
    assert status == 303
    assert headers["Location"] == f"{JOB}&at=1784600000&span=3600"


def test_a_file_system_shows_who_has_most_of_it() -> None:
    """What `du` and `quota` know of it and of what lies below it, the largest first; not its neighbours."""
    with stage(state=big()) as s:
        _, page, _ = ask(s, "GET", "/files/one?check=scratch&path=/scratch")
    below = page[page.index("Who has most of it") : page.index("h-marks")]
    found = re.findall(r">/scratch ?(\S*) ?(\S*)</a></td><td class=\"n\">(\d+ TB)<", below)
    assert found == [("user", f"user{n}", f"{n + 1} TB") for n in reversed(range(12))]
    assert "/scratch1" not in below


def test_a_tree_shows_who_grew_and_since_when(tmp_path: Path) -> None:
    """Real directories, looked at two days apart: one grows, one shrinks, one is new, and the owner of all has
    the sum. Names of directories are for those who may see everything."""
    state = store([])
    state.take_lead("lab pid 1", START)

    def looked(days: float, **sizes: int) -> None:
        for name, size in sizes.items():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "data").write_bytes(os.urandom(size))
        report = look(tmp_path, kind=DuCheck)
        itself = Finding(subject="", status=Status.OK, summary="")
        ran = RunOutcome(check="scratch", kind="du", itself=itself, report=report, seconds=1.0)
        at = shift_instant(START, -days * 86_400)
        seen: Any = encode_looks([ran], at)
        state.commit(Batch(at=at, memory=seen, samples={"scratch": report.samples}))

    looked(2, runs=2_048_000, old=3_072_000)
    looked(0, runs=4_096_000, old=1_024_000, fresh=512_000)
    page = f"/files/one?check=scratch&path={tmp_path} tree"
    gate = Gate(TOKEN, user_header="X-Remote-User")
    with stage(state=state, gate=gate) as s:
        whole = ask(s, "GET", page, headers=program())[1]
        ann = {"X-Remote-User": "ann", "Authorization": f"Bearer {TOKEN}"}
        part, rows = (
            ask(s, "GET", page, headers=ann)[1],
            ask(s, "GET", "/api/v1/disks", headers=ann)[1],
        )
    cells = r'<td class="c">(?:dir {}/(\w+)|(owner \S+))</td><td class="n">(\S+ MB|\S+ kB)</td>'
    cells = cells.format(tmp_path) + r'<td class="n[^"]*" data-h="a day">([^<]*)</td>'
    found = [(a or b, size, grew) for a, b, size, grew in re.findall(cells, whole)]
    assert [name for name, *_ in found] == [
        f"owner {pwd.getpwuid(os.geteuid()).pw_name}",
        "runs",
        "old",
        "fresh",
    ]
    assert [grew[:4] for _, _, grew in found[1:]] == ["+1.0", "\u22121.0", "\u2013"]
    assert "13 Jan 08:00" in whole
    assert f"dir {tmp_path}" not in part + rows
