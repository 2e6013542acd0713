"""One row of the tables of trainers: how a trainer writes its log."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

TrainerTier = Literal["trainer", "library", "bar"]
"""Which of several writers counts: a training loop before the library that it uses, and both before
a bar."""

BAR_REGEX = r"\d{1,3}%(?:\|[^|\n]{0,200}\|)? *"
"""tqdm's percentage and bar, followed by the count. On a narrow line the bar is left out:
tqdm/std.py, `format_meter`."""

BARE_BAR_REGEX = rf"(?:^|\]:|\| ) *{BAR_REGEX}(\d+)/\d+ \["
"""A bar without a description."""

CHECKPOINT, EVALUATION = "checkpoint", "evaluation"


class Trainer(Struct, frozen=True, kw_only=True):
    """One row.

    name: What it is called.
    source: The repository's files that print the lines.
    words: Each line that counts contains one of these. Searching for them is quick.
    numbers: The numbers that advance, by name, each with a pattern whose group captures it. The one
        that advances most often comes first.
    loss, norm: The names of its loss and gradient norm in its lines. Empty if it prints none.
    seconds: A pattern that captures the time of one step, and the length of its unit in seconds.
    needs: A pattern that must be somewhere in the log, if the line alone is not enough.
    variants: Patterns elsewhere in the log that give it a further name.
    covers: Rows that its own lines would also fit, or that it is based on.
    done: A line that says that the training has reached its end.
    phases: Lines that begin and end a period without progress.
    """

    name: str
    source: str
    words: tuple[str, ...]
    numbers: Mapping[str, str] = {}
    loss: str = ""
    norm: str = ""  # The gradient norm's name in its lines. Empty: it prints none.
    seconds: tuple[str, float] | None = None
    tier: TrainerTier = "trainer"  # Whether it is a trainer, a library or a bar.
    needs: str = ""
    variants: Mapping[str, str] = {}
    covers: tuple[str, ...] = ()
    done: str = ""
    phases: Mapping[str, tuple[str, str]] = {}
