"""Rules of what a Python traceback ends with."""

import time

import pytest

from sentinel.checks.log.tracebacks import find_traceback_end
from sentinel.checks.log.troubles import TroubleFinder

FIRST = "Traceback (most recent call last):"


def ends(text: str) -> str | None:
    """Its last line, as it stands there."""
    found = find_traceback_end(text, text.index(FIRST))
    return text[found.start : found.end] if found else None


@pytest.mark.parametrize(
    "mark",
    ["", "[rank3]: ", "[default3]:", "12: ", "(Actor pid=7) ", "ERROR 03-05 00:25:45 [core.py:1] "],
)
def test_it_is_the_first_line_of_the_same_mark_that_is_no_frame(mark: str) -> None:
    """Launchers and loggers put something before each line; other ranks speak in between. What names a rank is
    shown, and a logger's long mark is not."""
    lines = [FIRST, '  File "a.py", line 1, in f', "    g()", "    ^^^", "my.errors.Broken: no"]
    text = "".join(f"{mark}{line}\n[rank9]: ValueError: of another\n" for line in lines)
    shown = "" if mark.startswith("ERROR") else mark
    assert ends(f"step 1\n{text}") == f"{shown}my.errors.Broken: no"


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
        "_queue.Empty",
    ],
)
def test_what_another_process_brought_about_is_no_cause(said: str) -> None:
    """Its line is shown, and says nothing of the cause."""
    text = f"{FIRST}\n  f()\n{said}\n"
    found = find_traceback_end(text, 0)
    assert found
    assert found.echo
    assert text[found.start : found.end] == said


def test_what_is_no_exception_ends_no_traceback() -> None:
    """Other lines may stand below frames."""
    assert ends(f"{FIRST}\n  f()\nINFO: nothing of the kind\n") is None


@pytest.mark.parametrize(
    "bar", ["  1%|▍  | 272/22292 [03:40<4:26:46,  1.38it/s]", "| 0/20 [00:00<?, ?it/s]"]
)
def test_a_bar_without_an_end_is_no_mark(bar: str) -> None:
    """tqdm writes it again and again over one line, and the traceback is written behind it."""
    text = f'{bar}{FIRST}\n  File "a.py", line 3, in f\n    f()\nKeyError: 1\n'
    assert ends(text) == "KeyError: 1"


def test_one_that_goes_on_has_no_end_yet() -> None:
    """The rest comes with the next look."""
    assert ends(FIRST) is None
    assert ends(f"{FIRST}\n  f()\n") is None
    assert ends(f"{FIRST}\n" + "  f()\n" * 9999 + "KeyError: 1\n") is None


@pytest.mark.parametrize(
    "said",
    [
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "RuntimeError: Connection reset by peer",
        "urllib3.exceptions.NewConnectionError: of a tracker, which tries again",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://a",
    ],
)
def test_a_connection_that_failed_may_follow_another_s_end(said: str) -> None:
    """It is told where there is nothing better."""
    text = f"{FIRST}\n  f()\n{said}\n"
    found = find_traceback_end(text, 0)
    assert found
    assert found.network
    assert text[found.start : found.end] == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{FIRST}\n  File "a.py"\n    f()\nException: no shard 7\n', "Exception: no shard 7"),
        (f'{FIRST}\n  File "a.py"\n    f()\nStopTraining: it diverges\n', "StopTraining: it diverges"),
        (f'{FIRST}\n  File "a.py"\n    f()\na.b.f.<locals>.Own: no\n', "a.b.f.<locals>.Own: no"),
        (f"{FIRST}\n  f()\nstruct.error: unpack requires 4 bytes\n", "struct.error: unpack requires 4 bytes"),
        (
            f'{FIRST}\n  File "a.py"\n    get()\nray.exceptions.RayTaskError(ValueError): ray::f() (pid=1)\n'
            '  File "b.py"\n    f()\nValueError: odd batch\n',
            "ValueError: odd batch",
        ),
        (
            f'2026-03-08 10:00:01,120 ERROR {FIRST}\n2026-03-08 10:00:01,121 ERROR   File "a.py"\n'
            "2026-03-08 10:00:01,135 ERROR KeyError: 'x'\n",
            "KeyError: 'x'",
        ),
        (
            f'{{"level": "error", "exc": "{FIRST}\\n  File \\"a.py\\", line 1\\n    f()\\nKeyError: 3", "n": 1}}\n',
            "KeyError: 3",
        ),
        (f"  + Exception Group {FIRST}\n  |   File \"a.py\"\n  |     f()\n  | ExceptionGroup: two (2 sub-exceptions)\n",
         "  | ExceptionGroup: two (2 sub-exceptions)"),
        (f"{FIRST}\n  f()\nValueError: a\n  of two lines\nEpoch: 7\n", "ValueError: a"),
    ],
)  # fmt: skip
def test_an_exception_is_found_in_every_form(text: str, said: str) -> None:
    """Bare, of a name of its own, from another process, behind stamps that change, in JSON."""
    found = find_traceback_end(text, text.index(FIRST))
    assert found
    assert text[found.start : found.end] == said


def test_a_mark_of_many_digits_is_looked_for_once() -> None:
    """Thirteen numbers in a row fit 150 digits in more ways than anybody can try."""
    text = "1" * 150 + "x" + FIRST + "\n" + "1" * 100 + "y\n"
    began = time.thread_time()
    assert find_traceback_end(text, text.index(FIRST)) is None
    assert time.thread_time() - began < 2


@pytest.mark.parametrize("mark", ["", "[rank3]: ", "3: "])
def test_the_source_of_a_frame_says_nothing(mark: str) -> None:
    """Its words may be a template, or of another error. The same words that are printed count."""
    words = "CUDA out of memory. Tried to allocate"
    frame = [
        FIRST,
        '  File "/r/t.py", line 21, in run',
        f'    raise RuntimeError(f"{words} {{n}}")',
    ]
    lines = [f"{mark}{line}" for line in (*frame, "ValueError: rank 3 has no data")]
    told = [one.line for _, one in TroubleFinder({}, []).find_end("\n".join([*lines, ""]))]
    assert [words in line for line in told] == [False]
    printed = TroubleFinder({}, []).find_end(f"{mark}{words} 2 GiB\n")
    assert [one.kind for _, one in printed] == ["CUDA out of memory"]
