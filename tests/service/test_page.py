"""The status page of a real service on the real cluster, in a real Chromium."""

import json
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.lab.waiting import wait_until
from tests.service.watch import Watch
from tests.web.browser import Visitor, browser
from tests.web.stage import TOKEN
from tests.web.test_browser import CURRENT

TEXT = f"""\
slurm: {{{{timeout: 3s}}}}
web: {{{{listen: "127.0.0.1:PORT", token: "{TOKEN}"}}}}
metrics: {{{{textfile: "{{folder}}/sentinel.prom"}}}}
checks:
  LAMP
  training: {{{{kind: job, every: 1s, for: 0s, name: llm-10b}}}}
  progress: {{{{kind: log, every: 1s, job: llm-10b, progress: 'iteration (\\d+)'}}}}
  disks: {{{{kind: fs, every: 1s, paths: [/]}}}}
  capacity: {{{{kind: nodes, every: 1s, need: 1}}}}
channels: {{{{book: {{{{kind: file, path: "{{folder}}/book.jsonl"}}}}}}}}
"""
TRAINING = 'while :; do echo "iteration $((n += 20))"; sleep 0.5; done'
FILE, JOB = "/files/one?check=disks&path=/", "/jobs/one?check=progress&subject=llm-10b"
AT_ONCE = 2.0
"""Seconds from the moment that an alert has to be seen on an open page."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


class Site:
    """The page of a service that watches the lab: a training, a drained node, a lamp."""

    def __init__(self, watch: Watch, service: Service, url: str) -> None:
        self.watch, self.service, self.url = watch, service, url

    def api(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}".rstrip("/"), timeout=5) as answer:
            return json.load(answer)

    def alert(self) -> dict[str, Any]:
        """The lamp's, while there is one."""
        return next((a for a in self.api("alerts") if a["check"] == "lamp"), {})


@pytest.fixture
def site(fresh: Lab, night: Watch) -> Site:
    """Once Slurm, the log and the disks were seen."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    night.lamp(0)
    night.configure(TEXT.replace("PORT", str(port)))
    fresh.sbatch(TRAINING, name="llm-10b")
    fresh.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=RMA GPU3"])
    made = Site(night, night.run(), f"http://127.0.0.1:{port}")
    made.service.wait_for(lambda: _serves(port), "the page")
    return made


@pytest.mark.long
def test_a_night_on_the_cluster_is_seen_on_the_open_page(site: Site, chromium: Browser) -> None:
    """The job that runs, the node that is drained, the alert that is there at once, its answer,
    its end; and all of it without JavaScript too."""
    v = Visitor(chromium)
    v.page.goto(site.url)
    v.page.get_by_text("live", exact=True).wait_for(timeout=20_000)
    v.page.get_by_text("training llm-10b").wait_for(timeout=20_000)
    v.page.get_by_text("RMA GPU3").first.wait_for(timeout=40_000)
    _fires_in_sight(site, v)
    _answered(site, v)
    _drawn_and_accessible(site, v)
    _answered_without_a_script(site, chromium)

    site.watch.lamp(0)
    v.page.get_by_text("does not fire any more").wait_for(timeout=20_000)
    assert [f for f in v.faults if "403" not in f] == []
    text = site.watch.folder / "sentinel.prom"
    site.service.wait_for(text.exists, "the text file", 30)
    assert 'state="drained"} 1.0' in text.read_text()


def _fires_in_sight(site: Site, v: Visitor) -> None:
    """It is measured from the run that found it. A machine that was busy elsewhere for a moment
    is given another try; that its page was late three times is ours."""
    row = v.page.locator("#alerts a", has_text="lamp")
    late = []
    for _ in range(3):
        site.watch.lamp(2)
        row.wait_for(timeout=10_000)
        late.append(time.time() - site.alert()["since"])
        if late[-1] < AT_ONCE:
            break
        site.watch.lamp(0)
        row.wait_for(state="detached", timeout=10_000)
    assert min(late) < AT_ONCE
    assert v.axe() == []
    row.click()


def _answered(site: Site, v: Visitor) -> None:
    v.page.fill("#token", "not-the-token-at-all")
    v.page.locator("form[action$=ack] button").click()
    v.page.get_by_text("Not done").wait_for()
    assert site.alert()["acknowledged_by"] == ""
    v.page.fill("#token", TOKEN)
    v.page.locator("form[action$=ack] button").click()
    v.page.get_by_text("Acknowledged by the status page").wait_for(timeout=5000)
    assert v.axe() == []


def _drawn_and_accessible(site: Site, v: Visitor) -> None:
    """History of a second each is enough for a line; then back to the alert."""
    back = v.page.url
    for path, plots in ((FILE, 2), (JOB, 1), ("/nodes", 0), ("/nodes/one?name=node-3", 0)):
        v.page.goto(site.url + path)
        assert v.page.locator("svg.plot polyline.line").count() >= plots
        for line in v.page.locator("svg.plot polyline.line").all():
            assert len((line.get_attribute("points") or "").split()) >= 2
        assert v.axe() == []
    v.page.goto(back)
    v.page.get_by_text("live", exact=True).wait_for(timeout=5000)


def _answered_without_a_script(site: Site, chromium: Browser) -> None:
    v = Visitor(chromium, java_script_enabled=False)
    v.page.goto(site.url)
    for text in ("training llm-10b", "RMA GPU3", "lamp", "has it"):
        assert v.page.get_by_text(text).first.is_visible(), text
    v.page.click("#alerts a >> text=lamp")
    v.page.click("summary")
    v.page.fill("#token2", TOKEN)
    v.page.locator("form[action$=silence] button").click()
    assert v.page.get_by_text("Silenced until").is_visible()
    assert v.faults == []
    v.context.close()


SHOWN = (
    "/", "/alerts", "/nodes", "/nodes/one?name=node-3", "/files", FILE, "/jobs", JOB, "/gpus", "/audit", "/login",
)  # fmt: skip


@pytest.mark.long
def test_with_slurmctld_stopped_and_the_service_frozen_nothing_is_shown_as_current(
    site: Site, chromium: Browser, fresh: Lab
) -> None:
    """SIGSTOP to each: trainings and nodes are grey on every page and unknown in the API, `status`
    and the metrics have no number of them; a page of a service that stands still says so. Disks
    are seen all the while."""
    v = Visitor(chromium)
    wait_until(
        lambda: _current(site) == {"llm-10b"} and not site.api("")["nodes_trouble"], "all", 40
    )
    v.page.goto(f"{site.url}/jobs")
    assert any("llm-10b" in row for row in v.page.evaluate(CURRENT))
    fresh.stop_controller()
    wait_until(lambda: not _current(site) and site.api("")["nodes_trouble"], "it is noticed", 60)
    for path in SHOWN:
        v.page.goto(site.url + path)
        v.page.get_by_text("live", exact=True).wait_for(timeout=10_000)
        if path == "/nodes":
            v.page.locator("#room.stale[data-drawn]").wait_for()
        rows = v.page.evaluate(CURRENT)
        assert [r for r in rows if "llm-10b" in r or "node-" in r or "strip" in r] == [], path
    v.page.goto(f"{site.url}/files")
    assert any("ok" in row for row in v.page.evaluate(CURRENT))
    assert all(j["stale"] and j["rate"] is None for j in site.api("jobs"))
    with urllib.request.urlopen(f"{site.url}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()
    # What a training held in the last 7 days is past: it stays true.
    lines = [li for li in metrics.splitlines() if not li.startswith("sentinel_run_gpu_seconds{")]
    assert [li for li in lines if "llm-10b" in li or "sentinel_nodes{" in li] == []
    told = site.watch.status()
    assert told["nodes_trouble"]
    assert {j["status"] for j in told["jobs"]} == {"unknown"}
    fresh.cont_controller()
    wait_until(lambda: _current(site) == {"llm-10b"}, "it is seen again", 60)

    v.page.clock.install()
    for path in SHOWN:
        v.page.goto(site.url + path)
        v.page.get_by_text("live", exact=True).wait_for(timeout=10_000)
        site.service.signal(signal.SIGSTOP)
        v.page.clock.fast_forward(30_000)
        v.page.wait_for_selector("#lost:text-matches('^Not live: .* All this is as of 2')")
        if path == SHOWN[-1]:
            with pytest.raises(TimeoutError):
                site.api("jobs")
        site.service.signal(signal.SIGCONT)


def _current(site: Site) -> set[str]:
    """The trainings that the API shows as current."""
    return {j["subject"] for j in site.api("jobs") if not j["stale"]}


def _serves(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
