"""Logs of past jobs in the public form of Megatron-LM, second by second, with their truth.

Lines: training_log() of megatron/training/training.py, save_checkpoint() of
megatron/training/checkpointing.py; the end: slurmstepd (job_common.c of Slurm)."""

from datetime import datetime, timezone

EPOCH = 1_714_903_200
"""2024-05-05 10:00:00 UTC."""


class PastJobLog:
    """The log of one job, as it grows."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.step = at, 0
        self.lines = ["using world size: 16, data-parallel size: 4"]
        self.say("initializing torch distributed ...")

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def stamp(self) -> str:
        return f"{datetime.fromtimestamp(EPOCH + self.at, tz=timezone.utc):%Y-%m-%d %H:%M:%S}"

    def say(self, words: str) -> None:
        self.lines.append(f"[{self.stamp()}] {words}")

    def train(self, count: int, pace: int = 5) -> None:
        for _ in range(count):
            self.at += pace
            self.step += 1
            self.say(
                f"iteration {self.step:8d}/ 1000000 | consumed samples: {self.step * 16} | elapsed "
                "time per iteration (ms): 5000.0 | learning rate: 3.0E-04 | global batch size:    16"
                " | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 0.512 |"
            )

    def save(self, seconds: int) -> None:
        self.say(f"saving checkpoint at iteration {self.step:7d} to /ckpt in torch_dist format")
        self.at += seconds
        self.say(f"  successfully saved checkpoint from iteration {self.step:7d} to /ckpt")

    def end_by(self, why: str) -> None:
        moment = self.stamp().replace(" ", "T")
        self.lines.append(
            f"slurmstepd: error: *** JOB 4711 ON gpu01 CANCELLED AT {moment}{why} ***"
        )


def make_life() -> PastJobLog:
    """100 s of start, 200 steps, 40 s of saving, 100 steps."""
    log = PastJobLog()
    log.at += 95
    log.train(200)
    log.save(40)
    log.train(100)
    return log
