"""Who obeys the mail and whose new job dies at once is told at the next look: by a service, a chain and
a crontab, on a real cluster."""

import json
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.cron import NONE, cron
from tests.lab.smtp import Mail, SmtpServer
from tests.lab.waiting import wait_until
from tests.service.test_first_mail import Newcomer, newcomer
from tests.service.watch import Watch

__all__ = ["newcomer"]

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

TOO = "; it started after the last message; "
AT_ONCE = "echo RuntimeError: again; sleep 4; exit 4"
"""It dies before a second look can see it run."""


def list_mails(smtp: SmtpServer, name: str = "llm-10b") -> list[Mail]:
    return [m for m in smtp.mails if name in str(m.message["Subject"])]


def await_second_mail(smtp: SmtpServer, limit: float, name: str = "llm-10b") -> str:
    def mails() -> list[Mail]:
        return list_mails(smtp, name)

    wait_until(lambda: len(mails()) > 1, f"a second mail: {mails()}", limit)
    body = mails()[1].message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def has_looked(status: str, within: float) -> bool:
    """Whether the check of kind job ran within so many seconds, by `status --json`."""
    rows = json.loads(status)["checks"] if status else []
    ages = [row["ran_s_ago"] for row in rows if row["kind"] == "job"]
    return bool(ages) and all(age is not None and age < within for age in ages)


def dies_again(one: Newcomer) -> None:
    """Their next job, submitted when a pass has just ended."""
    wait_until(lambda: has_looked(one.sentinel("status", "--json").stdout, 10), "a pass", 200)
    one.lab.sbatch(AT_ONCE, name="llm-10b", user=one.user)


def test_by_a_crontab(newcomer: Newcomer, tmp_path: Path) -> None:
    """A look a minute."""
    newcomer.trains()
    with cron(tmp_path) as within:
        newcomer.init(within=tuple(within))
        wait_until(newcomer.watches, "a first pass", 180)
        newcomer.go.touch()
        newcomer.wait_mail(120)
        dies_again(newcomer)
        assert TOO in await_second_mail(newcomer.smtp, 60 + 60)


def test_by_a_chain(newcomer: Newcomer) -> None:
    """A pass in half a minute, here."""
    newcomer.trains()
    newcomer.init(within=NONE)
    assert newcomer.sentinel("cron", "install", "--every", "30s").returncode == 0
    wait_until(newcomer.watches, "a first pass", 180)
    newcomer.go.touch()
    newcomer.wait_mail(120)
    dies_again(newcomer)
    assert TOO in await_second_mail(newcomer.smtp, 30 + 60)


def test_by_a_service(night: Watch, fresh: Lab, smtp: SmtpServer) -> None:
    """A look in forty seconds. `explain` has the command and the last lines of each death.

    The name is its own: a job of a newcomer before, which Slurm still knows, is one of the same name.
    """
    night.configure(
        """\
        checks:
          trainings: {{kind: job, every: 40s, name: llm-30b, users: ["*"]}}
        channels:
          mail: {{kind: email, to: [o@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
        """,
        port=smtp.port,
    )
    name, go = "llm-30b", fresh.work / "go"
    fresh.sbatch(f"until [ -e {go} ]; do sleep 1; done; exit 3", name=name)
    night.run()

    def looks(within: float) -> bool:
        return has_looked(night.say("status", "--json").stdout, within)

    wait_until(lambda: looks(60), "a first look", 60)
    go.touch()
    wait_until(lambda: list_mails(smtp, name), "the first mail", 150)
    wait_until(lambda: looks(12), "a look", 90)
    job = fresh.sbatch(AT_ONCE, name=name)
    assert TOO in await_second_mail(smtp, 40 + 60, name)
    done = night.say("explain", name)
    assert f"job {job} FAILED with exit code 4, ended " in done.stdout, done.stderr
    assert "| RuntimeError: again" in done.stdout
