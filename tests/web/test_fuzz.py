"""The API against whatever its own description allows, and much that it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.web.rate_limit import RequestRateLimiter
from tests.web.scenery import alert
from tests.web.stage import TOKEN, stage

PROGRAM = Path(sys.executable).with_name("schemathesis")
MANY = 10**9


@pytest.mark.parametrize(
    "cases", [8, pytest.param(50, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_schemathesis_finds_no_fault(tmp_path: Path, cases: int) -> None:
    """No 5xx, no answer that the description does not allow, no method too many, no request
    taken without its token; with and without a body that is right."""
    limits = (RequestRateLimiter(MANY, MANY), RequestRateLimiter(MANY, MANY))
    with stage([alert(n, f"gpu{n:05}") for n in range(1, 4)], limits=limits) as s:
        done = subprocess.run(
            [PROGRAM, "run", f"{s.url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {TOKEN}",
             "--max-examples", str(cases), "--generation-database", "none", "--seed", "7",
             "--no-color"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100 if cases < 10 else 580,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert "Tested: 15" in done.stdout
