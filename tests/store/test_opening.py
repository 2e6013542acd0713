"""From `state:` to a store, with the remedy where it cannot be."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.core.errors import StoreError
from sentinel.core.lemon_policy import LemonPolicy
from sentinel.store import opening
from sentinel.store.errors import StateUnavailable
from sentinel.store.opening import open_sql_audit_log, open_sql_gpu_ledger, open_store
from sentinel.store.retention import DAY_S, Retention
from tests.lab.fuse import Fuse
from tests.store.disk import Disk
from tests.store.nouns import at, measured, remembered, summaries, told

AS_NOBODY = """
import os, sys
from sentinel.core.errors import StoreError
from sentinel.store import sqlite
from sentinel.store.opening import open_store
from sentinel.testing import START
os.setuid(65534)
try:
    open_store(sys.argv[1], START)
except StoreError as error:
    print(error)
"""


@pytest.fixture
def passable() -> Iterator[Path]:
    """A directory that every user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """With its parents; messages and memory of checks are nobody else's to read."""
    state = tmp_path / "a" / "b"
    open_store(str(state), at()).store.close()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / "sentinel.db").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """It is left as it is."""
    (tmp_path / "state").write_text("mine")
    with pytest.raises(StoreError, match="/state: is not a directory; set state: to one"):
        open_store(str(tmp_path / "state"), at())
    assert (tmp_path / "state").read_text() == "mine"


def test_a_read_only_file_system(disk: Disk) -> None:
    """What was stored is read, what is new goes to the journal, and the trouble says where."""
    before = open_store(str(disk.state), at()).store
    before.take_lead("before", at())
    before.commit(told("before"))
    before.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk.point)], check=True)
    store = open_store(str(disk.state), at()).store
    store.take_lead("test", at())
    store.commit(told("during"))
    assert summaries(store.read_outbox()) == ["before", "during"]
    assert store.is_durable
    assert store.trouble
    assert "read-only" in store.trouble.why.lower()
    assert store.trouble.kept_in
    store.close()
    subprocess.run(["mount", "-o", "remount,rw", str(disk.point)], check=True)
    after = open_store(str(disk.state), at()).store
    after.take_lead("after", at())
    assert after.trouble is None
    assert summaries(after.read_outbox()) == ["before", "during"]
    after.close()


@pytest.mark.root
@pytest.mark.parametrize("what", ["", "sentinel.db", "lock"])
def test_another_users_state(passable: Path, what: str) -> None:
    """The message names the path, who tried, and what to do."""
    state = passable / "state"
    store = open_store(str(state), at()).store
    store.take_lead("test", at())
    store.close()
    if what:
        state.chmod(0o777)
        for name in {"sentinel.db", "lock"} - {what}:
            (state / name).chmod(0o666)
    argv = [sys.executable, "-c", AS_NOBODY, str(state)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert f"{state / what}: not writable by uid 65534; make it writable (chown" in done.stdout


def test_retention_is_a_parameter(tmp_path: Path) -> None:
    """How long samples are kept is the caller's to say."""
    store = open_store(str(tmp_path), at(), Retention(samples=DAY_S)).store
    store.take_lead("test", at())
    store.commit(measured(1.0))
    store.prune(at(2 * DAY_S))
    assert store.read_samples("fs", "/scratch", "used", 0) == []
    store.close()


@pytest.mark.root
def test_a_database_that_is_another_users_link(tmp_path: Path) -> None:
    """It may lead to any file that root can write; a link of one's own is one's own affair."""
    open_store(str(tmp_path / "real"), at()).store.close()
    state = tmp_path / "state"
    state.mkdir()
    (state / "sentinel.db").symlink_to(tmp_path / "real" / "sentinel.db")
    open_store(str(state), at()).store.close()
    os.chown(state / "sentinel.db", 1, 1, follow_symlinks=False)
    with pytest.raises(StoreError, match="is a link of another user"):
        open_store(str(state), at())


def test_a_state_that_hangs_is_asked_once(
    fuse: Fuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal lies beside it and is not waited for as well: each may cost 20 seconds."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    fuse.hold("lookup", "getattr", "statfs", "open")
    store = open_store(str(fuse.point), at(), patience=0.3).store
    store.take_lead("test", at())
    store.commit(remembered("kept"))
    assert store.trouble
    assert store.trouble.kept_in.startswith(str(tmp_path))
    assert fuse.withheld() == 1
    fuse.release()
    store.close()


def test_a_state_that_hangs_holds_up_no_ledger(fuse: Fuse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass begins without it: whoever needs it meets that at the first use."""
    monkeypatch.setattr(opening, "STATE_TIMEOUT_S", 0.1)
    fuse.hold("lookup", "getattr", "statfs", "open")
    books, gpus = (
        open_sql_audit_log(f"{fuse.point}/state", later=True),
        open_sql_gpu_ledger(f"{fuse.point}/state", LemonPolicy(), later=True),
    )
    with pytest.raises(StateUnavailable, match="no answer within"):
        open_sql_audit_log(f"{fuse.point}/state")
    fuse.release()
    with pytest.raises(StoreError):
        books.read_unresolved()
    for ledger in (books, gpus):
        ledger.close()
