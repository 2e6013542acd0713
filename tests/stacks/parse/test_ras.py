"""Answers of NCCL's RAS in all their forms, broken and hostile ones too."""

import json
from typing import Any

import pytest

from sentinel.core.errors import CannotTell
from sentinel.stacks.parse.ras import read_ras

HEAD = "SERVER PROTOCOL 2\nOK\n"


def rank(number: int, count: int) -> dict[str, Any]:
    return {
        "rank": number, "host": "10.0.0.1", "pid": 100 + number, "cuda_dev": number, "nvml_dev": number,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": False},
        "collective_counts": {"Broadcast": 2, "AllReduce": count},
    }  # fmt: skip


def missing(number: int, *, dead: bool) -> dict[str, Any]:
    return {**rank(number, 0), "status": {"unresponsive": not dead, "considered_dead": dead}}


def comm(ranks: list[Any], lost: list[Any] | None = None, name: str = "0xa") -> dict[str, Any]:
    more = {"missing_ranks": lost} if lost is not None else {}
    size = len(ranks) + len(lost or ())
    return {"hash": name, "secondary_hash": "0x1:0x2", "size": size, "ranks": ranks, **more}


def told(*comms: dict[str, Any]) -> str:
    body = {
        "nccl_version": "2.28.9",
        "communicators_count": len(comms),
        "communicators": list(comms),
    }
    return HEAD + "OK\n" + json.dumps(body, indent=2) + "\n"


TEXT = """\
SERVER PROTOCOL 2
OK
ERROR: Unknown command "SET FORMAT json"
NCCL version 2.27.3 compiled with CUDA 12.8
Job summary
===========
Errors
======
INCOMPLETE
  The missing process:
  Process 555 on node 10.0.0.9 managing GPU 7

Warnings
========
#0-0 (c0ffee12) MISMATCH
  Communicator ranks have different AllReduce operation counts
  255 ranks have launched up to operation 79500
  Rank 17 has launched up to operation 79499 -- GPU 1 managed by process 4711 on node 10.0.0.2

"""


def test_json_names_who_is_behind_in_a_communicator_that_counts() -> None:
    """And no communicator of one rank: it waits for nobody."""
    text = told(comm([rank(0, 9), rank(1, 9), rank(2, 8)]), comm([rank(0, 1)], name="0xb"))
    found = read_ras(text)
    (odd,) = found.find_behind({"0xa 0x1:0x2": 5})
    assert (odd.pid, odd.rank, odd.odd_words) == (102, 2, "RAS: 8 of 9 AllReduce launched")
    assert list(found.launched) == ["0xa 0x1:0x2"]
    assert found.find_behind({}) == ()
    assert found.find_behind(found.launched) == ()
    assert found.lost_processes == ()


def test_a_release_that_always_says_0_accuses_nobody() -> None:
    """Where nothing counts all are equal, and where only some do nothing was seen counting."""
    found = read_ras(told(comm([rank(0, 0), rank(1, 0)])))
    assert (found.odd, found.find_behind(found.launched)) == ((), ())


def test_a_missing_comma_is_no_reason_to_know_nothing() -> None:
    """Wherever it is left out at the end of a line, the text says the same."""
    whole = told(comm([rank(0, 9), rank(1, 8)], [missing(2, dead=True), missing(3, dead=False)]))
    gaps = [
        n
        for n in range(len(whole))
        if whole[n : n + 2] == ",\n" and whole[n + 2 :].lstrip()[0] == '"'
    ]
    assert len(gaps) > 20
    for at in gaps:
        assert read_ras(whole[:at] + whole[at + 1 :]) == read_ras(whole)
    assert [one.pid for one in read_ras(whole).lost_processes] == [102, 103]


def test_text_of_older_releases_says_the_same() -> None:
    """The outliers are told with their process and node; the others are only counted."""
    found = read_ras(TEXT)
    (odd,) = found.find_behind({"c0ffee12": 100})
    assert (odd.pid, odd.host, odd.gpu, odd.odd_words) == (
        4711, "10.0.0.2", "1", "RAS: 79499 of 79500 AllReduce launched",
    )  # fmt: skip
    assert [(one.pid, one.host) for one in found.lost_processes] == [(555, "10.0.0.9")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SSH-2.0-OpenSSH_9.6\n",
        "\x1b]0;evil\x07" * 1000,
        HEAD,
        HEAD + "what?",
        HEAD + "{" * 100_000,
        HEAD + '{"communicators": 7}',
        HEAD + '{"communicators": [{"size": "x"}]}',
        HEAD + '{"communicators": [{"size": 2, "hash": 1, "ranks": [1, 2]}]}',
        HEAD + "[]",
        told(comm([rank(0, 1)]))[:-30],
        TEXT.partition("Warnings")[0],
    ],
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    """Another server, garbage, an answer that was cut off."""
    with pytest.raises(CannotTell) as error:
        read_ras(text)
    assert "\x1b" not in str(error.value)
