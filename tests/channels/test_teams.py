"""A webhook of Teams' Workflows app: 202 without a body, errors as JSON of Power Automate."""

import json
from typing import Any, ClassVar

import pytest

from sentinel.channels.teams import Teams
from sentinel.channels.template import ChatTemplates
from sentinel.core.errors import Invalid
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, sent

PATH = f"/workflows/abc/triggers/manual/paths/invoke?api-version=2016-06-01&sig={SECRET}"


def teams(server: Web, **changes: Any) -> Teams:
    return Teams(url=Secret(server.url + PATH), **changes)


class TestContract(ServiceContract):
    """The signature in the query is the secret."""

    MOODS: ClassVar[Any] = {
        "takes": answers(202),
        "refuses": answers_json(
            400, {"error": {"code": "WorkflowTriggerIsNotEnabled", "message": SECRET}}
        ),
        "later": answers_json(429, {"error": {"code": "WorkflowRequestThrottled"}}),
    }

    def channel(self, url: str, timeout: Duration) -> Teams:
        return Teams(url=Secret(url + PATH), timeout=timeout)

    def inert(self, message: bytes, text: str) -> None:
        """Besides, texts are only where no markup is known."""
        super().inert(message, text)
        assert all(element["type"] == "RichTextBlock" for element in card(message)["body"])


def card(message: bytes) -> Any:
    return json.loads(message)["attachments"][0]["content"]


def lines(message: bytes) -> list[str]:
    """What is read, line by line."""
    return ["".join(run["text"] for run in e["inlines"]) for e in card(message)["body"]]


def test_a_card_with_a_line_for_each() -> None:
    """Title, summary, facts, log, commands, runbook; its address as a button."""
    with Web(answers(202)) as server:
        send(teams(server), notification())
    read = lines(server.bodies[0])
    assert read[0] == "🔴 CRITICAL h100-prod training tr11-176B"
    assert read[1] == "not running: job 4242 FAILED (exit 1)"
    assert "| rank 0: Aborted" in read
    assert "$ scontrol show job 4242" in read
    assert card(server.bodies[0])["actions"][0]["url"] == "https://wiki.example.org/oncall"


def test_what_may_be_answered_is_a_button_and_no_text() -> None:
    """The address is long and says nothing."""
    with Web(answers(202)) as server:
        send(teams(server), notification(links={"Acknowledge": "https://s.example.org/a/t/"}))
    found = card(server.bodies[0])
    assert [a["title"] for a in found["actions"]] == ["Acknowledge", "Runbook"]
    assert "s.example.org" not in "".join(lines(server.bodies[0]))


def test_markup_stays_as_it_is_written() -> None:
    """Text runs know none, so nothing is escaped either."""
    with Web(answers(202)) as server:
        send(teams(server), notification(summary="**x** [y](http://evil.example) <at>z</at>"))
    assert "**x** [y](http://evil.example) <at>z</at>" in lines(server.bodies[0])


@pytest.mark.parametrize("letter", ["x", '"', "Ω", "🚨", "\n", "\x00"])
@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.long
def test_a_card_is_below_28_kb(letter: str, count: int) -> None:
    """The most that Teams takes."""
    many = [hostile(f"{i} {letter * 5000}") for i in range(count)]
    with Web(answers(202)) as server:
        sent(teams(server), server, *many)
    assert len(server.bodies[0]) < 28_000


def test_a_template_is_plain_text() -> None:
    """One line of it is one line of the card."""
    with Web(answers(202)) as server:
        templates = ChatTemplates(subject="{{ check }}!", text="**{{ cluster }}**\n{{ summary }}")
        send(teams(server, templates=templates), notification())
    assert lines(server.bodies[0]) == [
        "training!",
        "**h100-prod**",
        "not running: job 4242 FAILED (exit 1)",
    ]


def test_an_address_is_needed() -> None:
    """The error names the key."""
    with pytest.raises(Invalid) as caught:
        Teams(url=Secret("nowhere"))
    assert caught.value.path == ("url",)
