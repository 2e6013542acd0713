"""The page's own files are found wherever the package lies."""

import re
import shutil
import subprocess
import sys
import tarfile
from datetime import timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.cli import panels
from sentinel.cli.screen import render_to_lines
from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, Key, Status
from sentinel.core.values import size_text
from sentinel.status.collect import read_status_inputs
from sentinel.status.folding import fold_singly
from sentinel.status.last_seen import CheckLook, ShownFinding, make_check_key
from sentinel.status.types import DiskFact, Facts, JobFact, NodesFact, SilenceFact
from sentinel.status.view_model import build_facts
from sentinel.testing import START
from sentinel.web import render
from tests.packaging.test_pyz import builder
from tests.web.scenery import alert, around, store

PACKAGE = Path(render.__file__).parent.parent
LOOK = """\
import sys; sys.path.insert(0, sys.argv[1])
from datetime import timezone
from sentinel.web import render
from sentinel.status.types import Facts
from sentinel.core.model import Status
assert render.__file__.startswith(sys.argv[1]), render.__file__
facts = Facts(at=0.0, cluster="in-a-zip", status=Status.OK)
page = render.PageRenderer(timezone.utc).render_page("list.html", facts, "/files", name="File systems")
assert "in-a-zip" in page and "color-scheme" in page and render.get_asset_url("live.js") in page
print(len(render.read_asset("live.js")))
"""


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_a_silence_without_an_end_that_a_calendar_has_is_shown(hours: int) -> None:
    """`until: 9999-12-31` in the file, somewhere: it must not take the page from everybody."""
    silence = SilenceFact(id="s", match="check=x", ends=253_402_300_799.0 + 12 * 3600)
    facts = Facts(at=0.0, cluster="c", status=Status.OK, silences=(silence,))
    more = {
        "headline": "",
        "calm": "no alerts",
        "sure": True,
        "tones": (),
        "pending": 0,
        "quiet": 0,
        "blind": 0,
        "shown": (),
        "checks": (),
    }
    pages = render.PageRenderer(timezone(timedelta(hours=hours)))
    page = pages.render_page("overview.html", facts, "/", out=(), strip="", strips=(), **more)
    assert re.search(r'until <time [^>]*"9999-12-3\S*">9999-12-3', page)


def test_pages_are_made_from_inside_a_zip_file(tmp_path: Path) -> None:
    """As PYTHONPATH=sentinel.zip or any zipapp has it."""
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "sentinel", ignore=shutil.ignore_patterns("__pycache__"))
    packed = shutil.make_archive(str(tmp_path / "sentinel"), "zip", site)
    done = subprocess.run(
        [sys.executable, "-c", LOOK, packed], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert int(done.stdout) == len(render.read_asset("live.js"))


def test_the_builder_of_the_zipapp_leaves_every_file_of_the_page(tmp_path: Path) -> None:
    """It removes what is superfluous; the page's files are not."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "sentinel")
    made = builder()
    made.remove_superfluous(tmp_path / "site")
    payload = made._packed(tmp_path / "site", tmp_path / "payload.tar.gz")
    with tarfile.open(fileobj=BytesIO(payload)) as tar:
        names = set(tar.getnames())
    wanted = {
        str(path.relative_to(PACKAGE.parent))
        for folder in ("templates", "static")
        for path in (PACKAGE / "web" / folder).iterdir()
    }
    assert len(wanted) > 10
    assert wanted <= names


def test_rows_that_nobody_sees_now_are_grey_with_their_age_and_the_reason() -> None:
    """Of the page, `status` and `top` alike: the service has been dead for an hour."""
    old = build_facts(
        read_status_inputs(store([alert(1, "gpu00003")]), around(), shift_instant(START, 3600))
    )
    page = render.PageRenderer(timezone.utc)
    for here, rows in (("/files", 1), ("/jobs", 1)):
        text = page.render_page("list.html", old, here, name="x")
        assert text.count('<tr class="stale">') == rows
        assert text.count('ago</span> <span class="small">not checked since') == rows
        assert 'class="b ok"' not in text
    told = [
        panels.render_alerts(fold_singly(old.alerts), old.at),
        panels.render_disks(old.disks, old.at),
    ]
    for table in (*told, panels.render_jobs(old.jobs, old)):
        assert "seen 1h ago: not checked since" in " ".join(render_to_lines(table, 300, False))
    assert "not current" in " ".join(
        render_to_lines(panels.render_nodes(old, old.nodes), 300, False)
    )


@pytest.mark.parametrize(
    ("more", "quiet"),
    [
        ({}, True),
        ({"rate": 0.5}, False),
        ({"rate": None}, False),
        ({"limit_s": None}, False),
        ({"status": Status.CRITICAL}, False),
    ],
)
def test_a_training_without_steps_is_quiet_and_not_simply_ok(
    more: dict[str, Any], quiet: bool
) -> None:
    """With how long it may be. What makes steps, or is bad, is shown as it is."""
    known = {"rate": 0.0, "quiet_s": 420.0, "limit_s": 1200.0, "status": Status.OK} | more
    one = JobFact(check="log", kind="log", subject="llm-7b", summary="step 267", seen=0.0, **known)
    facts = build_facts(read_status_inputs(store([]), around(), START))
    facts = replace(facts, jobs=(one,))
    page = render.PageRenderer(timezone.utc).render_page("list.html", facts, "/jobs", name="Jobs")
    assert ('class="b">quiet</span> <span class="small">limit 20m' in page) is quiet
    assert ('class="b ok"' in page) is (not quiet and one.status is Status.OK)
    line = " ".join(render_to_lines(panels.render_jobs(facts.jobs, facts), 200, False))
    assert ("quiet  [limit 20m] step 267" in line) is quiet


def test_a_training_is_one_row_whether_its_queue_or_its_log_is_watched() -> None:
    """State, step, rate, age, and what is queued behind it; the worse of both speaks."""
    queue = JobFact(
        check="job", kind="job", subject="llm", summary="runs; 1 queued", seen=0.0, status=Status.OK
    )
    log = JobFact(check="log", kind="log", subject="llm", summary="step 267", seen=0.0, status=Status.OK,
                  progress=267.0, rate=0.5, quiet_s=12.0, limit_s=1200.0)  # fmt: skip
    alone = replace(log, subject="other")
    facts = replace(
        build_facts(read_status_inputs(store([]), around(), START)), jobs=(queue, log, alone)
    )
    row, second = facts.trainings
    assert (row.check, row.summary, row.progress, row.quiet_s) == (
        "job",
        "runs; 1 queued",
        267.0,
        12.0,
    )
    assert second is alone
    hung = replace(log, status=Status.CRITICAL, summary="stands at 267")
    assert [j.summary for j in replace(facts, jobs=(queue, hung)).trainings] == ["stands at 267"]
    for both in ((queue, hung, log), (queue, log, hung)):  # two checks of one log
        assert [j.summary for j in replace(facts, jobs=both).trainings] == ["stands at 267"]
    page = render.PageRenderer(timezone.utc).render_page("list.html", facts, "/jobs", name="Jobs")
    assert page.count('<td class="s">') == 2


def test_a_dead_training_keeps_its_last_step() -> None:
    values = {"running": 0, "last_step": "iteration 79,400"}
    dead = ShownFinding(subject="llm", status=Status.CRITICAL, summary="FAILED", values=values)
    state, key = store([]), make_check_key("training")
    look = to_builtins(CheckLook(at=START, findings=(dead,)))
    state.commit(Batch(at=START, memory={key: look}))
    found = build_facts(read_status_inputs(state, around(), START))
    assert [j.progress for j in found.jobs if j.kind == "job"] == [79_400.0]


def test_a_file_system_has_a_size_a_tree_no_dashes_and_the_nodes_a_total() -> None:
    disk = DiskFact(check="fs", path="/s", status=Status.OK, summary="36% used", seen=0.0,
                    used_percent=36.0, free_bytes=64e9, used_bytes=36e9, size_bytes=1e11)  # fmt: skip
    tree = DiskFact(check="du", path="/t tree", status=Status.OK, summary="5 MB in 3 files", seen=0.0,
                    used_bytes=5e6)  # fmt: skip
    facts = replace(build_facts(read_status_inputs(store([]), around(), START)), disks=(disk, tree))
    page = render.PageRenderer(timezone.utc).render_page("list.html", facts, "/files", name="x")
    assert f"<span>{size_text(64e9)}</span> <span>of {size_text(1e11)}</span>" in page
    assert '<td colspan="4">5 MB in 3 files</td>' in page
    lines = render_to_lines(panels.render_disks(facts.disks, facts.at), 120, False)
    assert size_text(1e11) in lines[1]
    assert f"{size_text(5e6)} used" in lines[2]
    assert "–" not in lines[2]
    (line, *_) = render_to_lines(panels.render_nodes(facts, facts.nodes), 120, False)
    assert line.startswith(f"{sum(facts.node_states.values())} nodes:  ")


def test_of_another_cluster_the_page_and_the_terminal_say_which() -> None:
    """Two clusters have a training of one name each."""
    checks = [replace(c, common=replace(c.common, cluster="west")) for c in around().checks]
    one = alert(1, "llm-10b", key=Key("west", "training", "llm-10b"), kind="job")
    told = replace(around(), checks=tuple(checks))
    found = build_facts(read_status_inputs(store([one]), told, START))
    page = render.PageRenderer(timezone.utc).render_page("list.html", found, "/jobs", name="Jobs")
    assert "training llm-10b on west" in page
    for table in (
        panels.render_alerts(fold_singly(found.alerts), found.at),
        panels.render_jobs(found.jobs, found),
    ):
        assert "training llm-10b on west" in " ".join(render_to_lines(table, 300, False))


@pytest.mark.parametrize("config", ["", "/etc/own.yaml"])
def test_a_command_on_a_page_names_the_configuration(config: str) -> None:
    """Where sentinel would not find it by itself."""
    facts = Facts(at=0.0, cluster="c", status=Status.OK, config=config)
    more = dict.fromkeys(("readings", "alerts", "gpus", "acts"), ())
    group = NodesFact(state="idle", slurm_state="IDLE", nodes="n1", count=1)
    page = render.PageRenderer(timezone.utc).render_page(
        "node.html", facts, "/nodes", name="n1", group=group, **more
    )
    end = f" -c {config}" if config else ""
    assert f"sentinel nodes probe n1{end}\nsentinel diag list n1{end}</pre>" in page


def test_no_template_has_a_command_that_cannot_name_the_configuration() -> None:
    """Its words stand in quotes, for the filter, and nowhere as text of the page."""
    for file in (PACKAGE / "web" / "templates").iterdir():
        plain = r"(?:^|[>\s])sentinel (?:alerts|nodes|diag|explain|report|status)\b.*"
        assert re.findall(plain, file.read_text(), re.MULTILINE) == [], file.name
