"""What each service answers to a message that it took, and what no service answers then.

Sources stand beside each form. Every other 2xx is a doubt, and never an error that is sent again
and again.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sentinel.channels.alertmanager import Alertmanager
from sentinel.channels.discord import Discord
from sentinel.channels.http_channel import HttpChannel
from sentinel.channels.mattermost import Mattermost
from sentinel.channels.ntfy import Ntfy
from sentinel.channels.opsgenie import Opsgenie
from sentinel.channels.pagerduty import Pagerduty
from sentinel.channels.slack import Slack
from sentinel.channels.teams import Teams
from sentinel.channels.telegram import Telegram
from sentinel.channels.webhook import Webhook
from sentinel.core.errors import Invalid
from sentinel.core.settings import ExpectedAnswer, Secret
from tests.channels.contract import send
from tests.channels.samples import notification
from tests.channels.web import Web, answers, failure

MAKERS: dict[str, Callable[..., HttpChannel]] = {
    "slack": lambda url, **k: Slack(url=Secret(f"{url}/services/T0/B0/x"), **k),
    "mattermost": lambda url, **k: Mattermost(url=Secret(f"{url}/hooks/x"), **k),
    "discord": lambda url, **k: Discord(url=Secret(f"{url}/api/webhooks/1/x"), **k),
    "teams": lambda url, **k: Teams(url=Secret(f"{url}/workflows/x"), **k),
    "telegram": lambda url, **k: Telegram(token=Secret("12:AB"), chat=1, api=url, **k),
    "ntfy": lambda url, **k: Ntfy(url=Secret(f"{url}/topic"), **k),
    "pagerduty": lambda url, **k: Pagerduty(routing_key=Secret("r"), url=url, **k),
    "opsgenie": lambda url, **k: Opsgenie(api_key=Secret("k"), api=url, **k),
    "alertmanager": lambda url, **k: Alertmanager(urls=[url], **k),
    "webhook": lambda url, **k: Webhook(url=Secret(url), **k),
}
TAKEN = [
    # https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/
    ("slack", 200, "ok"),
    # https://docs.rocket.chat/docs/integrations (API.v1.success)
    ("slack", 200, '{"success":true}'),
    # server/channels/web/webhook.go: incomingWebhook()
    ("mattermost", 200, "ok"),
    # https://discord.com/developers/docs/resources/webhook#execute-webhook
    ("discord", 200, '{"id":"1302","type":0,"content":"","embeds":[]}'),
    ("discord", 204, ""),
    # https://learn.microsoft.com/power-automate/teams/send-a-message-in-teams, and the connectors
    ("teams", 202, ""),
    ("teams", 200, "1"),
    # https://core.telegram.org/bots/api#making-requests
    ("telegram", 200, '{"ok":true,"result":{"message_id":7}}'),
    # https://docs.ntfy.sh/publish/#publish-as-json
    ("ntfy", 200, '{"id":"hwQ2YpKdmg","time":1735941246,"event":"message","topic":"topic"}'),
    # https://developer.pagerduty.com/docs/send-alert-event
    ("pagerduty", 202, '{"status":"success","message":"Event processed","dedup_key":"x"}'),
    # https://docs.opsgenie.com/docs/alert-api#create-alert
    ("opsgenie", 202, '{"result":"Request will be processed","took":0.3,"requestId":"43a2"}'),
    # prometheus/alertmanager api/v2/openapi.yaml: postAlerts, 200 without a body
    ("alertmanager", 200, ""),
    # words that say that it was taken, and what says nothing: no word, ids, numbers, dates
    ("webhook", 200, "Got it, thanks."),
    ("webhook", 200, '{"message":"Workflow was started"}'),
    ("webhook", 201, '{"key":"ED-24","self":"https://x.example.org/rest/api/3/issue/10000"}'),
    ("webhook", 200, '{"id":"hwQ2YpKdmg","number":7,"at":"2026-11-29T22:00:00Z"}'),
    ("webhook", 200, '{"sent":1,"failed":0,"error_message":null}'),
    ("webhook", 200, "null"),
    ("webhook", 204, ""),
    # Feishu (open.feishu.cn, custom bots), PushPlus, DingTalk; GraphQL (spec.graphql.org, 7.1)
    ("webhook", 200, '{"code":0,"data":{},"msg":"success"}'),
    ("webhook", 200, '{"code":200,"msg":"success"}'),
    ("webhook", 200, '{"errcode":0,"errmsg":"ok"}'),
    ("webhook", 200, '{"errors":[],"error":null,"data":{"id":5}}'),
    ("webhook", 200, '{"status":"success","text":"no error, no failure"}'),
]
IN_DOUBT = [
    ("slack", 200, ""),
    ("slack", 200, "Your request was blocked"),
    ("slack", 202, "ok"),
    ("slack", 200, '{"result":"queued"}'),
    ("mattermost", 200, "not ok"),
    ("mattermost", 200, "0"),
    ("discord", 200, "{}"),
    ("discord", 200, "[]"),
    ("teams", 200, ""),
    ("teams", 200, "Summary or Text is required."),
    ("teams", 202, "queued by the gateway"),
    ("telegram", 200, '{"result":{}}'),
    ("telegram", 200, "ok"),
    ("ntfy", 200, '{"event":"open"}'),
    ("ntfy", 200, "<p>captive</p>"),
    ("pagerduty", 200, '{"status":"success"}'),
    ("pagerduty", 202, '{"status":"invalid event","message":"no"}'),
    ("opsgenie", 202, ""),
    ("opsgenie", 200, '{"data":[]}'),
    ("alertmanager", 200, '{"version":"1.2"}'),
    ("alertmanager", 202, ""),
    # Feishu and PushPlus; GraphQL; AWS Lambda behind an API gateway
    ("webhook", 200, '{"code":19024,"msg":"Key Words Not Found"}'),
    ("webhook", 200, '{"code":903,"msg":"no such token"}'),
    ("webhook", 200, '{"retcode":"1404","data":null}'),
    ("webhook", 200, '{"errors":[{"message":"no such field"}],"data":null}'),
    ("webhook", 200, '{"errorMessage":"Task timed out after 3.00 seconds"}'),
    ("webhook", 200, '{"status":"error","id":7}'),
    ("webhook", 200, '{"result":"failure"}'),
    # nobody knows these words, and each may be a refusal
    ("webhook", 200, "whatever"),
    ("webhook", 200, "sent: 0"),
    ("webhook", 200, "ERR105"),
    ("webhook", 200, "\N{CROSS MARK}"),
    ("webhook", 202, '{"message":"Monthly quota reached"}'),
    ("webhook", 200, '{"reason":"trial_over","id":"5a1f0e"}'),
    ("webhook", 200, '{"success":true,"delivered":0}'),
    ("webhook", 200, '{"status":-1,"id":7}'),
    ("webhook", 201, '{"key":"ED-24","status":"no such project"}'),
    ("webhook", 200, "0 of 1"),
]


def sent_to(kind: str, status: int, said: str, **settings: Any) -> Any:
    """The receipt of an alert to a service that answers so."""
    with Web(answers(status, said)) as server:
        return send(MAKERS[kind](server.url, **settings), notification())


@pytest.mark.parametrize(("kind", "status", "said"), TAKEN)
def test_the_documented_answer_is_beyond_doubt(kind: str, status: int, said: str) -> None:
    """The receipt has none."""
    assert sent_to(kind, status, said).doubt == ""


@pytest.mark.parametrize(("kind", "status", "said"), IN_DOUBT)
def test_another_answer_of_success_is_a_doubt(kind: str, status: int, said: str) -> None:
    """The receipt names the answer and the key that settles it; nothing is raised."""
    doubt = sent_to(kind, status, said).doubt
    assert str(status) in doubt
    assert "expect" in doubt
    assert said[:20] in doubt


@pytest.mark.parametrize("kind", sorted(set(MAKERS) - {"webhook"}))
@pytest.mark.parametrize("form", ["<head><title>Blocked</title></head>", "<!-- x --><html></html>"])
def test_a_page_is_a_failure_for_now(kind: str, form: str) -> None:
    """A proxy or a login page: it is sent again."""
    with Web(answers(200, form, **{"Content-Type": "text/html; charset=utf-8"})) as server:
        error = failure(MAKERS[kind](server.url))
    assert not error.permanent


@pytest.mark.parametrize("kind", MAKERS)
def test_expect_says_what_counts(kind: str) -> None:
    """Another service that speaks the same form: its answer is success, and the usual one is not."""
    form = ExpectedAnswer(status=201, type="application/json", json={"code": 0, "id": None})
    with Web(
        answers(201, '{"code":0,"id":5}', **{"Content-Type": "application/json; charset=utf-8"})
    ) as server:
        assert send(MAKERS[kind](server.url, expect=[form]), notification()).doubt == ""
    assert sent_to(kind, 200, "whatever", expect=[form]).doubt


def test_a_pattern_of_expect_means_lines() -> None:
    """^ and $ do."""
    form = ExpectedAnswer(body=re.compile("^accepted$"))
    assert sent_to("webhook", 200, "id 7\naccepted\n", expect=[form]).doubt == ""
    assert sent_to("webhook", 200, "not accepted", expect=[form]).doubt


def test_a_page_that_is_expected_is_success() -> None:
    """The user's word counts."""
    form = ExpectedAnswer(body=re.compile("Message stored"))
    assert sent_to("webhook", 200, "<html>Message stored</html>", expect=[form]).doubt == ""


def test_a_status_that_is_no_success_is_refused() -> None:
    """With the key."""
    with pytest.raises(Invalid) as caught:
        ExpectedAnswer(status=302)
    assert caught.value.path == ("status",)


def test_one_sure_alertmanager_is_enough() -> None:
    """Of two instances; a doubt remains where none is sure."""
    with Web(answers(200)) as sure, Web(answers(200, "hm")) as other:
        both = Alertmanager(urls=[other.url, sure.url])
        assert send(both, notification()).doubt == ""
        assert "hm" in send(Alertmanager(urls=[other.url, other.url]), notification()).doubt
