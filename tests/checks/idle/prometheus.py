"""A throw-away Prometheus on the loopback; Debian's package, nothing of the system's."""

import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.tied import tied
from tests.lab.waiting import wait_until


def why_no_prometheus() -> str | None:
    """None where one can be started, else one line that says what is missing."""
    return None if shutil.which("promtool") else "needs Debian's prometheus"


@contextmanager
def prometheus(folder: Path, history: Iterable[str] = (), scraped: str = "") -> Iterator[str]:
    """Its address. `history`: lines of OpenMetrics with their times. `scraped`: what it scrapes each
    second."""
    folder.mkdir()
    text = "".join(f"{line}\n" for line in history)
    (folder / "history").write_text(f"# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n{text}# EOF\n")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history", "data"]
    if text:
        subprocess.run(blocks, cwd=folder, check=True, capture_output=True)
    static = [{"targets": [scraped]}] if scraped else []
    jobs = [{"job_name": "dcgm", "scrape_interval": "1s", "static_configs": static}]
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    argv = [
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={place}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with subprocess.Popen(tied(argv), stderr=subprocess.DEVNULL) as running:
        try:
            wait_until(lambda: _is_ready(place), "Prometheus answers", 60)
            yield f"http://{place}"
        finally:
            running.terminate()


def _is_ready(place: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{place}/-/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
