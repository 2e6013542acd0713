"""What six trainers print, and when: lines in the shapes of their real logs.

The texts follow Megatron-LM (training_log in megatron/training/training.py), DeepSpeed (log_dist,
the Torch checkpoint engine), Lightning (TQDMProgressBar), Hugging Face's Trainer (ProgressCallback),
torchtitan (components/metrics.py, checkpoint.py) and MaxText with Orbax. All numbers are invented.
"""

from collections.abc import Callable, Iterator
from random import Random

from msgspec import Struct

Line = tuple[float, str]
"""Seconds since the job started, and what is written then."""


class Shape(Struct, frozen=True, kw_only=True):
    """A trainer: how to find its progress, and ranges of seconds or steps for its habits.

    `step`: seconds a step; `log_every`: steps between lines; `save` and `evaluate`: every how
    many steps, and how many seconds they take. `announced`: evaluations begin with a line.
    """

    name: str
    progress: str
    step: tuple[float, float]
    log_every: tuple[int, ...]
    save_hours: tuple[float, float]
    save_takes: tuple[float, float]
    evaluate_hours: tuple[float, float]
    evaluate_takes: tuple[float, float]
    text: Callable[[int, float, Random], str]
    saving: str
    saved: str
    evaluating: str
    evaluated: str
    start_takes: tuple[float, float] = (120, 900)
    end: str = "\n"


def megatron(step: int, loss: float, random: Random) -> str:
    return (
        f" [2026-03-08 03:12:05] iteration {step:8d}/  250000 | consumed samples: {step * 1024:12d}"
        f" | elapsed time per iteration (ms): {random.uniform(5e3, 3e4):.1f} | learning rate:"
        f" 1.365E-05 | global batch size:  1024 | lm loss: {loss:.6E} | loss scale: 1.0 |"
        f" grad norm: 0.227 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def deepspeed(step: int, loss: float, random: Random) -> str:
    return (
        f"[2026-03-08 03:12:05,123] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0,"
        f" lr=[1.3e-05], mom=[(0.9, 0.95)]\nsteps: {step} loss: {loss:.4f} iter time (s): 5.123"
    )


def lightning(step: int, loss: float, random: Random) -> str:
    done = step % 5000
    return (
        f"Epoch {step // 5000}:  {done // 50}%|███       | {done}/5000 "
        f"[{done // 60}:00<1:00:00,  1.61it/s, v_num=4242, train_loss={loss:.3f}]"
    )


def trainer(step: int, loss: float, random: Random) -> str:
    return (
        f"{{'loss': {loss:.4f}, 'grad_norm': 0.5463, 'learning_rate': 1.9e-05, "
        f"'epoch': {step / 20000:.4f}}}"
    )


def torchtitan(step: int, loss: float, random: Random) -> str:
    return (
        f"[rank0]:[titan] 2026-03-08 03:12:05,051 - root - INFO - step: {step:2d}  "
        f"loss: {loss:8.5f}  grad_norm:  0.5926  memory:  9.46GiB(64.99%)  tps: 7,094  mfu: 40.1%"
    )


def maxtext(step: int, loss: float, random: Random) -> str:
    return (
        f"completed step: {step}, seconds: {random.uniform(4, 9):.3f}, TFLOP/s/device: 181.2, "
        f"Tokens/s/device: 3511.0, total_weights: 524288, loss: {loss:.3f}"
    )


SHAPES = (
    Shape(
        name="Megatron",
        progress=r"iteration\s+(\d+)/",
        step=(5, 30),
        log_every=(1, 1, 5),
        save_hours=(1, 3),
        save_takes=(40, 400),
        evaluate_hours=(1, 4),
        evaluate_takes=(60, 240),
        text=megatron,
        saving="saving checkpoint at iteration {step} to /gpfs/ckpt in torch_dist format",
        saved="  successfully saved checkpoint from iteration {step} to /gpfs/ckpt",
        evaluating="",  # Megatron says nothing before it has evaluated
        evaluated=" validation loss at iteration {step} | lm loss value: 2.4E+00 | lm loss PPL: 11",
    ),
    Shape(
        name="DeepSpeed",
        progress=r"\bstep=(\d+)",
        step=(3, 12),
        log_every=(1, 10),
        save_hours=(1, 4),
        save_takes=(30, 300),
        evaluate_hours=(3, 6),
        evaluate_takes=(60, 300),
        text=deepspeed,
        saving="[INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving /ckpt/{step}/mp_0.pt...",
        saved="[INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saved /ckpt/{step}/mp_0.pt.",
        evaluating="",
        evaluated="eval: step {step} perplexity 11.2",
    ),
    Shape(
        name="Lightning",
        progress=r"\| (\d+)/\d+ \[",
        step=(0.4, 2),
        log_every=(10, 20),
        save_hours=(1, 2),
        save_takes=(10, 120),
        evaluate_hours=(0.5, 2),
        evaluate_takes=(60, 600),
        text=lightning,
        saving="",
        saved="",
        evaluating="Validation DataLoader 0:   0%|          | 0/200 [00:00<?, ?it/s]",
        evaluated="",
        end="\r",
    ),
    Shape(
        name="HF Trainer",
        progress=r"'epoch': ([\d.]+)",
        step=(1, 6),
        log_every=(10, 10, 25),
        save_hours=(0.5, 2),
        save_takes=(20, 240),
        evaluate_hours=(1, 3),
        evaluate_takes=(60, 420),
        text=trainer,
        saving="Saving model checkpoint to /ckpt/checkpoint-{step}",
        saved="",
        evaluating="***** Running Evaluation *****",
        evaluated="{{'eval_loss': 2.41, 'eval_runtime': 120.1}}",
    ),
    Shape(
        name="torchtitan",
        progress=r"\bstep:\s+(\d+)",
        step=(1, 8),
        log_every=(10, 10, 5),
        save_hours=(0.5, 2),
        save_takes=(10, 180),
        evaluate_hours=(2, 6),
        evaluate_takes=(60, 180),
        text=torchtitan,
        saving="[rank0]:[titan] INFO - Saving the checkpoint (or staging if async is enabled).",
        saved="[rank0]:[titan] INFO - Finished saving the checkpoint in 31.2 seconds.",
        evaluating="",
        evaluated="[rank0]:[titan] INFO - validate step: {step}  loss:  2.9",
    ),
    Shape(
        name="JAX",
        progress=r"completed step: (\d+)",
        step=(4, 12),
        log_every=(1, 10),
        save_hours=(1, 3),
        save_takes=(5, 90),
        evaluate_hours=(1, 4),
        evaluate_takes=(30, 240),
        text=maxtext,
        saving="I0308 [process=0][thread=MainThread] Started async saving checkpoint to /ckpt/{step}.",
        saved="I0308 [process=0][thread=async_save] Finished async_save (blocking + background).",
        evaluating="",
        evaluated="eval metrics after step: {step}, loss=2.4, total_weights=1048576",
        start_takes=(300, 1200),
    ),
)


class Habits(Struct, frozen=True, kw_only=True):
    """One training: its own step time, its own pauses every so many steps."""

    step: float
    log_every: int
    save_every: int
    save_takes: float
    evaluate_every: int
    evaluate_takes: float


def habits(shape: Shape, random: Random) -> Habits:
    """Drawn once for a training; each pause then varies by a third around them."""
    step = random.uniform(*shape.step)
    return Habits(
        step=step,
        log_every=random.choice(shape.log_every),
        save_every=_steps(random.uniform(*shape.save_hours), step),
        save_takes=random.uniform(*shape.save_takes),
        evaluate_every=_steps(random.uniform(*shape.evaluate_hours), step),
        evaluate_takes=random.uniform(*shape.evaluate_takes),
    )


def _steps(hours: float, step: float) -> int:
    """A round number of steps, as people write into their configurations."""
    return max(50, round(hours * 3600 / step / 50) * 50)


def job(shape: Shape, own: Habits, first: int, seconds: float, random: Random) -> Iterator[Line]:
    """The lines of one job that trains from step `first` on for so long."""
    now = random.uniform(*shape.start_takes)
    yield 5.0, "NCCL version 2.21.5+cuda12.4\nloading checkpoint from /ckpt" + shape.end
    step = first
    while now < seconds:
        step += 1
        now += _step_time(own.step, random)
        if step % own.log_every == 0:
            loss = 2.0 + 5.0 / (1 + step / 1000) + random.gauss(0, 0.02)
            yield now, shape.text(step, loss, random) + shape.end
        if step % own.save_every == 0:
            yield from _said(now, shape.saving, step, shape.end)
            now += own.save_takes * random.uniform(0.67, 1.33)
            yield from _said(now, shape.saved, step, shape.end)
        if step % own.evaluate_every == 0:
            yield from _said(now, shape.evaluating, step, shape.end)
            now += own.evaluate_takes * random.uniform(0.67, 1.33)
            yield from _said(now, shape.evaluated, step, shape.end)


def _step_time(usual: float, random: Random) -> float:
    """Some steps are slow, and a few a day wait for a network or a file system."""
    luck = random.random()
    if luck < 3e-4:
        return usual + random.uniform(20, 75)
    return usual * (random.uniform(1.5, 4) if luck < 0.01 else random.uniform(0.97, 1.06))


def _said(at: float, text: str, step: int, end: str) -> Iterator[Line]:
    if text:
        yield at, text.format(step=step) + end
