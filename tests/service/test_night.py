"""A night on a real cluster: a training dies, is told of, is submitted again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.lab.smtp import Mail, SmtpServer
from tests.service.watch import Watch

NAME = ("Größtes Sprachmodell der Wölt — этап 2, 176B ☃ " * 2)[:80]
SLEEP = "exec sleep 300"

CONFIG = """\
checks:
  training:
    kind: job
    every: {every}
    {wait}
    name: {name}
    pulse_log: {folder}/pulse.log
    {more}
channels:
  oncall: {{kind: email, to: [ops@example.org], from: sentinel@example.org, host: localhost, port: {port}, security: none}}
"""


def test_a_dead_training_is_mailed_within_one_interval_and_its_return_in_the_same_thread(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """80 characters, blanks, letters of three scripts: cancelled, the mail names job and state
    after the next run; submitted again, the resolved mail refers to the same message."""
    assert len(NAME) == 80
    configure(night, smtp, name=NAME, every="2s")
    first = fresh.sbatch(SLEEP, name=NAME)
    fresh.wait_state(first, "RUNNING")
    service = started(night)
    assert smtp.mails == []
    fresh.scancel(first)
    fresh.wait_state(first, "CANCELLED")
    before = runs(night)
    (bad,) = smtp.wait(1)
    assert runs(night) - before <= 2, "one run may have been at work, the next tells"
    second = fresh.sbatch(SLEEP, name=NAME)
    _, good = smtp.wait(2)
    assert bad.message["X-Sentinel-Subject"] == good.message["X-Sentinel-Subject"] == NAME
    assert f"job {first} was cancelled" in body(bad)
    assert subject(bad).startswith(f"CRITICAL lab training {NAME}: job {first} was cancelled")
    assert subject(good).startswith(f"RESOLVED lab training {NAME}: ")
    assert f"job {second}" in body(good)  # on a busy machine it waits when it is seen
    assert bad.message["References"] == good.message["References"]
    assert bad.message["Message-ID"] != good.message["Message-ID"]
    assert service.terminate() == 0
    assert len(smtp.mails) == 2


def test_the_mail_names_who_cancelled_the_job_where_accounting_knows(
    tmp_path: Path, service: Callable[..., Service], fresh_accounting: Lab, smtp: SmtpServer
) -> None:
    """squeue does not say by whom; sacct does."""
    night = Watch(tmp_path, service, fresh_accounting.env)
    user = fresh_accounting.user("alice")
    configure(night, smtp, name="train", more=f"users: [{user.name}]")
    job = fresh_accounting.sbatch(SLEEP, name="train", user=user)
    fresh_accounting.wait_state(job, "RUNNING")
    started(night)
    fresh_accounting.ask(["scancel", job])
    (mail,) = smtp.wait(1)
    assert f"job {job} was cancelled by root" in body(mail)


@pytest.mark.long
def test_what_its_own_user_has_cancelled_is_a_note_and_no_mail(
    tmp_path: Path, service: Callable[..., Service], fresh_accounting: Lab, smtp: SmtpServer
) -> None:
    """They know; whoever looks is told."""
    night = Watch(tmp_path, service, fresh_accounting.env)
    user = fresh_accounting.user("alice")
    configure(night, smtp, name="train", wait="", more=f"users: [{user.name}]")
    job = fresh_accounting.sbatch(SLEEP, name="train", user=user)
    fresh_accounting.wait_state(job, "RUNNING")
    watching = started(night)
    fresh_accounting.ask(["scancel", job], user=user)
    pulse = night.folder / "pulse.log"
    note = f"ok train: stopped by its own user: job {job} was cancelled by {user.name}"
    watching.wait_for(lambda: note in pulse.read_text(), "the note", 40)
    assert smtp.mails == []


@pytest.mark.nightly
def test_by_default_a_death_is_mailed_by_the_pass_that_finds_it(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """One `tick` looks twice, half a minute apart, and sends. Who submitted again after the mail is
    told of the next death as fast as of the first."""
    configure(night, smtp, wait="")
    job = fresh.sbatch("sleep 2; exit 7", name="train")
    assert night.say("tick").returncode == 0
    fresh.wait_state(job, "FAILED")
    assert night.say("tick", "--all", limit=120).returncode == 0
    (mail,) = smtp.mails
    assert "FAILED with exit code 7" in subject(mail)
    second = fresh.sbatch("sleep 2; exit 7", name="train")
    night.say("tick", "--all")
    fresh.wait_state(second, "FAILED")
    night.say("tick", "--all", limit=120)
    assert [subject(m).split()[0] for m in smtp.mails] == ["DIED", "RESOLVED", "DIED"]


def test_the_mail_about_a_failed_job_has_its_exit_code_and_last_lines(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """What a person would look up next is in the mail."""
    configure(night, smtp)
    job = fresh.sbatch("for i in 1 2 3 4; do echo step $i; sleep 1; done; exit 7", name="train")
    fresh.wait_state(job, "RUNNING")
    started(night)
    (mail,) = smtp.wait(1)
    assert "FAILED with exit code 7" in subject(mail)
    assert "    step 1\n    step 2\n    step 3\n    step 4\n" in body(mail)


def test_a_train_of_array_tasks_is_told_of_at_its_end_only(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """Between two tasks of `%1` nothing runs, and that is no death."""
    configure(night, smtp)
    train = fresh.sbatch("exec sleep 1", name="train", array="0-3%1")
    service = started(night)
    service.wait_for(lambda: fresh.states(train) != [] and not waiting(fresh, train), "its end", 40)
    (mail,) = smtp.wait(1)
    assert f"job {train}_3 completed with exit code 0" in body(mail)
    assert runs(night) > 4


def test_a_finished_training_is_not_told_of_until_the_proof_is_gone(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """`done_when: {file: …}` keeps the alert away exactly while the file is there."""
    done = night.folder / "DONE"
    configure(night, smtp, more=f"done_when: {{file: {done}}}")
    job = fresh.sbatch(f"sleep 2; touch {done}", name="train")
    fresh.wait_state(job, "RUNNING")
    service = started(night)
    fresh.wait_state(job, "COMPLETED")
    before = runs(night)
    service.wait_for(lambda: runs(night) >= before + 3, "runs after the end")
    assert smtp.mails == []
    done.unlink()
    assert "not running and nothing is queued" in subject(smtp.wait(1)[0])


def test_a_restart_in_the_middle_repeats_nothing_and_ends_the_same_thread(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """The second service knows what the first has told, and what it was about."""
    configure(night, smtp)
    first = fresh.sbatch(SLEEP, name="train")
    fresh.wait_state(first, "RUNNING")
    service = started(night)
    fresh.scancel(first)
    smtp.wait(1)
    assert service.terminate() == 0
    service, before = night.run(), runs(night)
    service.wait_for(lambda: runs(night) >= before + 3, "runs of the second service")
    assert len(smtp.mails) == 1
    assert service.terminate() == 0
    second = fresh.sbatch(SLEEP, name="train")
    fresh.wait_state(second, "RUNNING")
    night.run()
    bad, good = smtp.wait(2)
    assert subject(good).startswith("RESOLVED")
    assert f"job {first} was cancelled" in body(bad)
    assert bad.message["References"] == good.message["References"]


def configure(
    night: Watch,
    smtp: SmtpServer,
    *,
    name: str = "train",
    every: str = "1s",
    more: str = "",
    wait: str = "for: 0s",
) -> None:
    quoted = json.dumps(name)
    night.configure(CONFIG, name=quoted, every=every, more=more, wait=wait, port=smtp.port)


def started(night: Watch) -> Service:
    """A service that has looked once."""
    service = night.run()
    service.wait_for(lambda: runs(night) >= 1, "the first run")
    return service


def waiting(lab: Lab, job: str) -> bool:
    return bool({"PENDING", "RUNNING", "COMPLETING"} & set(lab.states(job)))


def runs(night: Watch) -> int:
    """How often the check has run: the pulse has a line a run."""
    path = night.folder / "pulse.log"
    return len(path.read_text().splitlines()) if path.exists() else 0


def subject(mail: Mail) -> str:
    """A long one may be folded after its name."""
    return str(mail.message["Subject"]).strip()


def body(mail: Mail) -> str:
    part = mail.message.get_body(("plain",))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


@pytest.mark.long
def test_a_training_that_died_is_submitted_again_and_that_is_told(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """Opt-in; once, as it was, and never two at a time."""
    script = night.folder / "train.sh"
    script.write_text(
        "#!/bin/sh\necho iteration 5; sleep 3; echo RuntimeError: NCCL communicator was aborted; exit 1\n"
    )
    configure(night, smtp, wait="", more="on_death: [resubmit]")
    job = fresh.ask(["sbatch", "--parsable", "-Jtrain", "-N2", str(script), "x"]).strip()
    fresh.wait_state(job, "RUNNING")
    assert night.say("tick").returncode == 0
    fresh.wait_state(job, "FAILED")
    assert night.say("tick", "--all", limit=120).returncode == 0
    rows = fresh.ask(
        ["squeue", "-h", "-t", "all", "-n", "train", "-O", "JobID,NumNodes,Command:200"]
    )
    # The lab remembers the jobs of earlier tests.
    again = [row.split() for row in rows.splitlines() if int(row.split()[0]) > int(job)]
    assert [(row[1], row[2:]) for row in again] == [("2", [str(script), "x"])]
    assert any("resubmit" in subject(mail) for mail in smtp.mails)
