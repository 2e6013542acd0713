"""The dashboard's panels on a real Prometheus that scrapes a real page."""

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model import Status
from tests.lab.waiting import wait_until
from tests.web.scenery import alert
from tests.web.stage import stage

DASHBOARD = Path(__file__).parents[2] / "config" / "prometheus" / "grafana-dashboard.json"

TONES = (Status.CRITICAL, Status.WARNING, Status.UNKNOWN)


@pytest.mark.long
def test_every_panel_shows_data_of_the_chosen_cluster_and_job_alone(tmp_path: Path) -> None:
    """The same page is scraped as two jobs: none of the other's is shown, and nothing of another
    cluster."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with stage([alert(n, f"gpu{n}", tone) for n, tone in enumerate(TONES)]) as s:
        page = {"targets": [s.url.removeprefix("http://")]}
        jobs = [{"job_name": n, "static_configs": [page]} for n in ("sentinel", "other")]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))
        argv = [
            "prometheus", f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as running:
            try:
                scraped = "rate(sentinel_slurm_requests_total[5m])"
                wait_until(lambda: len(asked(port, scraped)) == 2, "scraped twice", 60)
                for panel in panels:
                    for target in panel["targets"]:
                        judge(port, panel["title"], target["expr"])
            finally:
                running.terminate()


def judge(port: int, title: str, expr: str) -> None:
    mine = asked(port, expr.replace("$cluster", "h100-prod").replace("$job", "sentinel"))
    assert mine, title
    assert {one["metric"].get("job", "sentinel") for one in mine} == {"sentinel"}, title
    assert asked(port, expr.replace("$cluster", "x").replace("$job", ".*")) == [], title
    assert asked(port, expr.replace("$cluster", ".*").replace("$job", "x")) == [], title


def asked(port: int, expr: str) -> list[dict[str, Any]]:
    """The series of an expression now; none while Prometheus does not answer yet."""
    address = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expr)}"
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
            return found
    except OSError:
        return []
