"""Nights with other faults than those of `ledger_nights`: what the ledger says of them beside the truth.

`python -m tests.checks.other_nights 10 2000` prints a table for ten nights from seed 2000 on."""

import shutil
import sys
import tempfile
from pathlib import Path

from sentinel.core.cluster import JobEnd
from sentinel.user_files.session import shared_reader
from tests.checks.ledger_nights import NIGHT_S, STALE_S, Night, describe_night, find_errors
from tests.checks.test_run_ledger import NOW, running


class OtherNight(Night):
    """Deaths in the start and while saving, a checkpoint that cannot be loaded, a standstill in which
    the job is cancelled before anybody could call it one, a requeue, and a start on the same node."""

    def run_job(self) -> None:
        """One job; some die in their start, some run again by a requeue."""
        self.job += 1
        began = self.at
        self.site.jobs = [running(str(self.job), began / 60, began / 60 - 1)]
        if self.dice.random() < 0.2:
            self.pass_time("startup", self.dice.randint(70, 500))
            state = "FAILED"
        else:
            self.pass_time("startup", self.dice.randint(60, 300))
            state = self.train()
        self.end_job(began, state)

    def end_job(self, began: int, state: str) -> None:
        """The job is gone, and accounting says how it ended."""
        self.site.jobs = []
        self.site.ends[str(self.job)] = JobEnd(
            job_id=str(self.job), state=state, exit_code=int(state == "FAILED"), started=NOW + began,
            ended=NOW + self.at, nodes="node-[0-3]",
        )  # fmt: skip

    def train(self) -> str:
        """Steps, checkpoints and one fault that ends the job."""
        until, save_at = self.at + self.dice.randint(2400, 7000), self.at + self.interval
        while self.at < NIGHT_S:
            self.make_step()
            if self.at >= save_at:
                self.save()
                save_at = self.at + self.interval
            if self.at < until:
                continue
            return self.end_by(self.dice.choice(["saving", "older", "short", "node", "silent"]))
        return "COMPLETED"

    def end_by(self, fault: str) -> str:
        """The fault, and the state of the job after it."""
        if fault == "saving":
            self.site.write(f"saving checkpoint at iteration {self.step}")
            self.pass_time("checkpoint", self.dice.randint(20, 60))
            self.site.write("OSError: [Errno 28] No space left on device")
            self.pass_time("crashed", self.dice.randint(1, 20))
        elif fault == "older":
            self.site.write("RuntimeError: CUDA error: an illegal memory access was encountered")
            self.pass_time("crashed", self.dice.randint(1, 20))
            self.lose_newest_checkpoint()
        elif fault == "short":
            self.pass_time("hung", self.dice.randint(60, STALE_S // 2))
        elif fault == "silent":
            self.pass_time("hung", self.dice.randint(STALE_S + 120, 4000))
        self.go_back("redone")
        return "NODE_FAIL" if fault == "node" else "FAILED"

    def lose_newest_checkpoint(self) -> None:
        """The newest checkpoint is damaged, so its owner removes it and goes on from the one before."""
        if len(self.saves) > 1:
            shutil.rmtree(self.site.saves / f"step{self.saves.pop()}")
            self.saved = self.saves[-1]


def main(words: list[str]) -> int:
    """Print truth and ledger for each night. 1 if a part is wrong."""
    wrong = 0
    for seed in range(int(words[1]), int(words[1]) + int(words[0])):
        with tempfile.TemporaryDirectory() as folder, shared_reader():
            night = OtherNight(Path(folder), seed)
            night.live()
            account = night.site.account()
        wrong += bool(find_errors(night, account))
        print(seed, describe_night(night, account), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
