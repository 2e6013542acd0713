"""One administrator, many users with wishes of their own: each has what they asked for, and nobody else
notices."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from sentinel.slurm.script_wishes import MAX_SCRIPTS_PER_PASS
from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.service.watch import Start, Watch

NODES, USERS = 8, 32
"""A node of the lab has 4 CPUs, and each job takes one: all jobs run at once."""

HOSTILE_JOBS = int(os.environ.get("SENTINEL_TEST_HOSTILE_JOBS", "200"))
CONFIG = """\
checks:
  trainings: {{kind: job, match: 'train.*', users: ["*"], every: 1s, for: 0s}}
  progress:
    kind: log
    match: 'train.*'
    users: ["*"]
    every: 1s
    startup: 1s
    stale_after: 1h
    looks: "off"
channels:
  book: {{kind: file, path: "{folder}/book.jsonl"}}
  owners:
    kind: email
    to: owner
    owner_domain: example.org
    from: s@example.org
    host: {host}
    port: {port}
    security: none
"""
REFUSED = "stael=1m is none of off, stale=, progress="
OTHER = '{"APS": {"auto_resume_mode": "requeue"}}'


class Way(NamedTuple):
    """How a user submits a job."""

    wish: str = ""  # The value of --wish.
    comment: str = ""  # The value of sbatch's --comment.
    line: str = ""  # A line of the script, before its first command.
    said: str = "watched: job train"  # What `sentinel submit` says.


WAYS = {
    "off": Way(wish="off", said="your wish: no messages to you"),
    "plain": Way(),
    "stale": Way(wish="stale=1m"),
    "number": Way(wish=r'stale=1m progress="tokens (\d+)"'),
    "other tool": Way(comment=OTHER),
    "script off": Way(comment=OTHER, line="#SENTINEL off", said="not watched yet as you wish"),
    "script stale": Way(comment=OTHER, line="#SENTINEL stale=1m", said="not watched yet"),
    "script refused": Way(comment=OTHER, line="#SENTINEL stael=1m", said=REFUSED),
}
DYING = ("off", "plain", "other tool", "script off")
NASTY = (
    "sentinel:" + "x" * 1000,
    "sentinel: stale=00:12:00 {n}",
    'sentinel: {n} progress="(a+)+b',
    "sentinel: \x1b[31m{n}\nalice|train",
    r'sentinel: progress="(x+x+)+y {n}(\d+)" stale=1m',
)


class Cluster:
    """A lab on which all jobs of the test run at once, and sentinel beside it."""

    def __init__(self, lab: Lab, night: Watch, smtp: SmtpServer) -> None:
        self.lab, self.night, self.smtp = lab, night, smtp
        self.go = lab.work / "go"
        night.configure(CONFIG, host=smtp.host, port=smtp.port)

    def submit(self, user: User, name: str) -> None:
        """A job that dies once the file `go` is there, or stands still with its log."""
        way, line = WAYS[name], "echo iteration 1 tokens 5"
        dies = f"until [ -e {self.go} ]; do sleep 0.2; done; exit 3"
        text = f"#!/bin/sh\n{way.line}\n{line}\n{dies if name in DYING else 'exec sleep 900'}\n"
        script = self.lab.work / f"{user.name}.sh"
        script.write_text(text)
        words = ["-J", "train", "--time=20", f"--uid={user.uid}", f"--gid={user.gid}"]
        words += [f"--output={user.home}/log", f"--chdir={user.home}"]
        words += [f"--comment={way.comment}"] if way.comment else []
        wish = ["--wish", way.wish] if way.wish else []
        done = self._call_submit(*wish, *words, str(script))
        assert way.said in done.stderr
        if way.said == REFUSED:  # nothing was submitted, so this user does it without sentinel
            assert done.returncode == 64
            done = self.lab.run(["sbatch", *words, str(script)])
        assert done.returncode == 0, done.stderr

    def _call_submit(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "sentinel", "submit", *words],
            env={**self.night.env, "SENTINEL_CONFIG": str(self.night.config)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def submit_hostile(self, user: User) -> None:
        """Held jobs, half of them with nasty comments, half with as nasty scripts."""
        for number in range(HOSTILE_JOBS):
            nasty = NASTY[number % len(NASTY)].replace("{n}", str(number))
            comment = {"comment": nasty} if number % 2 else {}
            line = nasty.replace("sentinel:", "#SENTINEL ", 1).replace("\n", " ")
            self.lab.sbatch(f"{line}\nsleep 1", name="train", user=user, hold=True, **comment)

    def count_mails(self, words: str = "") -> "Counter[str]":
        """Mails with these words, by user."""
        found = Counter[str]()
        for mail in self.smtp.mails:
            body = mail.message.get_body(("plain",)).get_content()
            if words in f"{mail.message['Subject']}\n{body}":
                found[mail.recipients[0].partition("@")[0]] += 1
        return found

    def wait_for_mails(self, words: str, users: "Counter[str]", limit: float) -> None:
        """Until each of these users has one."""
        wait_until(
            lambda: self.count_mails(words) == users,
            lambda: f"{words!r}: {self.count_mails(words)}",
            limit,
        )

    def count_running(self) -> int:
        return len(self.lab.ask(["squeue", "-h", "-a", "-t", "running", "-o", "%i"]).split())


@pytest.fixture
def cluster(tmp_path: Path, service: Start, smtp: SmtpServer) -> Iterator[Cluster]:
    with Lab(nodes=NODES) as lab:
        yield Cluster(lab, Watch(tmp_path, service, lab.env), smtp)


def wait_for_scripts(service: Service, night: Watch) -> None:
    """Until each script of the others has had its turn: users take turns, so those who submitted one
    script wait for as many as there are users at most."""
    service.wait_for(
        lambda: night.status()["scripts"]["read"] > USERS,
        lambda: f"scripts to be read: {night.status()['scripts']}",
        240,
    )


@pytest.mark.lab
@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_each_wish_is_followed_or_refused_and_nobody_else_is_disturbed(cluster: Cluster) -> None:
    """32 users who submit by `sentinel submit`, and one with hundreds of hostile jobs: who dies is in the
    operator's book, with and without a wish; mails are as each user asked; the hostile one has few. No
    script is asked for twice."""
    night, lab = cluster.night, cluster.lab
    users = {lab.user(f"u{n}"): [*WAYS][n % len(WAYS)] for n in range(USERS)}
    mallory = lab.user("mallory")
    cluster.submit_hostile(mallory)
    for user, way in users.items():
        cluster.submit(user, way)
    wait_until(lambda: cluster.count_running() == USERS, lambda: str(cluster.count_running()), 60)
    service = night.run()

    def those(*ways: str) -> "Counter[str]":
        return Counter(user.name for user, way in users.items() if way in ways)

    cluster.wait_for_mails(REFUSED, those("script refused"), 300)
    still = those("stale", "number", "script stale")
    cluster.wait_for_mails("CRITICAL (your wish)", still, 240)
    wait_for_scripts(service, night)
    cluster.go.touch()
    dead, loud = those(*DYING), those("plain", "other tool")
    service.wait_for(
        lambda: (
            {str(n["labels"]["user"]) for n in night.told(check="trainings", reason="firing")}
            >= set(dead)
        ),
        "every death",
        180,
    )
    cluster.wait_for_mails("exit code 3", loud, 180)
    assert set(cluster.count_mails()) == {*still, *loud, *those("script refused"), mallory.name}
    assert cluster.count_mails()[mallory.name] <= 20
    assert not night.told(reason="wish")
    assert not [mail for mail in cluster.smtp.mails if len(mail.recipients) != 1]
    assert "your wish" not in night.say("status", "--json").stdout
    before = night.status()["scripts"]["read"]
    (line,) = [r for r in lab.ask(["sdiag"]).splitlines() if "REQUEST_BATCH_SCRIPT" in r]
    count = int(line.partition("count:")[2].split()[0])
    assert before <= count <= before + MAX_SCRIPTS_PER_PASS
    assert count <= USERS - len(those("off", "stale", "number")) + HOSTILE_JOBS // 2
