"""`init` says that no number advances only of a log that has lines enough to show it."""

from collections.abc import Iterator

import pytest

from sentinel.core.errors import CannotTell
from sentinel.init.survey import MAX_WAIT_S, MIN_LINES, await_progress

STEPS = [f"iteration {n}/ 500000 | lm loss: 2.1E+00\n" for n in range(9)]
WORDS = ["building the model\n"] * (2 * MIN_LINES)
WHAT = (
    f"waiting up to {MAX_WAIT_S}s for lines of /w/x.log that show their progress (Ctrl-C goes on)"
)


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

    def read(_log: str) -> str:
        return "".join(lines[: len(paused) + 1])

    known = await_progress({"/w/x.log": text}, read, told.append, paused.append)
    assert told == [WHAT]
    assert 0 < len(paused) <= min(seconds, MAX_WAIT_S)
    assert known == {"/w/x.log": read("")}


def test_several_young_logs_are_waited_for_at_the_same_time() -> None:
    """Of three, one shows it already and one never does: the others are read no more once they show it,
    and all of it takes no longer than the slowest."""
    told, paused, asked = list[str](), list[float](), list[str]()

    def read(log: str) -> str:
        asked.append(log)
        return "loading\n" if log == "/never" else "".join(STEPS[: len(paused)])

    texts = {"/old": "".join(STEPS), "/young": "", "/never": ""}
    known = await_progress(texts, read, told.append, paused.append)
    assert (len(paused), asked.count("/never"), asked.count("/old")) == (MAX_WAIT_S, MAX_WAIT_S, 0)
    assert 0 < asked.count("/young") < 9
    assert set(known) == set(texts)
    (line,) = told
    assert "lines of /young, /never that" in line


def test_a_log_that_cannot_be_read_any_more_ends_the_wait() -> None:
    """What was read until then counts."""

    def read(_log: str) -> str:
        raise CannotTell("gone")

    assert await_progress({"/x": "a\n"}, read, lambda _: None, lambda _: None) == {"/x": "a\n"}


@pytest.mark.parametrize("text", ["".join(STEPS), "".join(WORDS)])
def test_a_log_that_shows_it_is_not_waited_for(text: str) -> None:
    told = list[str]()
    known = await_progress({"/x": text}, lambda _: "", told.append, lambda _: None)
    assert known == {"/x": text}
    assert told == []


def test_a_person_may_end_the_wait() -> None:
    """What was read until then counts."""

    def interrupted() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    wait = interrupted()
    known = await_progress({"/x": "a\n"}, lambda _: "a\nb\n", lambda _: None, lambda _: next(wait))
    assert known == {"/x": "a\nb\n"}
