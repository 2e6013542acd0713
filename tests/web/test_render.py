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
from msgspec.structs import replace

from sentinel.cli import panels
from sentinel.cli.screen import render_to_lines
from sentinel.core.clock import shift_instant
from sentinel.core.model import Key, Status
from sentinel.status.collect import read_status_inputs
from sentinel.status.folding import fold_singly
from sentinel.status.types import Facts, JobFact, SilenceFact
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
    for here, rows in (("/files", 1), ("/jobs", 2)):
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
