"""The script in the words of sbatch, and the few options that are read."""

import pytest

from sentinel.slurm.sbatch_words import SbatchCall, read_sbatch_call, read_script_options


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("train.sh -J other", SbatchCall("train.sh")),
        ("-N 4 train.sh", SbatchCall("train.sh")),
        ("-N4 -Jname train.sh --comment=x", SbatchCall("train.sh", "name")),
        ("-J name -HJ more train.sh", SbatchCall("train.sh", "more")),
        ("--time 10 --exclusive train.sh", SbatchCall("train.sh")),
        ("--exclusive=user --job-name a train.sh", SbatchCall("train.sh", "a")),
        ("--job a --comm b train.sh", SbatchCall("train.sh", "a", "b")),
        ("-W -k train.sh", SbatchCall("train.sh")),
        ("-s -k=set train.sh", SbatchCall("train.sh")),
        ("--signal B:USR1@60 train.sh --signal x", SbatchCall("train.sh", signal="B:USR1@60")),
        ("--wrap hostname", SbatchCall(None, None, None, "hostname")),
        ("--gres gpu:8 -c 4 -- -odd.sh", SbatchCall("-odd.sh")),
        ("-p prod", SbatchCall()),
        ("-p", SbatchCall()),
        ("--", SbatchCall()),
        ("", SbatchCall()),
    ],
)
def test_words_are_read_as_sbatch_reads_them(line: str, call: SbatchCall) -> None:
    """What stands behind the script is the script's."""
    assert read_sbatch_call(line.split()) == call


def test_options_of_a_script_stand_before_its_first_command() -> None:
    """A quote that is not closed is for sbatch to report."""
    script = b"#!/bin/sh\n#SBATCH -J a --comment='b c' # why\n#SBATCH -o 'x\n#SBATCHES -J d\ntrue\n#SBATCH -J e\n"
    assert read_script_options(script) == SbatchCall(None, "a", "b c")
    assert read_script_options(b"") == SbatchCall()
