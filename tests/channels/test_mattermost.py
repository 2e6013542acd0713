"""Mattermost's incoming webhook: 200 `ok`, errors as JSON with an id."""

from typing import Any, ClassVar

import pytest

from sentinel.channels.mattermost import Mattermost
from sentinel.core.errors import Invalid
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET
from tests.channels.samples import hostile, notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, sent


def mattermost(server: Web, **changes: Any) -> Mattermost:
    return Mattermost(url=Secret(f"{server.url}/hooks/{SECRET}"), **changes)


class TestContract(ServiceContract):
    """https://developers.mattermost.com/integrate/webhooks/incoming/"""

    MOODS: ClassVar[Any] = {
        "takes": answers(200, "ok"),
        "refuses": answers_json(
            404, {"id": "web.incoming_webhook.invalid.app_error", "message": f"bad {SECRET}"}
        ),
        "later": answers_json(500, {"id": "app.post.save.app_error", "message": SECRET}),
    }

    def channel(self, url: str, timeout: Duration) -> Mattermost:
        return Mattermost(url=Secret(f"{url}/hooks/{SECRET}"), timeout=timeout)


def test_an_answer_is_one_word() -> None:
    """Its address is long, and a key."""
    with Web(answers(200, "ok")) as server:
        links = {"Acknowledge": "https://s.example.org/a/t_1/"}
        body = sent(mattermost(server), server, notification(links=links))
    assert "[Acknowledge](https://s.example.org/a/t_1/)" in body["text"].split("\n")


MARKUP = [
    ("@channel @here @alice", "＠channel ＠here ＠alice"),
    ("a_b_c *x* ~~y~~ `z`", r"a\_b\_c \*x\* \~\~y\~\~ \`z\`"),
    ("[x](http://evil.example)", r"\[x\](http://evil.example)"),
    ("| a | b |", r"\| a \| b \|"),
    ("# not a heading", r"\# not a heading"),
    ("\\*x\\*", r"\\\*x\\\*"),
    ("see https://wiki.example.org/a_b#c", "see https://wiki.example.org/a_b#c"),
    ("ümläut 作业", "ümläut 作业"),
]


@pytest.mark.parametrize(("summary", "shown"), MARKUP)
def test_markup_in_a_summary_is_text(summary: str, shown: str) -> None:
    """Nothing is set in type, linked or called; addresses of the web stay whole."""
    with Web(answers(200, "ok")) as server:
        body = sent(mattermost(server), server, notification(summary=summary))
    assert body["text"].split("\n")[1] == shown


def test_a_code_block_ends_where_we_end_it() -> None:
    """A log line with three backticks does not."""
    with Web(answers(200, "ok")) as server:
        body = sent(mattermost(server), server, notification(details="```\n# big\n@channel"))
    assert "| '''\n| # big\n| @channel\n```" in body["text"]
    assert body["text"].count("```") == 6


def test_a_post_is_bounded() -> None:
    """Far below Mattermost's 16,383 characters, however much has to be escaped."""
    with Web(answers(200, "ok")) as server:
        body = sent(mattermost(server), server, hostile("*_~" * 5000))
    assert 1000 < len(body["text"]) < 8000


def test_another_channel_can_be_named() -> None:
    """Only where it is configured."""
    with Web(answers(200, "ok")) as server:
        assert "channel" not in sent(mattermost(server), server)
        assert sent(mattermost(server, channel="ops"), server)["channel"] == "ops"


def test_an_address_is_needed() -> None:
    """The error names the key."""
    with pytest.raises(Invalid) as caught:
        Mattermost(url=Secret(""))
    assert caught.value.path == ("url",)
