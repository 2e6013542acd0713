"""The same name of many users: each is judged and told by itself."""

from pathlib import Path

from sentinel.checks.log.check import LATE
from sentinel.core.model import Finding, Status
from sentinel.core.settings import FilePath
from tests.checks.log.jobs import job
from tests.checks.log.test_check import Watch

OK, CRITICAL, UNKNOWN = Status.OK, Status.CRITICAL, Status.UNKNOWN


def look(watch: Watch, minutes: float = 0, limit: float = 10.0) -> dict[str, Finding]:
    return {f.subject: f for f in watch.report(minutes, limit=limit).findings}


def both(folder: Path) -> Watch:
    """ann's and bob's `train`, each with a log of its own."""
    for user in ("ann", "bob"):
        (folder / f"{user}.log").write_text("begins\n")
    jobs = (job(user="ann"), job(id="8", job_id="8", user="bob"))
    path = FilePath(folder / "%u.log")
    return Watch(*jobs, path=path, job="train", users=["*"], ask_nodes=False)


def test_a_hang_of_one_is_told_beside_the_progress_of_another(tmp_path: Path) -> None:
    """One name, two subjects, each with its user."""
    watch = both(tmp_path)
    look(watch)
    with (tmp_path / "bob.log").open("a") as log:
        log.write("goes on\n")
    found = look(watch, 20)
    assert {s: f.status for s, f in found.items()} == {"ann/train": CRITICAL, "bob/train": OK}
    assert found["ann/train"].labels["user"] == "ann"


def test_whose_job_has_ended_is_said_once_and_then_not_spoken_of(tmp_path: Path) -> None:
    """What was learned of it stays."""
    watch = both(tmp_path)
    look(watch)
    watch.jobs = watch.jobs[:1]
    found = look(watch, 1)
    assert found["bob/train"].summary.startswith("no such job is running")
    assert [*look(watch, 1)] == ["ann/train"]
    assert watch.memory["users"]["bob"]["places"]
    watch.jobs = ()
    look(watch, 1)
    assert {s: f.status for s, f in look(watch, 1).items()} == {"train": OK}


def test_whose_logs_there_was_no_time_for_is_unknown(tmp_path: Path) -> None:
    """Its alert stays as it was, and the next run begins anew."""
    watch = both(tmp_path)
    look(watch)
    found = look(watch, 20, limit=1.1)
    assert {s: f.summary for s, f in found.items()} == dict.fromkeys(
        ("ann/train", "bob/train"), LATE
    )
    assert {f.status for f in found.values()} == {UNKNOWN}
    assert {f.status for f in look(watch).values()} == {CRITICAL}
