"""Rules of what a Python traceback ends with."""

import pytest

from sentinel.checks.log.tracebacks import last_line

FIRST = "Traceback (most recent call last):"


def ends(text: str) -> str | None:
    """Its last line, as it stands there."""
    found = last_line(text, text.index(FIRST))
    return text[slice(*found)] if found else None


@pytest.mark.parametrize(
    "mark",
    ["", "[rank3]: ", "[default3]:", "12: ", "(Actor pid=7) ", "ERROR 03-05 00:25:45 [core.py:1] "],
)
def test_it_is_the_first_line_of_the_same_mark_that_is_no_frame(mark: str) -> None:
    """Launchers and loggers put something before each line; other ranks speak in between."""
    lines = [FIRST, '  File "a.py", line 1, in f', "    g()", "    ^^^", "my.errors.Broken: no"]
    text = "".join(f"{mark}{line}\n[rank9]: ValueError: of another\n" for line in lines)
    assert ends(f"step 1\n{text}") == f"{mark}my.errors.Broken: no"


def test_a_time_before_the_mark_may_change() -> None:
    """From second to second."""
    text = f"12:00:01 [rank0]: {FIRST}\n12:00:01 [rank0]:   f()\n12:00:02 [rank0]: KeyError: 1\n"
    assert ends(text) == "12:00:02 [rank0]: KeyError: 1"
    assert ends(
        f"30%|## | 3/9 [00:01<00:02][rank0]: {FIRST}\n[rank0]:   f()\n[rank0]: KeyError: 1\n"
    )


@pytest.mark.parametrize(
    "said",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "torch.distributed.DistBackendError: NCCL error",
        "subprocess.CalledProcessError: Command x returned non-zero exit status 1.",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "RuntimeError: Connection reset by peer",
        "urllib3.exceptions.NewConnectionError: of a tracker, which tries again",
        "_queue.Empty",
        "INFO: nothing of the kind",
    ],
)
def test_what_another_process_brought_about_is_no_cause(said: str) -> None:
    """And what is no exception is none."""
    assert ends(f"{FIRST}\n  f()\n{said}\n") is None


def test_one_that_goes_on_has_no_end_yet() -> None:
    """The rest comes with the next look."""
    assert ends(FIRST) is None
    assert ends(f"{FIRST}\n  f()\n") is None
    assert ends(f"{FIRST}\n" + "  f()\n" * 9999 + "KeyError: 1\n") is None
