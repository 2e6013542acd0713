"""A Slack bot against a server that keeps a channel as Slack does.

Answers as in https://docs.slack.dev/reference/methods/chat.postMessage, chat.update and
conversations.history.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from aiohttp import web

from sentinel.channels import slack_bot
from sentinel.channels.slack import Slack
from sentinel.core.model import Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from tests.channels.contract import SECRET, send
from tests.channels.samples import notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, failure

TOKEN = SECRET
TOOK = {"ok": True, "channel": "C1", "ts": "1.000100", "message": {"text": SECRET}}


def bot(url: str, **changes: Any) -> Slack:
    return Slack(**{"token": Secret(TOKEN), "channel": "C1", "api": f"{url}/api", **changes})


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What the process knows of threads is not for the next test."""
    slack_bot._roots.clear()
    yield
    slack_bot._roots.clear()


class TestContract(ServiceContract):
    """200 even for errors, which `ok` tells; rate limits by 429."""

    MOODS: ClassVar[Any] = {
        "takes": answers_json(200, TOOK),
        "refuses": answers_json(200, {"ok": False, "error": f"channel_not_found {SECRET}"}),
        "later": answers(429, SECRET, **{"Retry-After": "7"}),
    }

    def channel(self, url: str, timeout: Duration) -> Slack:
        return bot(url, timeout=timeout)


ERRORS = [
    ("invalid_auth", True, "auth"),
    ("missing_scope", True, "auth"),
    ("channel_not_found", True, "refused"),
    ("not_in_channel", True, "refused"),
    ("msg_too_long", True, "refused"),
    ("ratelimited", False, "rate"),
    ("internal_error", False, "server"),
    ("fatal_error", False, "server"),
    ("service_unavailable", False, "server"),
]


@pytest.mark.parametrize(("error", "permanent", "reason"), ERRORS)
def test_what_an_error_means(error: str, permanent: bool, reason: str) -> None:
    """A token that is wrong stays wrong; an error inside Slack passes."""
    with Web(answers_json(200, {"ok": False, "error": error})) as server:
        found = failure(bot(server.url))
    assert (found.permanent, found.reason) == (permanent, reason)
    assert error in str(found)


@pytest.mark.parametrize("body", ["", "<html>", "[]", "{}", '{"ok": 1}', '{"ok": false}'])
def test_an_answer_that_is_none_is_tried_again(body: str) -> None:
    """A proxy's page, or half a document."""
    with Web(answers(200, body)) as server:
        found = failure(bot(server.url))
    assert (found.permanent, found.reason) == (False, "server")


class Workspace:
    """One channel; `ill` names methods that fail, and how."""

    def __init__(self, page: int = 200) -> None:
        self.messages: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.ill: dict[str, str] = {}
        self._page = page

    async def __call__(self, request: web.Request) -> web.Response:
        method = request.path.rsplit("/", 1)[-1]
        self.calls.append(method)
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        if method in self.ill:
            return web.json_response({"ok": False, "error": self.ill[method]})
        if method == "conversations.history":
            return web.json_response(self._history(request))
        body = await request.json()
        act = {"chat.postMessage": self._post, "chat.update": self._update}[method]
        return web.json_response(act(body))

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        ts = f"{1790730800 + len(self.messages)}.000100"
        self.messages.append(
            {**body, "ts": ts, **({"thread_ts": body["thread_ts"]} if "thread_ts" in body else {})}
        )
        return {"ok": True, "channel": "C1", "ts": ts}

    def _update(self, body: dict[str, Any]) -> dict[str, Any]:
        (found,) = [m for m in self.messages if m["ts"] == body["ts"]]
        found |= body
        return {"ok": True, "channel": "C1", "ts": body["ts"]}

    def _history(self, request: web.Request) -> dict[str, Any]:
        assert request.query["include_all_metadata"] == "true"
        newest = [m for m in self.messages if m["ts"] > request.query["oldest"]][::-1]
        tops = [m for m in newest if "thread_ts" not in m or m.get("reply_broadcast")]
        start = int(request.query.get("cursor") or 0)
        after = start + self._page
        cursor = str(after) if after < len(tops) else ""
        page = tops[start:after]
        return {"ok": True, "messages": page, "response_metadata": {"next_cursor": cursor}}

    @property
    def tops(self) -> list[dict[str, Any]]:
        return [m for m in self.messages if "thread_ts" not in m]


def worse(**changes: Any) -> Any:
    return notification(**{"reason": "worse", "key": "01J9-2", **changes})


def resolved(**changes: Any) -> Any:
    fields = {"reason": "resolved", "status": Status.OK, "key": "01J9-3", "summary": "it runs"}
    return notification(**{**fields, **changes})


def test_what_follows_is_told_in_the_thread() -> None:
    """One message in the channel per alert, which shows how things stand."""
    space = Workspace()
    with Web(space) as server:
        for told in (notification(), worse(), resolved()):
            receipt = send(bot(server.url), told)
    (first,) = space.tops
    assert [m.get("thread_ts") for m in space.messages] == [None, first["ts"], first["ts"]]
    assert "RESOLVED" in json.dumps(first["blocks"])
    assert "thread" in receipt.text
    assert "conversations.history" not in space.calls


def test_what_joins_an_incident_is_told_in_its_thread() -> None:
    """Shown to the whole channel, for it is news; and what follows about it there too."""
    space, other = Workspace(), {"alert": "train", "incident": notification().alert, "subject": "t"}
    with Web(space) as server:
        for told in (notification(), notification(**other), resolved(**other)):
            send(bot(server.url), told)
        send(bot(server.url), notification(alert="alone", incident="nobody-heard-of-it"))
    first, last = space.tops
    assert [m.get("thread_ts") for m in space.messages] == [None, first["ts"], first["ts"], None]
    assert [m.get("reply_broadcast") for m in space.messages[1:3]] == [True, False]
    assert last["ts"] != first["ts"]


def test_worse_and_reminders_are_shown_to_the_whole_channel() -> None:
    """A thread alone would be read by those only who follow it."""
    space = Workspace()
    with Web(space) as server:
        for told in (notification(), worse(), worse(reason="repeat"), resolved()):
            send(bot(server.url), told)
    assert [m.get("reply_broadcast") for m in space.messages] == [None, True, True, False]


def test_what_sentinel_did_leaves_the_first_message_as_it_is() -> None:
    """It shows how the trouble stands, and that has not changed by it."""
    space = Workspace()
    with Web(space) as server:
        send(bot(server.url), notification())
        send(bot(server.url), notification(reason="action", status=Status.OK, key="01J9:done"))
    assert "CRITICAL" in json.dumps(space.tops[0]["blocks"])
    assert "chat.update" not in space.calls
    assert len(space.tops) == 1


@pytest.mark.parametrize("page", [200, 2])
def test_a_restart_finds_the_thread_again(page: int) -> None:
    """In the channel's history, by the metadata, behind other messages and pages of them."""
    space = Workspace(page)
    with Web(space) as server:
        send(bot(server.url), notification())
        for i in range(4):
            send(bot(server.url), notification(alert=f"other-{i}"))
        slack_bot._roots.clear()
        send(bot(server.url), worse())
        send(bot(server.url), resolved())
    assert [m.get("thread_ts") for m in space.messages[-2:]] == [space.messages[0]["ts"]] * 2
    assert "RESOLVED" in json.dumps(space.messages[0]["blocks"])


def test_a_reply_is_no_beginning() -> None:
    """One that the whole channel was shown is in its history too."""
    space = Workspace()
    with Web(space) as server:
        send(bot(server.url), notification())
        send(bot(server.url), worse())
        slack_bot._roots.clear()
        send(bot(server.url), resolved())
    assert space.messages[-1]["thread_ts"] == space.messages[0]["ts"]


def test_nothing_before_the_alert_is_looked_at() -> None:
    """An hour before its beginning is where the search ends."""
    space = Workspace()
    with Web(space) as server:
        send(bot(server.url), notification(since="2027-01-01T00:00:00+00:00"))
        slack_bot._roots.clear()
        send(bot(server.url), resolved(since="2027-01-01T00:00:00+00:00"))
    assert len(space.tops) == 2


WITHOUT_HISTORY = ["missing_scope", "not_in_channel", "ratelimited", "internal_error"]


@pytest.mark.parametrize("error", WITHOUT_HISTORY)
def test_without_the_history_it_is_told_all_the_same(error: str) -> None:
    """As a message of its own, and the receipt says why."""
    space = Workspace()
    with Web(space) as server:
        space.ill = {"conversations.history": error}
        receipt = send(bot(server.url), resolved())
    assert len(space.tops) == 1
    assert error in receipt.text


JUNK = [
    [1, None, "x", {}],
    [{"metadata": "x"}, {"metadata": {"event_type": "sentinel_alerts", "event_payload": "x"}}],
    {"a": 1},
]


@pytest.mark.parametrize("messages", JUNK)
@pytest.mark.parametrize("more", [None, "x", {"next_cursor": 5}])
def test_a_history_of_nonsense_costs_no_alert(messages: Any, more: Any) -> None:
    """It is told, in the channel."""

    async def odd(request: web.Request) -> web.Response:
        if request.path.endswith("history"):
            return web.json_response({"ok": True, "messages": messages, "response_metadata": more})
        return web.json_response(TOOK)

    with Web(odd) as server:
        assert "accepted it" in send(bot(server.url), resolved()).text


def test_a_history_that_hangs_costs_a_quarter_of_the_time() -> None:
    """Then it is told, in the channel."""

    async def slow(request: web.Request) -> web.Response:
        if request.path.endswith("history"):
            await asyncio.sleep(30)
        return web.json_response(TOOK)

    with Web(slow) as server:
        receipt = send(bot(server.url, timeout=Duration(2)), resolved())
    assert "not in a thread" in receipt.text


def test_a_first_message_that_cannot_change_is_no_failure() -> None:
    """The thread has it; sending again would tell it twice."""
    space = Workspace()
    with Web(space) as server:
        send(bot(server.url), notification())
        space.ill = {"chat.update": "cant_update_message"}
        receipt = send(bot(server.url), resolved())
    assert len(space.messages) == 2
    assert "cant_update_message" in receipt.text


def test_a_thread_that_is_gone_is_no_failure() -> None:
    """Somebody deleted it: told in the channel, and that is the new first message."""
    space = Workspace()

    async def picky(request: web.Request) -> web.Response:
        if request.path.endswith("postMessage") and "thread_ts" in await request.json():
            return web.json_response({"ok": False, "error": "thread_not_found"})
        return await space(request)

    with Web(picky) as server:
        send(bot(server.url), notification())
        receipt = send(bot(server.url), resolved())
    assert len(space.tops) == 2
    assert "thread_not_found" in receipt.text


def test_an_alert_of_a_group_has_its_thread_there() -> None:
    """But the group's message stays: it is about others too. All of them together change it."""
    space = Workspace()
    three = [notification(alert=f"a{i}", subject=f"job-{i}") for i in range(3)]
    ends = [resolved(alert=f"a{i}", subject=f"job-{i}") for i in range(3)]
    with Web(space) as server:
        asyncio.run(bot(server.url).send(three))
        send(bot(server.url), ends[1])
        before = json.dumps(space.messages[0]["blocks"])
        asyncio.run(bot(server.url).send(ends))
    assert "RESOLVED" not in before
    assert "3 resolved" in json.dumps(space.messages[0]["blocks"])
    assert len(space.tops) == 1


def test_alerts_of_two_threads_are_told_in_the_channel() -> None:
    """There is no one thread that they belong to."""
    space = Workspace()
    with Web(space) as server:
        for i in range(2):
            send(bot(server.url), notification(alert=f"a{i}"))
        asyncio.run(bot(server.url).send([resolved(alert=f"a{i}") for i in range(2)]))
    assert len(space.tops) == 3
