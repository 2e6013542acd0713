"""Slack's incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""

import json
from typing import Any, ClassVar

import pytest

from sentinel.channels.slack import Slack
from sentinel.channels.template import ChatTemplates
from sentinel.core.errors import Invalid
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET
from tests.channels.samples import HUGE, notification
from tests.channels.web import ServiceContract, Web, answers, failure, sent

SAFE = {"text", "link"}
"""Elements that call nobody; `user`, `usergroup`, `broadcast` and `channel` would."""


def slack(server: Web, **changes: Any) -> Slack:
    return Slack(**{"url": Secret(f"{server.url}/services/T0/B0/{SECRET}"), **changes})


def elements(body: Any) -> list[Any]:
    """The elements of the rich text, in order."""
    (block,) = body["blocks"]
    assert block["type"] == "rich_text"
    return [element for part in block["elements"] for element in part["elements"]]


def read(body: Any) -> str:
    """What a person reads."""
    return "".join(e.get("text", e.get("url", "")) for e in elements(body))


class TestContract(ServiceContract):
    """Plain words as answers: `ok`, `no_service`, `rollup_error`."""

    MOODS: ClassVar[Any] = {
        "takes": answers(200, "ok"),
        "refuses": answers(404, f"no_service {SECRET}"),
        "later": answers(500, "rollup_error"),
    }

    def channel(self, url: str, timeout: Duration) -> Slack:
        return Slack(url=Secret(f"{url}/services/T0/B0/{SECRET}"), timeout=timeout)

    def inert(self, message: bytes, text: str) -> None:
        """Besides, texts are elements that are not parsed, and what is parsed is escaped."""
        super().inert(message, text)
        body = json.loads(message)
        assert {element["type"] for element in elements(body)} <= SAFE
        assert "<" not in body["text"]
        assert body["mrkdwn"] is False


def test_mrkdwn_is_text() -> None:
    """In the blocks as written; in the line for notifications escaped, as Slack asks."""
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server), server, notification(summary="<!channel> *a* & <http://x|y>"))
    assert ["<!channel> *a* & <", "://x|y>"][0] in read(body)
    assert "&lt;!channel&gt; *a* &amp; &lt;http://x|y&gt;" in body["text"]


def test_only_addresses_become_links() -> None:
    """With nothing but themselves to show."""
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server), server)
    found = [e for e in elements(body) if e["type"] == "link"]
    assert found == [{"type": "link", "url": "https://wiki.example.org/oncall"}]


@pytest.mark.parametrize(
    "text", ["http:///x", "https://-/", "http://.a", "https://a:/", "see http://", "https://:80/"]
)
def test_what_has_no_host_is_no_link(text: str) -> None:
    """Slack refuses a message with a link that leads nowhere, and a job may be called so."""
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server), server, notification(summary=text, runbook=""))
    assert {e["url"] for e in elements(body) if e["type"] == "link"} <= {"https://a"}


def test_an_answer_is_one_word() -> None:
    """Its address is long, and a key."""
    with Web(answers(200, "ok")) as server:
        links = {"Acknowledge": "https://s.example.org/a/t/"}
        body = sent(slack(server), server, notification(links=links, runbook=""))
    found = [e for e in elements(body) if e["type"] == "link"]
    assert found == [{"type": "link", "url": "https://s.example.org/a/t/", "text": "Acknowledge"}]


def test_no_element_is_empty() -> None:
    """Slack refuses a message with one."""
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server), server, notification(summary="", details="a\n\nb", runbook=""))
    assert all(e.get("text", e.get("url")) for e in elements(body))


def test_a_message_is_bounded() -> None:
    """Below 13,200 characters of blocks and 4,000 of text."""
    big = notification(summary="<" * HUGE, details="&\n" * HUGE, commands=("x" * HUGE,) * 9)
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server), server, big)
    assert len(read(body)) < 8000
    assert len(body["text"]) < 1500


def test_retry_after_is_passed_on() -> None:
    """One message a second is what a webhook takes."""
    with Web(answers(429, "rate_limited", **{"Retry-After": "30"})) as server:
        error = failure(slack(server))
    assert (error.reason, error.permanent, error.retry_after) == ("rate", False, 30)


def test_a_template_may_use_mrkdwn_and_its_values_may_not() -> None:
    """What the template writes is markup; what an alert holds calls nobody."""
    templates = ChatTemplates(subject="{{ check }}", text="*{{ summary }}* <https://x|wiki>")
    with Web(answers(200, "ok")) as server:
        body = sent(slack(server, templates=templates), server, notification(summary="<!here> & x"))
    title, section = body["blocks"]
    assert title["elements"][0]["elements"][0]["text"] == "training"
    assert section["text"] == {
        "type": "mrkdwn",
        "text": "*&lt;!here&gt; &amp; x* <https://x|wiki>",
    }
    assert body["text"] == "training"


BOT = {"url": None, "token": Secret("xoxb-1"), "channel": "C1"}
BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "url"),
    ({"url": Secret("https://h/x"), "token": Secret("xoxb-1")}, "url"),
    ({"url": Secret("hooks.slack.com")}, "url"),
    ({**BOT, "token": Secret("a b")}, "token"),
    ({**BOT, "token": Secret("")}, "token"),
    ({**BOT, "channel": ""}, "channel"),
    ({**BOT, "channel": "a b"}, "channel"),
    ({**BOT, "api": "slack.com"}, "api"),
]


@pytest.mark.parametrize(("fields", "key"), BAD)
def test_wrong_settings_are_refused(fields: dict[str, Any], key: str) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        Slack(**fields)
    assert caught.value.path == (key,)
