"""Where labs live and what each index stands for; everything else derives from the index."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: where `python -m tests.lab` runs."""

BASE = Path("/run/sentinel-lab")
"""Not below /tmp: munged refuses sockets in directories that others can write to."""

INDEXES = range(100)


def directory(index: int) -> Path:
    """The folder of lab `index`; it exists only while the lab does."""
    return BASE / str(index)


def prefix(index: int) -> str:
    """Begins the name of everything the lab makes on the machine: links, namespaces, users."""
    return f"slab{index}"
