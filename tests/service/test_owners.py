"""One administrator, many users: config/admin.yaml tells each of the deaths of their own jobs."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel.channels.mail_owners import OPT_OUT
from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.service.watch import Watch

ADMIN = Path(__file__).parents[2] / "config" / "admin.yaml"
USERS = 30


def administrator(smtp: SmtpServer) -> str:
    """What the example says about trainings and their owners; sizes, times and the mail server
    are this machine's."""
    text: dict[str, Any] = yaml.safe_load(ADMIN.read_text())
    training, channels = text["checks"]["trainings"], text["channels"]
    training |= {"min_gpus": 1, "every": "1s", "for": "0s"}
    mail = {"host": smtp.host, "port": smtp.port, "security": "none"}
    for name in ("oncall", "owners"):
        channels[name] = {
            k: v for k, v in channels[name].items() if k not in ("username", "password")
        } | mail
    for name in ("chat", "book"):
        channels[name] = {"kind": "file", "path": f"{{folder}}/{name}.jsonl"}
    kept = {key: text[key] for key in ("timezone", "slurm", "routes")}
    return yaml.safe_dump({**kept, "checks": {"trainings": training}, "channels": channels})


def begin(lab: Lab, user: User, script: str, **options: object) -> str:
    """A job of that user with one GPU; everybody calls it the same."""
    return lab.sbatch(script, name="train", user=user, gres="gpu:1", output="/dev/null", **options)


@pytest.mark.long
def test_each_death_is_told_to_its_owner_and_nobody_else_is_disturbed(
    fresh: Lab, night: Watch, smtp: SmtpServer
) -> None:
    """A third dies, a third ends well, a third goes on; all of them named alike. One of the dead
    wants no mail, and the address of another is not taken: that is told to the administrator."""
    users = [fresh.user(f"u{n}") for n in range(USERS)]
    dead, done = users[0::3], users[1::3]
    silent, unknown, *mourned = dead
    no_mail = silent.home / OPT_OUT
    no_mail.parent.mkdir(parents=True)
    no_mail.touch()
    for path in (no_mail.parent.parent, no_mail.parent, no_mail):
        os.chown(path, silent.uid, silent.gid)
    smtp.refuse(f"{unknown.name}@example.org")
    night.configure(administrator(smtp))
    ways = dict.fromkeys(dead, "exit 3") | dict.fromkeys(done, "exit 0")
    go = fresh.work / "go"
    for user in users:
        ending = ways.get(user, "exec sleep 600")
        begin(fresh, user, f"until [ -e {go} ]; do sleep 0.2; done; {ending}", time="10")
    service = night.run()
    names = {user.name for user in users}

    def told(reason: str) -> Counter[str]:
        lines = night.told(check="trainings", reason=reason)
        return Counter(str(line["labels"]["user"]) for line in lines)

    watched = f"{len(users)} trainings, all ok"

    def status() -> str:
        return str(night.say("status", "--json").stdout)

    service.wait_for(
        lambda: watched in status(),
        lambda: f"{watched}; it is\n{status()}\n{fresh.ask(['squeue', '--long'])}",
        60,
    )
    go.touch()
    service.wait_for(lambda: set(told("firing")) == {u.name for u in dead}, "every death", 60)
    wanted = {f"{user.name}@example.org" for user in mourned} | {"oncall@example.org"}
    service.wait_for(lambda: wanted <= _mailed(smtp).keys(), "a mail to each", 30)
    (alert,) = [str(n["alert"]) for n in night.told(subject=f"{silent.name}/train")]
    wait_until(lambda: f"{silent.name} wants none" in night.say("explain", alert).stdout, "why not")
    assert told("firing") == Counter(user.name for user in dead)
    assert _mailed(smtp) == Counter(wanted)
    assert names - {u.name for u in dead}  # and none of these was written to
    for mail in smtp.mails:
        (address,), body = mail.recipients, mail.message.get_body(("plain",)).get_content()
        owner = unknown.name if address.startswith("oncall") else address.partition("@")[0]
        assert f"{owner}/train" in mail.message["Subject"]
        assert "FAILED with exit code 3" in body
        assert not [name for name in names - {owner} if f"{name}/" in body]
    (given,) = [m for m in smtp.mails if m.recipients == ["oncall@example.org"]]
    assert "owners does not deliver" in str(given.message.get_body(("plain",)))


def _mailed(smtp: SmtpServer) -> Counter[str]:
    return Counter(address for mail in smtp.mails for address in mail.recipients)
