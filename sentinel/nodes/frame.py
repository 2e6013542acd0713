"""Frames a command so that its answer can be told from all other output. Pure.

Login scripts and sshd print before the answer, a connection breaks in the middle of it, and ssh's
own exit code 255 may be the command's as well. So the node's shell prints a mark before and after
the answer, and then the exit code. The mark is random and comes through stdin, so nobody on the
node can read it from a process list."""

import shlex
from collections.abc import Callable, Sequence
from math import ceil

from sentinel.core.node_answers import Answer, Answered, Garbage, Partial, Unreached
from sentinel.core.text import shortened, visible

_FRAME = (
    'read -r mark; printf "\\n%s begin\\n" "$mark"; printf "\\n%s begin\\n" "$mark" >&2; '
    '"$@"; code=$?; printf "\\n%s end %d\\n" "$mark" "$code"'
)


def framed(argv: Sequence[str], seconds: float) -> list[str]:
    """The command to run in place of `argv`; the first line of its stdin has to be the mark. sshd
    lets a command go on after its connection is lost, so timeout(1) ends it on the node."""
    bound = ["timeout", "-k", "2", str(ceil(seconds))]
    return ["/bin/sh", "-c", _FRAME, "sentinel", *bound, *argv]


def line(argv: Sequence[str]) -> str:
    """The command as one line for the login shell on the other host, whichever shell that is."""
    return "exec " + shlex.join(argv)


def stdin(mark: str, data: bytes) -> bytes:
    """The input for the framed command."""
    return mark.encode("ascii") + b"\n" + data


def unframed(
    out: bytes, err: bytes, mark: str, code: int, failure: Callable[[str, int], Unreached | None]
) -> Answer:
    """The command's answer between the marks; without marks, what `failure` makes of the output.

    `failure` gets all text that came in place of an answer, and the exit code of ssh or srun."""
    begin = f"\n{mark} begin\n".encode("ascii")
    _, begun, body = out.partition(begin)
    before, _, errors = err.partition(begin)
    if not begun:
        return failure(f"{_text(out)}\n{_text(err)}", code) or Garbage(_said(out, err, code))
    body, ended, rest = body.rpartition(f"\n{mark} end ".encode("ascii"))
    number = rest.partition(b"\n")
    if not ended or not number[1] or not number[0].isdigit():
        why = _last_line(_text(errors) or _text(before)) or "no reason was given"
        return Partial(why=f"the answer broke off: {why}", out=body or rest, err=errors)
    return Answered(code=int(number[0]), out=body, err=errors)


def _said(out: bytes, err: bytes, code: int) -> str:
    said = _last_line(_text(err)) or _last_line(_text(out)) or "nothing"
    return f"the command did not start; exit code {code}, said: {said}"


def _text(raw: bytes) -> str:
    return raw[-8192:].decode("utf-8", "backslashreplace")


def _last_line(text: str) -> str:
    lines = [stripped for found in text.splitlines() if (stripped := found.strip())]
    return shortened(visible(lines[-1]), 300) if lines else ""
