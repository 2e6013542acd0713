"""Every command where no program is to be had: each answer is a sentence."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.bare.calls import Call, find_calls, find_faults

HERE = Path(__file__).parent


@pytest.mark.root
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_command_answers_in_words_where_no_program_is(tmp_path: Path) -> None:
    """As it is meant and wrongly, in a PATH that is empty: no Slurm, no ps, no ssh, no crontab."""
    calls = list(find_calls())
    done = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-c", 'mount -t tmpfs home /mnt && PATH=$1 exec "$2" "$3"',
         "sh", str(tmp_path), sys.executable, str(HERE / "inside.py")],
        input=json.dumps([asdict(call) for call in calls]),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(HERE.parents[1])},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    faults = [
        (" ".join(call.words), fault)
        for call, (code, text) in zip(calls, answers, strict=True)
        for fault in find_faults(call, code, text)
    ]
    assert faults == []
    kinds = Counter(call.form for call in calls)
    assert min(kinds[form] for form in ("meant", "no such word", "no such file")) > 30


@pytest.mark.parametrize(
    ("form", "code", "text", "fault"),
    [
        ("meant", 70, "sentinel: internal error at x.py:3", "exit code 70"),
        ("meant", -1, "…", "it did not end"),
        ("meant", 3, "UNKNOWN: Traceback (most recent call last):", "raw: "),
        ("meant", 69, "sh: 1: ps: not found", "raw: "),
        ("meant", 69, " ", "it says nothing"),
        ("no such option", 0, "OK", "an option that there is not is taken"),
        ("a slip in it", 0, "OK", "it is taken all the same"),
    ],
)
def test_an_answer_that_helps_nobody_is_found(form: str, code: int, text: str, fault: str) -> None:
    """And a sentence is none."""
    call = Call("status", form, ["status"])
    assert any(fault in one for one in find_faults(call, code, text))
    assert not [*find_faults(Call("status", "meant", ["status"]), 69, "there is no ps here")]
