"""The cells that a command which checks once shows on a terminal. A kind declares its columns, and
one table draws them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

ColumnForm = Literal[
    "text",
    "word",
    "slot",
    "line",
    "status",
    "count",
    "number",
    "size",
    "bar",
    "share",
    "percent",
    "celsius",
    "time",
    "curve",
    "change",
    "rate",
    "week",
    "day",
    "full",
]
"""How a value is drawn.

`word`: text that is not wrapped. `slot`: a PCI bus id, without the domain that all have. `line`: text on a line of its own, cut to the width of the screen. `bar`, `share`: a long and a
short bar of a percentage. `time`: seconds. `curve`: several numbers as a sparkline. From the values
in the state: `change` since the last run, `rate` per minute, the last `week` as a sparkline, the
last `day` as a strip of on and off, and when it is `full`.
"""

GPU_PREFIX = "GPU-"
"""The beginning of the UUID of an NVIDIA GPU."""

PCI_DOMAIN = "00000000:"
"""The domain of a GPU's bus id on nearly every machine; people leave it out."""

Cell = float | int | str | bool | None | tuple[float, ...]


class Column(Struct, frozen=True):
    """A column of the table that `sentinel check` prints on a terminal. One without any value is left out.

    `value`: a key of the finding's values, of its labels, or of the cells shown beside it;
    `subject`, `status` and `summary` are the finding's own. `optional`: it is left out where the
    terminal is narrow, the last such column first.
    """

    title: str  # Its heading.
    value: str
    form: ColumnForm = "text"
    optional: bool = False


class SubjectCells(Struct, frozen=True, kw_only=True):
    """The cells of one subject that a terminal shows beside its finding. They are neither stored
    nor sent.

    cells: Further values for the columns, by name.
    rows: The parts of the subject, such as directories or checkpoints: a row each of the kind's
        ROW_COLUMNS.
    notes: Lines in place of the finding's details, if `rows` show the rest of them.
    """

    cells: Mapping[str, Cell] = {}
    rows: tuple[Mapping[str, Cell], ...] = ()
    notes: str = ""


FILESYSTEM_COLUMNS = (
    Column("file system", "subject"),
    Column("space", "used_percent", "bar"),
    Column("size", "size_bytes", "size", optional=True),
    Column("free", "free_bytes", "size"),
    Column("inodes", "inodes_used_percent", "share"),
    Column("last week", "used_percent", "week"),
    Column("full in", "full_in_s", "full"),
    Column("status", "status", "status"),
)
"""The columns of every kind whose findings are file systems."""
