"""200 submissions by ten users at once: within two passes each is watched, or its author was told why not."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.service.test_wishes import CONFIG, OTHER, REFUSED, Way
from tests.service.watch import Start, Watch

USERS, JOBS_OF_EACH = 10, 20
JOBS_PER_CORE = 50
"""Jobs that only wait share a core, so that all of them run at once."""

WAYS = {
    "off": Way(wish="off", said="your wish: no messages to you"),
    "off in script": Way(line="#SENTINEL off", said="your wish: no messages to you"),
    "plain": Way(),
    "stale": Way(wish="stale=1m"),
    "number": Way(line=r'#SENTINEL stale=1m progress="tokens (\d+)"'),
    "refused": Way(wish="stael=1m", said=REFUSED),
    "other tool": Way(comment=OTHER),
    "other tool, script off": Way(
        comment=OTHER, line="#SENTINEL off", said="not watched yet as you wish"
    ),
}


class Submission(NamedTuple):
    """One call of `sentinel submit`."""

    user: User
    name: str  # Of the job.
    way: str  # The key in WAYS.


class Cluster:
    """A lab on which all of these jobs run at once, and sentinel beside it."""

    def __init__(self, lab: Lab, night: Watch, smtp: SmtpServer) -> None:
        self.lab, self.night, self.smtp = lab, night, smtp
        self.go = lab.work / "go"
        night.configure(CONFIG, host=smtp.host, port=smtp.port)
        lab.ask(["scontrol", "update", "partition=main", f"oversubscribe=force:{JOBS_PER_CORE}"])

    def submit(self, one: Submission) -> None:
        """A job that prints one number, and dies once the file `go` is there."""
        way, user = WAYS[one.way], one.user
        script = self.lab.work / f"{one.name}.sh"
        wait = f"until [ -e {self.go} ]; do sleep 2; done; exit 3"
        script.write_text(f"#!/bin/sh\n{way.line}\necho iteration 1 tokens 5\n{wait}\n")
        words = ["-J", one.name, "--time=30", f"--uid={user.uid}", f"--gid={user.gid}"]
        words += [f"--output={user.home}/{one.name}", f"--chdir={user.home}"]
        words += [f"--comment={way.comment}"] if way.comment else []
        wish = ["--wish", way.wish] if way.wish else []
        done = subprocess.run(
            [sys.executable, "-m", "sentinel", "submit", *wish, *words, str(script)],
            env={**self.night.env, "SENTINEL_CONFIG": str(self.night.config)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert way.said in done.stderr
        assert done.returncode == (64 if way.said == REFUSED else 0), done.stderr

    def count_running(self) -> int:
        return len(self.lab.ask(["squeue", "-h", "-a", "-t", "running", "-o", "%i"]).split())

    def make_pass(self) -> None:
        done = self.night.say("tick", "--all", limit=400.0)
        assert done.returncode == 0, done.stderr

    def list_mailed(self, words: str, names: set[str]) -> set[tuple[str, str]]:
        """User and job of each mail with these words."""
        found = set[tuple[str, str]]()
        for mail in self.smtp.mails:
            text = str(mail.message.get_body(("plain",)).get_content())
            text = f"{mail.message['Subject']}\n{text}"
            (recipient,) = mail.recipients
            if words in text:
                told = {*re.split(r"[^\w-]+", text)} & names
                found |= {(recipient.partition("@")[0], name) for name in told}
        return found


@pytest.fixture
def cluster(tmp_path: Path, service: Start, smtp: SmtpServer) -> Iterator[Cluster]:
    with Lab(nodes=4) as lab:
        yield Cluster(lab, Watch(tmp_path, service, lab.env), smtp)


@pytest.mark.lab
@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_each_submission_is_followed_within_two_passes_or_its_author_was_told(
    cluster: Cluster,
) -> None:
    """A standstill of a minute is mailed at the third pass only where the wish was followed by the
    second one. A death is mailed to everybody but those who said `off`."""
    users = [cluster.lab.user(f"u{n}") for n in range(USERS)]
    made = [
        Submission(user, f"train-{at}-{n}", [*WAYS][(at + n) % len(WAYS)])
        for at, user in enumerate(users)
        for n in range(JOBS_OF_EACH)
    ]
    with ThreadPoolExecutor(USERS) as desks:
        list(desks.map(cluster.submit, sorted(made, key=lambda one: one.name[::-1])))

    def those(*ways: str) -> set[tuple[str, str]]:
        return {(one.user.name, one.name) for one in made if one.way in ways}

    running = len(made) - len(those("refused"))
    wait_until(
        lambda: cluster.count_running() == running, lambda: str(cluster.count_running()), 240
    )
    cluster.make_pass()
    cluster.make_pass()
    time.sleep(61)  # `stale=1m`, the least that a wish may ask for: the logs have to be that old
    cluster.make_pass()
    names = {one.name for one in made}
    assert cluster.list_mailed("CRITICAL (your wish)", names) == those("stale", "number")
    cluster.go.touch()
    dying = those(*WAYS) - those("refused")

    def all_are_told() -> bool:
        cluster.make_pass()
        told = cluster.night.told(check="trainings", reason="firing")
        return {str(line["subject"]).rpartition("/")[2] for line in told} >= {
            name for _, name in dying
        }

    wait_until(all_are_told, lambda: "every death in the operator's book", 400)
    mailed = cluster.list_mailed("exit code 3", names)
    loud = those("plain", "stale", "number", "other tool")
    assert mailed >= loud
    # Of these the scripts wait for their turn, as their authors were told.
    assert mailed <= loud | those("other tool, script off")
