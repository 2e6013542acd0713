"""Nights with random faults whose cost is known: what the ledger says of them beside the truth.

`python -m tests.checks.ledger_nights 20` prints a table for so many nights. Time is simulated; logs,
checkpoints and the checks that read them are real."""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from sentinel.core.cluster import JobEnd
from sentinel.report.run_account import RunAccount
from sentinel.user_files.session import shared_reader
from tests.checks.test_run_ledger import NOW, Site, running

LOOK_S = 60
STALE_S = 600
NIGHT_S = 6 * 3600


class Night:
    """A training from evening to morning, second by second, and a look once a minute."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice, self.site = random.Random(seed), Site(folder)
        self.at, self.step, self.saved, self.job = 0, 0, 0, 9
        self.saves: list[int] = []  # the steps of all checkpoints that can be loaded
        self.time = Counter[str]()  # seconds of each class that later steps cannot change
        self.steps: list[tuple[int, int]] = []  # step, seconds that it took
        self.redone = self.tail = self.held = 0
        self.changes = 0  # how many times the class of the time changed
        self.pace = self.dice.choice([4, 7, 11])
        self.interval = self.dice.choice([600, 1200, 1800])

    def live(self) -> None:
        """The whole night."""
        while self.at < NIGHT_S:
            self.run_job()
            self.pass_time("", self.dice.randint(60, 400))
        self.site.jobs = []
        self.pass_time("", 360)

    def pass_time(self, what: str, seconds: int) -> None:
        """Let time pass, with its looks."""
        for _ in range(seconds):
            self.at += 1
            if what:
                self.time[what] += 1
                self.held += 1
            if self.at % LOOK_S == 0:
                self.site.look(self.at / 60)
        self.changes += bool(what and seconds)

    def run_job(self) -> None:
        """One job, until something ends it."""
        self.job += 1
        began = self.at
        self.site.jobs = [running(str(self.job), began / 60, began / 60 - 1)]
        self.pass_time("startup", self.dice.randint(60, 300))
        state = self.train()
        ended = NOW + self.at
        self.site.jobs = []
        self.site.ends[str(self.job)] = JobEnd(
            job_id=str(self.job), state=state, exit_code=int(state == "FAILED"), started=NOW + began, ended=ended,
            nodes="node-[0-3]", cancelled_by="root" if state == "CANCELLED" else "",
        )  # fmt: skip

    def train(self) -> str:
        """Steps, checkpoints and faults. Returns the state in which the job ends."""
        until = self.at + self.dice.randint(2400, 7000)
        save_at = self.at + self.interval
        while self.at < NIGHT_S:
            self.make_step()
            if self.at >= save_at:
                self.save()
                save_at = self.at + self.interval
            if self.at < until:
                continue
            fault = self.dice.choice(["crash", "hang", "limit", "restart", "pause"])
            if fault == "crash":
                self.site.write("RuntimeError: CUDA error: uncorrectable ECC error encountered")
                self.pass_time("crashed", self.dice.randint(1, 20))
                self.go_back("redone")
                return "FAILED"
            if fault == "hang":
                self.pass_time("hung", self.dice.randint(STALE_S + 120, 3000))
                self.go_back("redone")
                return "CANCELLED"
            if fault == "limit":
                self.go_back("tail")
                return "TIMEOUT"
            if fault == "restart":
                self.site.write("RuntimeError: CUDA error: uncorrectable ECC error encountered")
                self.go_back("redone")
                self.pass_time("startup", self.dice.randint(90, 240))
            else:
                self.pass_time("hung", self.dice.randint(STALE_S + 120, 2000))
            until = self.at + self.dice.randint(2400, 7000)
            save_at = self.at + self.interval
        return "COMPLETED"

    def make_step(self) -> None:
        """One step, and its line."""
        begin = self.at
        self.pass_time("steps", self.pace)
        self.changes -= 1
        self.step += 1
        self.steps.append((self.step, self.at - begin))
        line = f" iteration {self.step:8d}/ 1000000 | lm loss: 2.0E+00 |"
        self.site.write(line)

    def save(self) -> None:
        """A checkpoint, with the lines that Megatron prints."""
        self.site.write(f"saving checkpoint at iteration {self.step}")
        self.pass_time("checkpoint", self.dice.randint(20, 90))
        self.site.save(self.step, self.at / 60)
        self.site.write(f"successfully saved checkpoint at iteration {self.step}")
        self.saved = self.step
        self.saves.append(self.step)

    def go_back(self, kind: str) -> None:
        """The steps since the last checkpoint are lost."""
        lost = sum(seconds for step, seconds in self.steps if step > self.saved)
        self.time[kind] += lost
        self.time["steps"] -= lost
        self.steps = [one for one in self.steps if one[0] <= self.saved]
        self.step = self.saved

    def truth(self) -> dict[str, float]:
        """Seconds of each class."""
        useful = sum(seconds for step, seconds in self.steps if step <= self.saved)
        provisional = sum(seconds for step, seconds in self.steps if step > self.saved)
        rest = {k: v for k, v in self.time.items() if k != "steps"}
        return {**rest, "useful": useful, "provisional": provisional}


def find_errors(night: Night, account: RunAccount) -> dict[str, tuple[float, float]]:
    """Classes that are wrong by more than 5 % and more than one look at each change: truth, said."""
    said = {name: time / 10**6 / 8 for name, time in account.parts.items()}
    truth = night.truth()
    allowed = LOOK_S * night.changes
    return {
        name: (truth.get(name, 0.0), said[name])
        for name in said
        if name not in ("provisional", "unknown")
        and abs(said[name] - truth.get(name, 0.0)) > max(0.05 * truth.get(name, 0.0), allowed)
    }


def describe_night(night: Night, account: RunAccount) -> str:
    """Seconds of each part, truth and ledger, and what is wrong."""
    truth = night.truth()
    row = [
        f"{name} {truth.get(name, 0):.0f}/{time / 8e6:.0f}"
        for name, time in account.parts.items()
        if time or truth.get(name)
    ]
    held = f"held {night.held}/{account.held / 8e6:.0f}"
    return f"{held}; {'; '.join(row)} {find_errors(night, account) or ''}"


def main(words: list[str]) -> int:
    """Print truth and ledger for each night. 1 if a part is wrong."""
    wrong = 0
    for seed in range(int(words[1]) if words[1:] else 0, int(words[0])):
        with tempfile.TemporaryDirectory() as folder, shared_reader():
            night = Night(Path(folder), seed)
            night.live()
            account = night.site.account()
        wrong += bool(find_errors(night, account))
        print(seed, describe_night(night, account), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
