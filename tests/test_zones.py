"""The host's time zone is what libc takes it for, however it is written down."""

import os
import subprocess
import sys

import pytest

MOMENTS = ("2026-01-15T12:00:00+00:00", "2026-07-15T12:00:00+00:00")
PROGRAM = f"""
from datetime import datetime
from sentinel import zones
for moment in {MOMENTS}:
    print(datetime.fromisoformat(moment).astimezone(zones.get_local_zone()).isoformat())
"""


@pytest.mark.parametrize(
    "name",
    [
        "Asia/Kathmandu",
        ":Europe/Berlin",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "CET-1CEST",
        "<+0330>-3:30",
        "Europe/Nowhere",
        "nonsense",
        "\n",
    ],
)
def test_it_is_what_date_shows(name: str) -> None:
    """In winter and in summer; a name that is none is UTC to libc, and no reason not to watch."""
    assert said(name, sys.executable, "-c", PROGRAM) == [
        said(name, "date", "-d", moment, "+%Y-%m-%dT%H:%M:%S%:z")[0] for moment in MOMENTS
    ]


def said(zone: str, *argv: str) -> list[str]:
    env = {**os.environ, "TZ": zone}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()
