"""The folder in which evidence is kept, without any Slurm."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from gzip import decompress
from pathlib import Path
from shutil import rmtree

import pytest
from msgspec.structs import replace

from sentinel.checks.users import own_user_name
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.job import StackTarget
from sentinel.stacks.bundle import MAX_BUNDLES_KEPT, EvidenceNotSaved, save_bundle
from sentinel.stacks.parse import StacksDump
from tests.checks.log.jobs import job
from tests.stacks.parse.making import dump, step

TARGET = StackTarget(job=job(nodes="node-0"), nodes=("node-0",))
AT = 1_800_000_000
NOBODY = 65534


def seen(at: int = AT) -> StacksDump:
    found = dump(step(1, 2))
    return StacksDump(job="7+1", at=at, nodes=found.nodes)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sentinel-bundle-"))
    folder.chmod(0o711)
    yield folder
    rmtree(folder)


@pytest.fixture
def nowhere(tmp_path: Path) -> SlurmClient:
    """A host on which no command of Slurm finds any."""
    return SlurmClient(environ={"PATH": str(tmp_path)})


def test_what_slurm_does_not_tell_is_said_and_the_stacks_are_kept(
    tmp_path: Path, nowhere: SlurmClient
) -> None:
    """Whoever restarts the job destroys the rest; two of one second are two."""
    folder = tmp_path / "state" / "evidence"
    places = [Path(save_bundle(str(folder), nowhere, TARGET, seen())) for _ in range(2)]
    assert [p.name for p in places] == ["job-7+1-20270115T080000Z", "job-7+1-20270115T080000Z-1"]
    assert places[0].stat().st_mode & 0o777 == 0o700
    assert "all_reduce" in (places[0] / "stacks.txt").read_text()
    assert json.loads(decompress((places[0] / "stacks.json.gz").read_bytes()))["job"] == "7+1"
    for name in ("job.txt", "steps.txt", "nodes.txt", "log.txt"):
        assert (places[0] / name).read_text().startswith("not known: ")


def test_the_index_says_what_is_there_and_what_was_not_to_be_had(
    tmp_path: Path, nowhere: SlurmClient
) -> None:
    """People read it first; what came from users is only text, and all is for its owner alone."""
    (node,) = seen().nodes
    told = replace(node, kernel="NVRM: Xid 79\n\x1b[31mred", ras="SERVER PROTOCOL 2\nOK")
    place = Path(save_bundle(str(tmp_path), nowhere, TARGET, replace(seen(), nodes=(told,))))
    index = (place / "index.txt").read_text()
    assert index.splitlines()[0] == "job 7+1 () of , 2027-01-15 08:00:00 UTC"
    assert "all 2 ranks in " in index
    assert "kernel.txt" in index
    assert index.splitlines()[-1] == (
        "not to be had: flight-recorder.txt, flight-recorder.json.gz, gpus.txt"
    )
    assert (place / "kernel.txt").read_text() == "== node-0\nNVRM: Xid 79\n\\x1b[31mred\n"
    listed = {line.split(" ")[0] for line in index.splitlines()}
    assert {p.name for p in place.iterdir()} <= listed | {"index.txt"}
    assert {p.stat().st_mode & 0o777 for p in place.iterdir()} == {0o600}


@pytest.mark.root
def test_the_jobs_owner_may_read_it_and_nobody_else_and_change_nothing(
    place: Path, nowhere: SlurmClient
) -> None:
    """What root keeps root reads again: a link in the place of a file would show everybody any file.
    The kernel's log tells of others, and stays with root."""
    (node,) = seen().nodes
    told = replace(seen(), user="nobody", nodes=(replace(node, kernel="NVRM: Xid 79"),))
    kept = Path(save_bundle(str(place / "evidence"), nowhere, TARGET, told))

    def may(user: int, *argv: str) -> bool:
        return subprocess.run(argv, user=user, group=user, extra_groups=[], capture_output=True, cwd="/").returncode == 0  # fmt: skip

    for name in ("index.txt", "stacks.txt", "stacks.json.gz", "job.txt"):
        assert may(NOBODY, "cat", f"{kept}/{name}")
        assert not may(NOBODY - 1, "cat", f"{kept}/{name}")
    assert may(NOBODY, "ls", str(kept))
    assert not may(NOBODY, "cat", f"{kept}/kernel.txt")
    assert not may(NOBODY, "ls", str(kept.parent))
    for argv in (["rm", "-f"], ["tee", "-a"], ["chmod", "777"]):
        assert not may(NOBODY, *argv, f"{kept}/index.txt")
    assert not may(NOBODY, "ln", "-s", "/etc/shadow", f"{kept}/more.txt")
    assert {p.stat().st_uid for p in (kept, *kept.iterdir())} == {0}
    # Who keeps it is not always root, and has to remove it one day.
    assert kept.stat().st_mode & 0o707 == 0o700
    assert {p.stat().st_mode & 0o707 for p in kept.iterdir()} == {0o600}


def test_ones_own_and_an_unknown_users_are_for_oneself_alone(
    tmp_path: Path, nowhere: SlurmClient
) -> None:
    """A user's sentinel keeps evidence of that user's jobs: no list is needed."""
    for user in (own_user_name(), "no-such-user"):
        kept = Path(save_bundle(str(tmp_path / user), nowhere, TARGET, replace(seen(), user=user)))
        assert kept.stat().st_mode & 0o777 == 0o700
        assert {p.stat().st_mode & 0o777 for p in kept.iterdir()} == {0o600}


def test_only_the_newest_are_kept_and_nothing_else_is_touched(
    tmp_path: Path, nowhere: SlurmClient
) -> None:
    """By the moment in their names; what somebody else put there stays."""
    for name in ("notes", "job-7-later", "job-7-20200101T000000Z.tar"):
        (tmp_path / name).mkdir()
    victim = tmp_path / "notes" / "file"
    victim.touch()
    (tmp_path / "job-6-20200101T000000Z").symlink_to(tmp_path / "notes")
    old = [tmp_path / f"job-{n}-20250101T0000{n % 60:02}Z-{n}" for n in range(MAX_BUNDLES_KEPT)]
    for place in old:
        place.mkdir()
    place = Path(save_bundle(str(tmp_path), nowhere, TARGET, seen()))
    kept = [p for p in tmp_path.iterdir() if p.is_dir() and not p.is_symlink()]
    assert len(kept) == MAX_BUNDLES_KEPT + 3
    assert place in kept
    assert victim.exists()


def test_nobodys_hung_jobs_push_out_the_evidence_of_somebody_else(
    tmp_path: Path, nowhere: SlurmClient
) -> None:
    """The oldest of whoever has most goes, whatever the name of a job says."""
    told = replace(seen(AT), user="alice")
    hers = Path(save_bundle(str(tmp_path), nowhere, TARGET, told))
    flood = [replace(seen(AT + n), user="mallory", name="x of alice, y") for n in range(1, 103)]
    places = [Path(save_bundle(str(tmp_path), nowhere, TARGET, one)) for one in flood]
    assert hers.is_dir()
    assert [p for p in places if p.is_dir()] == places[3:]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, nowhere: SlurmClient) -> None:
    """What was seen is shown all the same."""
    (tmp_path / "file").touch()
    with pytest.raises(EvidenceNotSaved, match=r"was not saved in .*Not a directory"):
        save_bundle(str(tmp_path / "file" / "evidence"), nowhere, TARGET, seen())
