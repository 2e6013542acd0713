"""The frame around a command: its answer is known from noise, and half of it from the whole."""

import os
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.node_answers import Answered, Garbage, Partial, Refused, Unreached
from sentinel.nodes import frame

MARK = "ab" * 16


def no_failure(said: str, code: int) -> Unreached | None:
    return None


def framed(out: bytes, err: bytes = b"", code: int = 0, before: bytes = b"") -> tuple[bytes, bytes]:
    """What a node's shell prints around a command."""
    begin = f"\n{MARK} begin\n".encode()
    end = f"\n{MARK} end {code}\n".encode()
    return before + begin + out + end, before + begin + err


@given(st.binary(), st.binary(), st.integers(0, 255), st.binary())
def test_an_answer_comes_out_as_it_went_in(out: bytes, err: bytes, code: int, noise: bytes) -> None:
    """Any bytes, with or without a newline at the end, behind any noise."""
    raw, raw_err = framed(out, err, code, noise)
    told = frame.unframed(raw, raw_err, MARK, 0, no_failure)
    assert told == Answered(code=code, out=out, err=err)


@given(st.binary(max_size=60), st.data())
def test_an_answer_cut_anywhere_is_never_whole(out: bytes, data: st.DataObject) -> None:
    """Partial from the begin mark on, Garbage before it."""
    raw, err = framed(out, code=12)
    length = data.draw(st.integers(0, len(raw) - 1))
    told = frame.unframed(raw[:length], err, MARK, 255, no_failure)
    assert isinstance(told, Partial | Garbage)
    assert isinstance(told, Partial) == (f"\n{MARK} begin\n".encode() in raw[:length])


@given(st.binary(), st.binary(), st.integers(-15, 255))
def test_noise_alone_is_garbage(out: bytes, err: bytes, code: int) -> None:
    """Exit code 0 and silence are no answer either."""
    assert isinstance(frame.unframed(out, err, MARK, code, no_failure), Garbage)


def test_the_reason_of_a_failure_comes_first() -> None:
    """The way to the node is asked what the noise means, with both streams and its exit code."""
    asked: list[tuple[str, int]] = []

    def failure(said: str, code: int) -> Unreached | None:
        asked.append((said, code))
        return Refused("no")

    assert frame.unframed(b"out", b"err", MARK, 255, failure) == Refused("no")
    assert asked == [("out\nerr", 255)]


def test_what_a_command_prints_of_another_call_is_its_own() -> None:
    """Only this call's mark ends it."""
    other = f"\n{'cd' * 16} end 0\n".encode()
    raw, err = framed(b"x" + other)
    assert frame.unframed(raw, err, MARK, 0, no_failure) == Answered(code=0, out=b"x" + other)


def test_a_real_shell_frames_a_real_command() -> None:
    """The script that goes to nodes, run here through the login shell's one line."""
    words = ["a b", "'", "$HOME", "\n", "*", ""]
    line = frame.line(
        frame.framed(["sh", "-c", 'printf "%s|" "$@"; cat; exit 3', "sh", *words], 5.5)
    )
    done = subprocess.run(
        ["sh", "-c", line], input=frame.stdin(MARK, b"in\n"), capture_output=True, check=False
    )
    told = frame.unframed(done.stdout, done.stderr, MARK, done.returncode, no_failure)
    out = b"".join(os.fsencode(word) + b"|" for word in words) + b"in\n"
    assert told == Answered(code=3, out=out)
