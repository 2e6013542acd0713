"""Upgrades at random moments of a tick, of a service, of a mail under way and of a removal under way.
Nothing is lost, nothing comes twice, nothing is damaged.

SENTINEL_UPGRADES=20 tries more of them; each begins with its number as the seed.
"""

import json
import os
import random
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.packaging.wheels import NEXT, Site, build_wheel

COUNT = int(os.environ.get("SENTINEL_UPGRADES", "4"))
MOMENTS = ("tick", "service", "mail", "action")
LIMIT_S = 600.0
"""What takes longer hangs. On a busy machine pip alone may take minutes."""
FILE = """\
cluster: lab
state: {folder}/state
checks:
  marker: {{kind: exec, every: 1s, command: ["/bin/false"]}}
  switch: {{kind: exec, every: 1s, command: [/bin/sh, -c, "sleep 0.3; exit $(cat {folder}/code)"]}}
  old:
    kind: clean
    every: 1s
    root: {folder}/ckpt
    match: 'step(\\d+)'
    older_than: 1ms
    complete: weights
    remove: true
    limits: {{per_hour: 1000, share: 100%, cooldown: 0s}}
channels:
  book: {{kind: file, path: {folder}/book}}
  mail: {{kind: email, to: [o@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
"""
NEW_NAME = "\n\ndef only_the_new_one_has_it(text: str) -> str:\n    return text\n"
NEEDS_IT = "\n\nfrom sentinel.core.text import only_the_new_one_has_it as _\n"
IMPATIENT = "\n\nQUIET_S = 3.0\n"
"""The service takes a new version after 3 s instead of a minute."""
NOT_DONE = ("withdrawn", "error")
"""Ends of a removal after which the next pass goes on: it was not tried after all, or its program met
half of the new files."""

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """This version, and one whose modules need a name that this one lacks."""
    folder = tmp_path_factory.mktemp("wheels")
    needing = ("channels__file", "channels__smtp", "checks__exec", "actions__clean")
    new = {"core__text": NEW_NAME, **dict.fromkeys(needing, NEEDS_IT)}
    return {
        "old": build_wheel(folder, engine__package_watch=IMPATIENT),
        "new": build_wheel(folder, NEXT, **new),
    }


class Supervisor:
    """Starts the command again whenever it has ended, as systemd or a timer does, until it is ended."""

    def __init__(self, site: Site, folder: Path, *words: str) -> None:
        self._argv = [str(site.python.parent / "sentinel"), *words, "-c", f"{folder}/sentinel.yaml"]
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "INVOCATION_ID": "1"}
        self._log = (folder / "log").open("ab")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop)
        self.codes: list[int] = []

    def __enter__(self) -> "Supervisor":
        self._thread.start()
        return self

    def _loop(self) -> None:
        while not self._ending.is_set():
            try:
                self._process = subprocess.Popen(
                    self._argv, cwd="/", env=self._env, stdout=self._log, stderr=self._log
                )
            except FileNotFoundError:  # between the old files and the new ones
                self._ending.wait(0.2)
                continue
            self.codes.append(self._process.wait())
            self._ending.wait(0.2)

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._process.terminate()
        self._thread.join(60)
        self._log.close()


class Trial:
    """One site: its state, its two channels, and what the supervised sentinel is to notice."""

    def __init__(self, site: Site, folder: Path, smtp: SmtpServer) -> None:
        self.site, self.folder, self.smtp = site, folder, smtp
        self.turn(0)
        text = FILE.format(folder=folder, port=smtp.port)
        (folder / "sentinel.yaml").write_text(text)
        for number in range(1, 4):
            self.lay_checkpoint(number)

    def turn(self, code: int) -> None:
        fresh = self.folder / "code.new"
        fresh.write_text(str(code))
        fresh.replace(self.folder / "code")

    def lay_checkpoint(self, number: int) -> None:
        """So many files that its removal takes a moment."""
        folder = self.folder / "ckpt" / f"step{number}"
        folder.mkdir(parents=True)
        for name in ("weights", *map(str, range(1500))):
            (folder / name).write_text("x")

    def list_steps(self) -> list[int]:
        paths = (self.folder / "ckpt").glob("step*")
        return sorted(int(path.name.removeprefix("step")) for path in paths)

    def has_ended_removals(self) -> bool:
        outcomes = self.count_outcomes()
        return outcomes["intended"] == sum(outcomes[ended] for ended in ("done", *NOT_DONE))

    def has_sent_all(self) -> bool:
        """Whether no message waits; a pass that is ended here may leave one to the next."""
        return bool(json.loads(self.ask("status", "--json"))["unsent"] == [])

    def count_outcomes(self) -> Counter[str]:
        return Counter(row["what"] for row in self.list_actions())

    def list_actions(self) -> list[dict[str, Any]]:
        said = self.ask("nodes", "list", "--history", f"{self.folder}/ckpt", "--json")
        rows: list[dict[str, Any]] = json.loads(said)
        return rows

    def describe(self) -> str:
        return f"{self.list_steps()} {self.list_actions()}"

    def list_booked(self) -> list[dict[str, str]]:
        path = self.folder / "book"
        return [*map(json.loads, path.read_text().splitlines())] if path.exists() else []

    def list_told(self) -> dict[str, list[tuple[str, str, str]]]:
        """Check, reason and alert of each message about the two checks, in each channel."""
        names = ("check", "reason", "alert")
        booked = [tuple(str(row[name]) for name in names) for row in self.list_booked()]
        heads = [f"X-Sentinel-{name.capitalize()}" for name in names]
        mailed = [tuple(str(m.message[head]) for head in heads) for m in self.smtp.mails]
        told = {"book": booked, "mail": mailed}
        return {
            name: [(c, r, a) for c, r, a in rows if c in ("marker", "switch")]
            for name, rows in told.items()
        }

    def await_told(self, check: str, reason: str) -> None:
        def is_in_both() -> bool:
            return all(
                (check, reason) in [row[:2] for row in rows] for rows in self.list_told().values()
            )

        def describe() -> str:
            return (
                f"{check} {reason}: {self.list_told()}\n{(self.folder / 'log').read_text()[-3000:]}"
            )

        wait_until(is_in_both, describe, LIMIT_S)

    def ask(self, *words: str) -> str:
        argv = [str(self.site.python.parent / "sentinel"), *words]
        done = subprocess.run(
            [*argv, "-c", f"{self.folder}/sentinel.yaml"],
            cwd="/", env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def trial(tmp_path: Path, wheels: dict[str, Path], smtp: SmtpServer) -> Trial:
    site = Site(tmp_path / "venv")
    site.install(wheels["old"])
    return Trial(site, tmp_path, smtp)


@pytest.mark.parametrize("seed", range(COUNT))
def test_an_upgrade_at_a_random_moment(trial: Trial, wheels: dict[str, Path], seed: int) -> None:
    chance = random.Random(seed)
    moment = MOMENTS[seed % len(MOMENTS)]
    words = ("tick", "--all") if moment == "tick" else ("run",)
    with Supervisor(trial.site, trial.folder, *words) as supervisor:
        trial.await_told("marker", "firing")
        approach(trial, moment, chance)
        trial.site.install(wheels["new"])
        trial.turn(2)
        time.sleep(chance.uniform(0, 2))
        trial.smtp.release()
        trial.await_told("switch", "firing")
        if moment != "tick":
            wait_until(lambda: 75 in supervisor.codes, lambda: f"{supervisor.codes}", LIMIT_S)
        trial.turn(0)
        trial.await_told("switch", "resolved")
        trial.lay_checkpoint(9001)
        trial.lay_checkpoint(9002)  # the new version removes too
        wait_until(lambda: trial.list_steps() == [9001, 9002], trial.describe, LIMIT_S)
        wait_until(trial.has_ended_removals, trial.describe, LIMIT_S)
        wait_until(trial.has_sent_all, trial.describe, LIMIT_S)
    judge(trial, supervisor)


def approach(trial: Trial, moment: str, chance: random.Random) -> None:
    """Returns at a random moment of what is under way."""
    if moment == "mail":
        trial.smtp.hold()
        trial.turn(2)
        wait_until(lambda: trial.smtp.waiting, "a mail under way", LIMIT_S)
    elif moment == "action":
        for number in range(10, 18):
            trial.lay_checkpoint(number)
        first = trial.folder / "ckpt/step10/700"
        wait_until(lambda: not first.exists(), "a removal under way", LIMIT_S)
        return
    time.sleep(chance.uniform(0, 2))


def judge(trial: Trial, supervisor: Supervisor) -> None:
    """Each message once in each channel, one alert each; the state is whole and nothing is owed."""
    log = (trial.folder / "log").read_text()
    assert "internal error" not in log, log
    failed = Counter(supervisor.codes[:-1]) - Counter({0: len(supervisor.codes)})
    # What began between the old files and the new ones: it did nothing, and the next one does it.
    assert set(failed) <= {1, 75}, (supervisor.codes, log)
    ends = ("the installation is being replaced", "ended to be started again as the version")
    assert failed[75] == sum(map(log.count, ends)), log
    assert failed[1] == log.count("\nImportError: ") + log.count("\nModuleNotFoundError: "), log
    assert trial.ask("--version").strip() == f"sentinel {NEXT}"
    for name, told in trial.list_told().items():
        counts = Counter((check, reason) for check, reason, _ in told)
        wanted = [("marker", "firing"), ("switch", "firing"), ("switch", "resolved")]
        assert counts == Counter(wanted), name
        assert len({alert for _, _, alert in told}) == 2
    assert [*(trial.folder / "state").glob("*damaged*")] == []
    assert trial.has_sent_all()
    rows = trial.list_actions()
    assert trial.has_ended_removals(), rows
    not_done = {row["id"] for row in rows if row["what"] in NOT_DONE}
    removed = [
        step
        for row in rows
        if row["what"] == "intended" and row["id"] not in not_done
        for step in json.loads(row["commands"][0][-1])
    ]
    assert len(removed) == len({*removed}), removed
