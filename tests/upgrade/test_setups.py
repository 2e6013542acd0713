"""What ran at an earlier commit goes on after the upgrade: no message is lost, and none comes twice."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from msgspec import Struct

from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.upgrade import setups
from tests.upgrade.setups import World
from tests.upgrade.site import ALERTS, BEFORE, Site, export_code, live_after, live_before
from tests.user_files.places import shared_folder

pytestmark = [pytest.mark.nightly, pytest.mark.root, pytest.mark.lab, pytest.mark.timeout(600)]

ONCE = Counter((name, reason) for name in ALERTS for reason in ("firing", "resolved"))
EACH_ONCE = {"book": ONCE, "pager": ONCE}


class Told(Struct, frozen=True):
    """What the upgrade brings: lines of warning by their beginning, and by what is refused, the words
    of the message about it."""

    warned: Collection[str] = ()
    refused: Mapping[str, str] = {}


SETUPS: Mapping[Callable[[Site, World], AbstractContextManager[None]], Told] = {
    setups.users_chain: Told(["checks.a"]),
    setups.roots_chain: Told(["the configuration"]),
    setups.roots_service: Told(),
    setups.users_service: Told(["the configuration"]),
    setups.shared_scripts: Told(["checks.scripts"], {"scripts": "is a program in a directory"}),
    setups.shared_base: Told(["checks.scripts"], {"scripts": "no script is started"}),
    setups.shared_state: Told(["state"]),
    setups.members_state: Told(["state"]),
    setups.users_programs: Told(["checks.hers", "channels.hers"], {"hers": "is not run by root"}),
    setups.postgres_peer: Told(),
    setups.postgres_password: Told(),
    setups.postgres_clear_password: Told(),
    setups.postgres_elsewhere: Told(),
    setups.relay: Told(),
    setups.relay_login: Told(),
    setups.shared_book: Told(["channels.shared"]),
    setups.shared_program: Told(["checks.a"]),
}


@pytest.fixture(scope="session")
def before() -> Iterator[Path]:
    """The code of the earlier commit."""
    with shared_folder() as folder:
        try:
            export_code(folder, BEFORE)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"the commit is not in this clone: {error.stderr!r}")
        yield folder


@pytest.mark.parametrize("make", SETUPS, ids=lambda make: make.__name__)
def test_an_upgrade_loses_no_message_and_repeats_none(
    make: Callable[[Site, World], AbstractContextManager[None]],
    before: Path,
    fresh: Lab,
    smtp_server: Callable[..., SmtpServer],
) -> None:
    """What worked is warned of with its remedy; what is refused costs that part alone, and the other
    channels tell it within a minute."""
    told = SETUPS[make]
    with shared_folder() as folder:
        site = Site(folder, before, fresh.env)
        with make(site, World(fresh, smtp_server)):
            live_before(site)
            site.upgrade()
            site.start()
            for check, words in told.refused.items():
                site.await_words(check, words)
            live_after(site)
            assert {name: site.count_messages(name) for name in ("book", "pager")} == EACH_ONCE
            _assert_warned(site, told.warned)


def _assert_warned(site: Site, wanted: Collection[str]) -> None:
    checked = site.call("config", "check")
    assert checked.returncode == 0, checked.stderr
    lines = [line for line in checked.stderr.splitlines() if line.startswith("warning: ")]
    lines = [line for line in lines if "(chmod g-w " in line or " belongs to " in line]
    assert sorted(line.split(": ")[1] for line in lines) == sorted(wanted)
    doctor = " ".join(site.call("doctor").stdout.split())
    summaries = [m["summary"] for m in site.read_messages() if m["subject"] == "trust"]
    assert len(summaries) == bool(wanted)
    for line in lines:
        assert line.removeprefix("warning: ")[:60] in doctor
    assert not wanted or lines[0].removeprefix("warning: ")[:60] in summaries[0]
