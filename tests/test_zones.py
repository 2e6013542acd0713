"""The host's time zone is what libc takes it for, however it is written down."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tzlocal import unix

from sentinel import zones

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


@pytest.mark.parametrize(
    ("link", "named", "found"),
    [
        ("Europe/Berlin", None, "Europe/Berlin"),
        ("Europe/Berlin", "Europe/Berlin\n", "Europe/Berlin"),
        ("Etc/UTC", "Etc/UTC", "Etc/UTC"),
        ("Europe/Berlin", "Asia/Kathmandu", None),
        ("Europe/Berlin", b"\xff", None),
        ("Europe/Berlin", "", None),
        ("Europe/Nowhere", None, None),
        ("", None, None),
    ],
)
def test_a_host_that_names_its_zone_once_needs_no_tzlocal(
    link: str, named: str | bytes | None, found: str | None, tmp_path: Path
) -> None:
    """What it says then is what tzlocal says; of any other host it says nothing."""
    (tmp_path / "etc").mkdir()
    zoneinfo = tmp_path / "usr/share/zoneinfo"
    zoneinfo.mkdir(parents=True)
    # As Debian has it: tzlocal before 5.0 takes Etc/UTC at a path's end for UTC, and looks where it leads.
    (zoneinfo / "UTC").symlink_to("Etc/UTC")
    data = zoneinfo / link
    data.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/etc/localtime", tmp_path / "etc/localtime" if not link else data)
    if link:
        (tmp_path / "etc/localtime").symlink_to(data)
    if named is not None:
        text = named if isinstance(named, bytes) else named.encode()
        (tmp_path / "etc/timezone").write_bytes(text)
    zone = zones.find_linked_zone(str(tmp_path))
    assert (zone.key if zone else None) == found
    if found:
        assert unix._get_localzone_name(str(tmp_path)) == found


@pytest.mark.parametrize("other", zones.OTHER_NAME_FILES)
def test_another_file_that_names_the_zone_is_for_tzlocal(other: str, tmp_path: Path) -> None:
    """Two that differ are refused there."""
    data = tmp_path / "usr/share/zoneinfo/Europe/Berlin"
    data.parent.mkdir(parents=True)
    data.touch()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/localtime").symlink_to(data)
    assert zones.find_linked_zone(str(tmp_path))
    (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / other).touch()
    assert zones.find_linked_zone(str(tmp_path)) is None


def said(zone: str, *argv: str) -> list[str]:
    env = {**os.environ, "TZ": zone}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Europe/Nowhere", "TZ=Europe/Nowhere names no time zone that this host knows"),
        ("Europe/London", ""),
        ("Africa/Abidjan", ""),
        ("GMT0BST", ""),
        ("UTC", ""),
    ],
)
def test_utc_that_nobody_chose_is_told(name: str, why: str) -> None:
    """A zone that is not known, or no zone data here; not one that is at UTC in winter or always."""
    program = "from sentinel import zones; print(zones.explain_utc())"
    assert said(name, sys.executable, "-c", program) == [why]
