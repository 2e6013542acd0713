"""Dumps of PyTorch's flight recorder as its versions 2.9 (NCCL) and 2.10 (gloo) write them."""

import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.stacks.parse.flight_recorder import Recording, read_recording

WORLD = {"0": ("default_pg", (0, 1, 2, 3))}


def entry(group: str, seq: int, name: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    return {
        "frames": [
            {"name": "all_reduce", "filename": "/x/site-packages/torch/d.py", "line": 9},
            {"name": "step", "filename": "/home/ann/train.py", "line": 88},
        ],
        "record_id": seq,
        "pg_id": int(group),
        "process_group": (group, "default_pg" if group == "0" else f"GROUP_{group}"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": name,
        "time_created_ns": 1_700_000_000_000_000_000 + seq,
        "input_sizes": [[4, 8]],
        "input_dtypes": ["Float"],
        "output_sizes": [[4, 8]],
        "output_dtypes": ["Float"],
        "state": "scheduled",
        "retired": False,
        "is_p2p": False,
        **more,
    }


def written(
    entries: Sequence[dict[str, Any]],
    status: Mapping[str, tuple[int, int]],
    groups: Mapping[str, tuple[str, tuple[int, ...]]] = WORLD,
) -> dict[str, Any]:
    """`status`: by group the last collective enqueued and the last completed."""
    return {
        "version": "2.9",
        "pg_config": {
            name: {"name": name, "desc": desc, "ranks": str(list(ranks))}
            for name, (desc, ranks) in groups.items()
        },
        "pg_status": {
            name: {
                "last_enqueued_collective": enqueued,
                "last_started_collective": -1,
                "last_completed_collective": completed,
            }
            for name, (enqueued, completed) in status.items()
        },
        "entries": list(entries),
    }


def waiting(seq: int = 5, name: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    """A rank that waits in a collective of all."""
    return written([entry("0", seq, name, **more)], {"0": (seq, seq - 1)})


def away(seq: int = 4) -> dict[str, Any]:
    """A rank that has ended this one and not come to the next."""
    return written([], {"0": (seq, seq)})


def read(dumps: Mapping[int, Any], *, as_json: bool = False) -> list[Recording]:
    return [
        read_recording(json.dumps(raw).encode() if as_json else pickle.dumps(raw, 2), rank)
        for rank, raw in dumps.items()
    ]
