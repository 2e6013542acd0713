"""`init` says that no number advances only of a log that has lines enough to show it."""

from collections.abc import Iterator

import pytest

from sentinel.init.survey import MAX_WAIT_S, MIN_LINES, await_progress

STEPS = [f"iteration {n}/ 500000 | lm loss: 2.1E+00\n" for n in range(9)]
WORDS = ["building the model\n"] * (2 * MIN_LINES)
WHAT = f"waiting up to {MAX_WAIT_S}s for lines of /w/x.log that show its progress (Ctrl-C goes on)"


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (["loading\n", *STEPS], 5),  # ends when the number is recognised
        (WORDS, MIN_LINES - 1),  # lines enough, and no number; beyond the limit of seconds
        (["loading\n"], MAX_WAIT_S),
    ],
)
def test_it_waits_for_a_young_log_and_says_so(lines: list[str], seconds: int) -> None:
    """A line comes each second."""
    told, paused, text = list[str](), list[float](), lines[0]

    def read() -> str:
        return "".join(lines[: len(paused) + 1])

    text = await_progress(text, read, "/w/x.log", told.append, paused.append)
    assert told == [WHAT]
    assert 0 < len(paused) <= min(seconds, MAX_WAIT_S)
    assert text == read()


@pytest.mark.parametrize("text", ["".join(STEPS), "".join(WORDS)])
def test_a_log_that_shows_it_is_not_waited_for(text: str) -> None:
    told = list[str]()
    assert await_progress(text, lambda: "", "/w/x.log", told.append, lambda _: None) == text
    assert told == []


def test_a_person_may_end_the_wait() -> None:
    """What was read until then counts."""

    def interrupted() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    wait = interrupted()
    text = await_progress("a\n", lambda: "a\nb\n", "/x", lambda _: None, lambda _: next(wait))
    assert text == "a\nb\n"
