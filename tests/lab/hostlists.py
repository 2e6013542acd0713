"""Slurm's own answer to what a hostlist stands for, and lists to ask it about."""

import random
import subprocess
from pathlib import Path

CONF = """ClusterName=lists
SlurmctldHost=localhost
NodeName=n1
PartitionName=p Nodes=n1
"""
"""scontrol reads a file even where it asks no controller."""

_HEADS = (
    "n",
    "node",
    "gpu",
    "gpu-",
    "r1c",
    "a.b-",
    "N_",
    "x0",
    "z00",
    "rack",
    "10.0.0.",
    "b9",
    "7",
)


class Scontrol:
    """`scontrol show hostnames`, without a cluster."""

    def __init__(self, folder: Path) -> None:
        self._conf = folder / "slurm.conf"
        self._conf.write_text(CONF)

    def names(self, hostlist: str) -> list[str] | None:
        """Each once, in its order; None where it refuses the list."""
        done = subprocess.run(
            ["scontrol", "show", "hostnames", hostlist],
            env={"SLURM_CONF": str(self._conf), "PATH": "/usr/bin:/bin:/usr/local/bin"},
            capture_output=True,
            text=True,
            timeout=20,
        )
        refused = "Invalid hostlist" in done.stdout + done.stderr
        return None if refused else list(dict.fromkeys(done.stdout.split("\n")[:-1]))


def drawn(rng: random.Random) -> str:
    """A well-formed list: up to four items, three brackets, uneven widths, repeated names."""
    items = [_item(rng) for _ in range(rng.choice((1, 1, 2, 4)))]
    return rng.choice((",", ",", ", ", " ")).join(items)


def _item(rng: random.Random) -> str:
    brackets = rng.choice((0, 1, 1, 1, 2, 2, 3))
    if not brackets:
        return rng.choice(_HEADS) + rng.choice((_number(rng), "x", f"{_number(rng)}-ib"))
    return "".join(rng.choice(_HEADS) + _bracket(rng) for _ in range(brackets))


def _bracket(rng: random.Random) -> str:
    return f"[{','.join(_range(rng) for _ in range(rng.choice((1, 1, 2, 3))))}]"


def _range(rng: random.Random) -> str:
    first = _number(rng)
    if rng.random() < 0.5:
        return first
    return f"{first}-{str(int(first) + rng.randrange(6)).zfill(rng.choice((0, len(first), 3)))}"


def _number(rng: random.Random) -> str:
    return str(rng.randrange(rng.choice((12, 120, 1100)))).zfill(rng.choice((0, 0, 2, 3, 4)))
