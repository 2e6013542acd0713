"""Two sentinels that watch each other through real files."""

import asyncio
import os
from pathlib import Path

import pytest

from sentinel.channels.heartbeat import FilePulse, make_pulse
from sentinel.config.settings import HeartbeatSettings
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Status
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration
from sentinel.engine import peer_check
from sentinel.engine.peer_check import PeerLook, PeerWatch
from sentinel.testing import START
from tests.engine.worlds import Book, Says, Scene, play, world
from tests.lab.fuse import Fuse

PATIENCE = 900.0


def beat(path: Path, well: bool = True) -> None:
    asyncio.run(FilePulse(str(path), 5.0).send_heartbeat(well, ""))


class Walk:
    """A watch, what it remembers, and a clock that walks."""

    def __init__(self, path: Path) -> None:
        self.watch, self.seen = PeerWatch(FilePath(path), PATIENCE), PeerLook(None, {})  # type: ignore[arg-type]

    def at(self, seconds: float, base: Instant = START) -> Status:
        self.seen = self.watch.check_peer(self.seen.memory, shift_instant(base, seconds))
        return self.seen.finding.status


def test_a_file_that_changes_is_a_sign_of_life(tmp_path: Path) -> None:
    """However old it is; one that does not is none, whatever its times say."""
    path = tmp_path / "peer"
    walk = Walk(path)
    beat(path)
    assert walk.at(0) is Status.OK
    beat(path)
    assert walk.at(899) is Status.OK
    assert walk.at(899 + 899) is Status.OK
    path.touch()
    assert walk.at(899 + 900) is Status.CRITICAL
    beat(path)
    assert walk.at(899 + 901) is Status.OK


def test_a_file_that_is_not_there_is_no_sign_of_life(tmp_path: Path) -> None:
    """The first look begins the wait: a peer that was never started is told of."""
    walk = Walk(tmp_path / "peer")
    assert [walk.at(0), walk.at(899), walk.at(900)] == [Status.OK, Status.OK, Status.CRITICAL]
    assert "No such file or directory" in walk.seen.finding.summary
    assert "for 15m" in walk.seen.finding.summary


def test_a_file_that_goes_and_comes_back_unchanged_is_no_sign(tmp_path: Path) -> None:
    """A mount that flickers."""
    path = tmp_path / "peer"
    beat(path)
    text = path.read_text()
    walk = Walk(path)
    walk.at(0)
    path.unlink()
    walk.at(500)
    path.write_text(text)
    assert walk.at(900) is Status.CRITICAL


def test_a_clock_that_jumps_makes_nobody_dead(tmp_path: Path) -> None:
    """Within a boot its own clock counts."""
    path = tmp_path / "peer"
    beat(path)
    walk = Walk(path)
    walk.at(0)
    jumped = Instant(wall=START.wall + 10**12, boot=START.boot, mono=START.mono + 60 * 10**6)
    walk.seen = walk.watch.check_peer(walk.seen.memory, jumped)
    assert walk.seen.finding.status is Status.OK


def test_another_path_begins_anew(tmp_path: Path) -> None:
    """After a change of the configuration; so does a memory that is not understood."""
    walk = Walk(tmp_path / "a")
    walk.at(0)
    walk.watch = PeerWatch(str(tmp_path / "b"), PATIENCE)
    assert walk.at(900) is Status.OK
    walk.seen = PeerLook(walk.seen.finding, {"peer": ["?"]})
    assert walk.at(1800) is Status.OK


def test_a_file_system_that_hangs_is_no_sign_of_life(
    fuse: Fuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process waits for it; the watch goes on."""
    monkeypatch.setattr(peer_check, "READ_TIMEOUT_S", 0.3)
    fuse.hold("open")
    walk = Walk(fuse.point / "data")
    assert [walk.at(0), walk.at(900)] == [Status.OK, Status.CRITICAL]
    assert "still waits for it" in walk.seen.finding.summary
    fuse.release()


def test_a_blind_watcher_leaves_its_file_alone(tmp_path: Path) -> None:
    """So its peer tells of it; a missing folder is an error and not more."""
    path = tmp_path / "own"
    beat(path, well=False)
    assert not path.exists()
    with pytest.raises(ChannelError, match="No such file or directory"):
        beat(tmp_path / "nowhere" / "own")


def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    """Where others may write too, it could lead root to any file."""
    victim, path = tmp_path / "victim", tmp_path / "beat"
    victim.write_text("precious")
    draft = tmp_path / f"beat.new-{os.uname().nodename}"
    for again in (False, True):  # also where a draft was left by one that was killed
        if again:
            draft.write_text("left")
        else:
            draft.symlink_to(victim)
        asyncio.run(FilePulse(str(path), 5.0).send_heartbeat(True, ""))
        assert (victim.read_text(), b"mark" in path.read_bytes()) == ("precious", True)
        assert (path.is_symlink(), draft.exists()) == (False, False)


def test_a_sign_is_written_whole_and_never_twice_the_same(tmp_path: Path) -> None:
    """And leaves nothing else behind."""
    pulse_, path, seen = FilePulse(str(tmp_path / "own"), 5.0), tmp_path / "own", set()
    for _ in range(5):
        asyncio.run(pulse_.send_heartbeat(True, ""))
        seen.add(path.read_text())
    assert len(seen) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["own"]


def test_people_hear_of_a_dead_peer_and_of_its_return(tmp_path: Path) -> None:
    """Also when the watcher itself was restarted in between."""
    path, book = tmp_path / "peer", Book()
    a_world = world({"disk": Says()}, {"book": book})
    a_world.peer = PeerWatch(FilePath(path), PATIENCE)
    beat(path)

    async def first(scene: Scene) -> None:
        await scene.engine.check_self()

    async def second(scene: Scene) -> None:
        for seconds in (899, 1):
            scene.clock.advance(seconds)
            await scene.engine.check_self()
        await scene.engine.deliver_due()
        await asyncio.to_thread(FilePulse(str(path), 5.0)._write_file)
        await scene.engine.check_self()
        await scene.engine.deliver_due()

    store = play(first, a_world)
    play(second, a_world, store)
    assert [(n.subject, n.reason) for n in book.got] == [("peer", "firing"), ("peer", "resolved")]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, "url"),
        ({"url": Secret("ping.example.org")}, "url"),
        ({"file": FilePath("/a"), "peer": FilePath("/a")}, "peer"),
        ({"peer": FilePath("/a"), "peer_after": Duration(1)}, "peer_after"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, object], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        HeartbeatSettings(**fields)  # type: ignore[arg-type]
    assert caught.value.path == (key,)


def test_one_may_only_watch() -> None:
    """Then there is nothing to send."""
    assert make_pulse(HeartbeatSettings(peer=FilePath("/a"))) is None
