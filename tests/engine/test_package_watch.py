"""When another version under a running service counts, and what follows."""

from sentinel.engine.package_watch import (
    QUIET_S,
    REPEAT_S,
    TELL_AFTER_S,
    PackageVerdict,
    PackageWatch,
    Signature,
)

OLD: Signature = {"__init__.py": (10, 1), "a.py": (5, 1)}
NEW: Signature = {"__init__.py": (10, 2), "a.py": (6, 2)}
SAME = PackageVerdict()


class Disk:
    """What lies there, what the new version says of itself, and the time."""

    def __init__(self) -> None:
        self.files: Signature | None = OLD
        self.proof, self.proofs, self.now = "", 0, 0.0
        self.watch = PackageWatch(OLD, lambda: self.files, self.prove, lambda: self.now)

    def prove(self) -> str:
        self.proofs += 1
        return self.proof

    def after(self, seconds: float) -> PackageVerdict:
        self.now += seconds
        return self.watch.look()


def test_nothing_changes() -> None:
    disk = Disk()
    assert [disk.after(15) for _ in range(100)] == [SAME] * 100
    assert disk.proofs == 0


def test_a_new_version_is_taken_when_it_has_been_still() -> None:
    """Not while files are still being written."""
    disk = Disk()
    disk.files = {"__init__.py": (10, 2)}
    assert disk.after(15) == SAME
    disk.files = NEW
    assert [disk.after(15) for _ in range(4)] == [SAME] * 4
    assert disk.proofs == 0
    assert disk.after(QUIET_S) == PackageVerdict(restart=True)
    assert disk.proofs == 1


def test_a_mount_that_blinks_is_no_change() -> None:
    """It is away for less than a minute, and what comes back is what was there."""
    disk = Disk()
    disk.files = None
    assert [disk.after(15), disk.after(30)] == [SAME, SAME]
    disk.files = OLD
    assert [disk.after(20), disk.after(QUIET_S)] == [SAME, SAME]
    assert disk.proofs == 0


def test_a_removal_is_said_and_survived() -> None:
    """The process goes on with what it has loaded. The log has it at once, people after five minutes."""
    disk = Disk()
    disk.files = None
    disk.after(1)
    gone = "its package is gone"
    assert disk.after(QUIET_S) == PackageVerdict(news=gone)
    assert disk.after(TELL_AFTER_S - QUIET_S - 1) == SAME
    assert disk.after(1) == PackageVerdict(trouble=gone)
    disk.files = OLD
    assert disk.after(15) == SAME


def test_nobody_is_told_of_an_upgrade_that_is_followed_by_a_restart() -> None:
    """Five minutes count from the first change, also where the installation takes long."""
    disk = Disk()
    disk.files, disk.proof = NEW, "restart it"
    assert [disk.after(100), disk.after(100)] == [SAME, PackageVerdict(news="restart it")]
    disk.files = {**NEW, "a.py": (7, 3)}
    assert disk.after(100) == SAME
    assert disk.after(100) == PackageVerdict(trouble="restart it", news="restart it")


def test_a_version_that_fails_its_proof_is_said_hourly() -> None:
    """And taken once it passes: the configuration may have been mended in the meantime."""
    disk = Disk()
    disk.files, disk.proof = NEW, "config check: 3: unknown key"
    disk.after(1)
    assert disk.after(TELL_AFTER_S) == PackageVerdict(trouble=disk.proof, news=disk.proof)
    quiet = [disk.after(60) for _ in range(59)]
    assert quiet == [PackageVerdict(trouble=disk.proof)] * 59
    assert disk.after(60) == PackageVerdict(trouble=disk.proof, news=disk.proof)
    assert disk.proofs == 2
    disk.proof = ""
    assert disk.after(REPEAT_S) == PackageVerdict(restart=True)


def test_another_attempt_at_once_when_files_change_again() -> None:
    """A second upgrade mends the first."""
    disk = Disk()
    disk.files, disk.proof = NEW, "a.py is not as it was packed"
    disk.after(1)
    assert disk.after(QUIET_S).news
    disk.files, disk.proof = {**NEW, "a.py": (7, 3)}, ""
    assert disk.after(1) == SAME
    assert disk.after(QUIET_S) == PackageVerdict(restart=True)
