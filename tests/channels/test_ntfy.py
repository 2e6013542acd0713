"""ntfy as a server of one's own answers: https://docs.ntfy.sh/publish/"""

import re
from typing import Any, ClassVar

import pytest

from sentinel.channels.ntfy import Ntfy
from sentinel.channels.template import ChatTemplates
from sentinel.core.errors import Invalid
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers_json, sent

TAKES = answers_json(200, {"id": "hwQ2YpKdmg", "event": "message", "topic": SECRET})


def ntfy(server: Web, **changes: Any) -> Ntfy:
    return Ntfy(**{"url": Secret(f"{server.url}/{SECRET}"), **changes})


class TestContract(ServiceContract):
    """The topic and the token are secrets, and the server repeats the topic."""

    MOODS: ClassVar[Any] = {
        "takes": TAKES,
        "refuses": answers_json(
            403, {"code": 40301, "http": 403, "error": "forbidden", "topic": SECRET}
        ),
        "later": answers_json(
            429, {"code": 42901, "http": 429, "error": "limit reached: too many requests"}
        ),
    }

    def channel(self, url: str, timeout: Duration) -> Ntfy:
        return Ntfy(url=Secret(f"{url}/{SECRET}"), token=Secret(f"tk_{SECRET}"), timeout=timeout)


def test_the_topic_goes_into_the_document() -> None:
    """And the token into a header: no text of an alert is in any."""
    with Web(TAKES) as server:
        body = sent(ntfy(server, token=Secret("tk_abc")), server, hostile("a\r\nX-Evil: 1"))
    headers, _ = server.requests[0]
    assert body["topic"] == SECRET
    assert headers["Authorization"] == "Bearer tk_abc"
    assert "X-Evil" not in headers


PRIORITIES = [
    ({}, 5),
    ({"severity": Status.WARNING, "status": Status.WARNING}, 4),
    ({"status": Status.UNKNOWN}, 4),
    ({"status": Status.OK, "reason": "resolved"}, 3),
    ({"reason": "test"}, 3),
    ({"reason": "ack"}, 3),
]


@pytest.mark.parametrize(("changes", "priority"), PRIORITIES)
def test_the_priority_tells_how_bad(changes: dict[str, Any], priority: int) -> None:
    """5 breaks through a phone's silence, 3 is an ordinary message."""
    with Web(TAKES) as server:
        assert sent(ntfy(server), server, notification(**changes))["priority"] == priority


def test_the_runbook_is_a_button() -> None:
    """Of one alert; none where it holds no address."""
    with Web(TAKES) as server:
        (button,) = sent(ntfy(server), server)["actions"]
        plain = sent(ntfy(server), server, notification(runbook="call Ann"))
    assert button["url"] == "https://wiki.example.org/oncall"
    assert "actions" not in plain


def test_what_may_be_answered_is_a_button_and_no_text() -> None:
    """The address is long and says nothing."""
    with Web(TAKES) as server:
        links = {"Acknowledge": "https://s.example.org/a/t/"}
        body = sent(ntfy(server), server, notification(links=links))
    assert [a["label"] for a in body["actions"]] == ["Acknowledge", "Runbook"]
    assert "s.example.org" not in body["message"]


@pytest.mark.parametrize("letter", ["x", "Ω", "作", "🚨"])
def test_limits_are_bytes(letter: str) -> None:
    """4,096 of message, else it becomes an attachment; 1,024 of title."""
    with Web(TAKES) as server:
        body = sent(ntfy(server), server, hostile(letter * 50_000))
    assert 1000 < len(body["message"].encode()) <= 4096
    assert 100 < len(body["title"].encode()) <= 1024


def test_what_does_not_fit_is_counted_not_cut() -> None:
    """The last line is whole, however many bytes a letter has."""
    with Web(TAKES) as server:
        body = sent(ntfy(server), server, *(hostile("🚨" * 200) for _ in range(50)))
    assert re.search(r"\nand \d+ more: sentinel alerts list$", body["message"])


def test_a_title_of_ones_own_is_cut_too() -> None:
    """Longer ones are refused by ntfy."""
    with Web(TAKES) as server:
        templates = ChatTemplates(subject="{{ 'Ω' * 2000 }}")
        body = sent(ntfy(server, templates=templates), server)
    assert 500 < len(body["title"].encode()) <= 1024


TOPICS = ["https://ntfy.sh", "https://ntfy.sh/", "https://ntfy.sh/a/b", "https://ntfy.sh/ä", "x"]


@pytest.mark.parametrize("url", TOPICS)
def test_an_address_ends_with_a_topic(url: str) -> None:
    """The error names the key and shows none of it."""
    with pytest.raises(Invalid) as caught:
        Ntfy(url=Secret(url))
    assert caught.value.path == ("url",)


def test_a_token_is_one_word() -> None:
    """Else it would break the header."""
    with pytest.raises(Invalid) as caught:
        Ntfy(url=Secret("https://ntfy.sh/x"), token=Secret("a\nb"))
    assert caught.value.path == ("token",)


def test_the_receipt_hides_the_topic() -> None:
    """The server's answer names it."""
    with Web(TAKES) as server:
        receipt = send(ntfy(server), notification())
    assert "hwQ2YpKdmg" in receipt.text
    assert SECRET not in receipt.text
