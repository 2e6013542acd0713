"""The status page of a real service on the real cluster, in a real Chromium."""

import os
import shutil
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.lab.cluster import Lab
from tests.service.watch import Watch
from tests.web.stage import TOKEN

TEXT = f"""\
web: {{{{listen: "127.0.0.1:PORT", token: "{TOKEN}"}}}}
metrics: {{{{textfile: "{{folder}}/sentinel.prom"}}}}
checks:
  LAMP
  training: {{{{kind: job, every: 1s, name: llm-10b}}}}
  disks: {{{{kind: fs, every: 1s, paths: [/]}}}}
  capacity: {{{{kind: nodes, every: 1s, need: 1}}}}
channels: {{{{book: {{{{kind: file, path: "{{folder}}/book.jsonl"}}}}}}}}
"""


@pytest.fixture
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium") or ""
    if not found and os.environ.get("SENTINEL_LAB") != "required":
        pytest.skip("needs Debian's chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_a_night_on_the_cluster_is_seen_on_the_open_page(
    fresh: Lab, night: Watch, chromium: Browser
) -> None:
    """The job that runs, the node that is drained, the alert that fires, its answer, its end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    night.lamp(0)
    night.configure(TEXT.replace("PORT", str(port)))
    fresh.sbatch("sleep 300", name="llm-10b")
    fresh.ask(["scontrol", "update", "nodename=node-3", "state=drain", "reason=RMA GPU3"])
    service = night.run()
    context = chromium.new_context()
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    service.wait_for(lambda: _serves(port), "the page")
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_text("training llm-10b").wait_for(timeout=20_000)
    page.get_by_text("RMA GPU3").first.wait_for(timeout=40_000)

    night.lamp(2)
    page.locator("#alerts a", has_text="lamp").click(timeout=5000)
    page.fill("#token", "not-the-token-at-all")
    page.locator("form[action$=ack] button").click()
    page.get_by_text("Not done").wait_for()
    page.fill("#token", TOKEN)
    page.locator("form[action$=ack] button").click()
    page.get_by_text("Acknowledged by the status page").wait_for(timeout=5000)
    night.lamp(0)
    page.get_by_text("does not fire any more").wait_for(timeout=8000)
    assert [f for f in faults if "403" not in f] == []
    service.wait_for((night.folder / "sentinel.prom").exists, "the text file", 30)
    assert 'sentinel_nodes{state="drained"} 1.0' in (night.folder / "sentinel.prom").read_text()
    context.close()


def _serves(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
