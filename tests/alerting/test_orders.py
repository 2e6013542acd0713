"""What people order: acknowledgements, silences, remarks, each bound on both sides."""

import pytest
from msgspec.structs import replace

from sentinel.alerting.orders import (
    MAX_SILENCE_S,
    MIN_SILENCE_S,
    NAME,
    NOTE,
    AlertPending,
    Author,
    NoSuchAlert,
    WrongOrder,
    acknowledge_alert,
    find_alert,
    make_remark,
    make_silence,
    silence_alert,
    silence_alerts,
    silence_end,
)
from sentinel.alerting.settings import Match
from sentinel.alerting.silences import RemarkKind
from sentinel.core.clock import SECOND
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START

ANN = Author(who=" Ann\x1b ", how="cli", note=" mine\n ")
DAY = 86_400 * SECOND


def alert(ident: str, **more: object) -> Alert:
    """A firing one."""
    one = Alert(
        key=Key("c", "gpu", f"GPU-{ident}"), id=ident, kind="gpu", status=Status.CRITICAL,
        severity=Status.CRITICAL, summary="bad", since=START, last=START, fired=START, firing=True,
    )  # fmt: skip
    return replace(one, **more)


ALERTS = [alert("1"), alert("2", firing=False), alert("3", over=True)]


def test_an_acknowledgement_names_its_author() -> None:
    """Without what a terminal would obey, and without blanks around it."""
    ack = acknowledge_alert(ALERTS, "1", ANN, START)
    assert (ack.alert, ack.at, ack.who, ack.how, ack.note) == (
        "1",
        START,
        "Ann\\x1b",
        "cli",
        "mine",
    )


def test_only_what_fires_can_be_acknowledged() -> None:
    """What is pending is not there yet, and what is unknown is not there at all."""
    with pytest.raises(AlertPending, match="it does not fire yet"):
        acknowledge_alert(ALERTS, "2", ANN, START)
    for name in ("", "9"):
        with pytest.raises(NoSuchAlert, match="it may be over"):
            acknowledge_alert(ALERTS, name, ANN, START)


def test_an_alert_is_found_by_its_id() -> None:
    """Pending or firing; one that is over is not there."""
    assert find_alert(ALERTS, "2") is ALERTS[1]
    with pytest.raises(NoSuchAlert):
        find_alert(ALERTS, "3")


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (-1, "lies in the past"),
        (0, "lies in the past"),
        (1, "from 1m to 90d"),
        (60 * SECOND - 1, "from 1m to 90d"),
        (60 * SECOND, ""),
        (90 * DAY, ""),
        (90 * DAY + 1, "from 1m to 90d"),
    ],
)
def test_how_long_a_silence_may_be(length: int, why: str) -> None:
    """A minute to 90 days: one without an end would hide a real death for ever."""
    assert (MIN_SILENCE_S, MAX_SILENCE_S) == (60 * SECOND, 90 * DAY)
    ends = START.wall + length
    if why:
        with pytest.raises(WrongOrder, match=why):
            make_silence(Match(), ends, ANN, START)
        return
    made = make_silence(Match(subject="x"), ends, ANN, START)
    assert (made.starts, made.ends, made.match) == (START.wall, ends, Match(subject="x"))
    assert (made.who, made.how, made.reason) == ("Ann\\x1b", "cli", "mine")


def test_a_silence_has_a_name_of_its_own() -> None:
    """Eight hexadecimal digits, others each time, or the name of the one that it replaces."""
    ends = START.wall + DAY
    names = {make_silence(Match(), ends, ANN, START).id for _ in range(20)}
    assert len(names) == 20
    assert all(len(bytes.fromhex(name)) == 4 for name in names)
    assert make_silence(Match(), ends, ANN, START, "old").id == "old"


def test_a_silence_of_one_alert_is_about_its_subject() -> None:
    """For so long from now on."""
    made = silence_alert(ALERTS, "1", "2h", ANN, START, "name")
    assert (made.id, made.ends) == ("name", START.wall + 7200 * SECOND)
    assert (made.match.check, made.match.subject, made.alerts) == ("gpu", "GPU-1", None)
    with pytest.raises(NoSuchAlert):
        silence_alert(ALERTS, "9", "2h", ANN, START)
    with pytest.raises(WrongOrder):
        silence_alert(ALERTS, "1", "soon", ANN, START)


def test_a_silence_of_alerts_is_about_those_alone() -> None:
    """Whatever begins later is told."""
    made = silence_alerts(ALERTS[:2], START.wall + DAY, ANN, START)
    assert (made.alerts, made.match, made.ends) == ({"1", "2"}, Match(), START.wall + DAY)


def test_the_end_of_a_silence() -> None:
    """In microseconds; what is no duration is refused as an order."""
    assert silence_end("90m", START) == START.wall + 5400 * SECOND
    with pytest.raises(WrongOrder) as caught:
        silence_end("x", START)
    assert caught.value.exit_code == 64


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("assign", "assign: name somebody"),
        ("comment", "comment: say what"),
        ("close", "close: say"),
    ],
)
def test_an_empty_remark_says_nothing(deed: RemarkKind, why: str) -> None:
    """A split needs no words: it is about an alert."""
    for text in ("", " \n"):
        with pytest.raises(WrongOrder, match=why):
            make_remark("i", deed, ANN, START, text)
    assert make_remark("i", deed, ANN, START, "words").deed == deed
    split = make_remark("i", "split", ANN, START, alert="1")
    assert (split.incident, split.alert, split.at, split.text) == ("i", "1", START, "")
    assert (split.who, split.how) == ("Ann\\x1b", "cli")


def test_long_words_are_cut() -> None:
    """A name after 100 characters, words after 400."""
    assert (NAME, NOTE) == (100, 400)
    ack = acknowledge_alert(ALERTS, "1", Author("n" * 101, "api", "w" * 401), START)
    assert (ack.who, ack.note) == ("n" * 100, "w" * 400)
    assert make_remark("i", "comment", ANN, START, " " + "w" * 401).text == "w" * 400
