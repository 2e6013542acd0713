"""Delivery, drawn by a seed from `sources/delivery.txt`; the answers were committed before the program ran.

A source whose form is that of one before it, or that is reached through Apprise alone, gives its place to the next of the draw.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from sentinel.channels.http_request import find_proxy
from sentinel.channels.pagerduty import Pagerduty
from sentinel.core.settings import Secret
from tests.channels.contract import send
from tests.channels.samples import notification
from tests.channels.web import Web, answers
from tests.world.case import Case, each
from tests.world.delivery_answers import mailed, outcome

GITHUB = "https://github.com/"
TEAMS = "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error {} with ContextId tcid=62,server=DB5,cv=AszF.1.0.."
COST = "An alert is lost, or it is sent for ever to somebody who never takes it."


def summary_fits(_: Path) -> bool:
    """Whether a long summary is cut to what PagerDuty takes."""
    with Web(answers(202, '{"status":"success"}')) as server:
        channel = Pagerduty(routing_key=Secret("r"), url=f"{server.url}/v2/enqueue")
        send(channel, notification(summary="é" * 3000))
    return len(json.loads(server.bodies[0])["payload"]["summary"]) <= 1024


# Seed 20261129, from 70 sources.
DRAWN_1 = (
    Case("teams-says-too-large-in-a-success", GITHUB + "MicrosoftDocs/msteams-docs/issues/1810", lambda _: outcome("teams", 200, TEAMS.format(413)), "never", COST),
    Case("relay-not-permitted", GITHUB + "axllent/mailpit/issues/219", lambda p: mailed(p, rcpt="551 relay not permitted"), "never", COST),
    Case("discord-webhook-is-gone", "https://discord.com/developers/docs/topics/opcodes-and-status-codes",
         lambda _: outcome("discord", 404, '{"message": "Unknown Webhook", "code": 10015}'), "never", COST),
    Case("mattermost-cannot-parse", "https://developers.mattermost.com/integrate/webhooks/incoming/",
         lambda _: outcome("mattermost", 400, '{"id":"web.incoming_webhook.parse.app_error","message":"Unable to parse incoming data.","status_code":400}'), "never", COST),
    Case("teams-says-bad-request-in-a-success", GITHUB + "MicrosoftDocs/msteams-docs/issues/10233",
         lambda _: outcome("teams", 200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 400 with ContextId 01=2.."), "never", COST),
    Case("discord-has-no-content", "https://discord.com/developers/docs/resources/webhook", lambda _: outcome("discord", 204), "taken", COST),
    Case("alertmanager-refuses-a-label", GITHUB + "prometheus/alertmanager api/v2", lambda _: outcome("alertmanager", 400, '"bad matcher format"'), "never", COST),
    Case("relaying-denied", GITHUB + "jan-vince/smallcontactform/issues/95", lambda p: mailed(p, rcpt="550 5.7.1 Relaying denied"), "never", COST),
    Case("slack-channel-is-archived", GITHUB + "dblock/slack-strava/issues/112", lambda _: outcome("slack bot", 200, '{"ok":false,"error":"is_archived"}'), "never", COST),
    Case("slack-invalid-payload", GITHUB + "statping/statping/issues/777", lambda _: outcome("slack", 400, "invalid_payload"), "never", COST),
    Case("opsgenie-key-format", "https://docs.opsgenie.com/docs/response", lambda _: outcome("opsgenie", 422, '{"message":"Key format is not valid!","took":0.001,"requestId":"rId"}'), "never", COST),
    Case("no-proxy-for-an-ipv6-address", "https://curl.se/docs/manpage.html (NO_PROXY)",
         lambda _: find_proxy("https://[2001:db8::1]/x", {"https_proxy": "p:1", "no_proxy": "2001:db8::1"}), None, COST),
    Case("ntfy-is-full", "https://docs.ntfy.sh/publish/", lambda _: outcome("ntfy", 507, '{"code":50701,"http":507,"error":"cannot store message"}'), "later", COST),
    Case("slack-no-service", GITHUB + "slackapi/slack-github-action/issues/249", lambda _: outcome("slack", 404, "no_service"), "never", COST),
    Case("teams-says-too-many-in-a-success", GITHUB + "MicrosoftDocs/msteams-docs/issues/7425", lambda _: outcome("teams", 200, TEAMS.format(429)), "later", COST),
)  # fmt: skip

# The next fifteen of the same draw.
DRAWN_2 = (
    Case("slack-asks-to-wait", "https://docs.slack.dev/apis/web-api/rate-limits/", lambda _: outcome("slack", 429, "rate_limited", **{"Retry-After": "30"}), "later (30 s)", COST),
    Case("pagerduty-cannot-parse", GITHUB + "prometheus/alertmanager/issues/2082",
         lambda _: outcome("pagerduty", 400, '{"status":"invalid event","message":"Event object format is unrecognized","errors":["JSON parse error"]}'), "never", COST),
    Case("telegram-asks-to-wait", "https://core.telegram.org/bots/api#responseparameters",
         lambda _: outcome("telegram", 429, '{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 35","parameters":{"retry_after":35}}'), "later (35 s)", COST),
    Case("telegram-group-has-moved", "https://core.telegram.org/bots/api#responseparameters",
         lambda _: outcome("telegram", 400, '{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001}}'), "never", COST),
    Case("smtp-login-refused", GITHUB + "grafana/grafana/issues/72261", lambda p: mailed(p, login=True), "later", COST),
    Case("opsgenie-will-process", "https://docs.opsgenie.com/docs/alert-api", lambda _: outcome("opsgenie", 202, '{"result":"Request will be processed","took":0.3,"requestId":"r"}'), "taken", COST),
    Case("pagerduty-summary-is-cut", GITHUB + "prometheus/alertmanager/pull/1701", summary_fits, True, COST),
    Case("exchange-has-too-many-threads", "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/non-delivery-reports-in-exchange-online",
         lambda p: mailed(p, data="432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded"), "later", COST),
    Case("healthchecks-ignores-a-ping", "https://healthchecks.io/docs/http_api/", lambda _: outcome("heartbeat", 200, "OK (rate limited)"), "later", COST),
    Case("discord-asks-to-wait", "https://discord.com/developers/docs/topics/rate-limits",
         lambda _: outcome("discord", 429, '{"message":"You are being rate limited.","retry_after":0.5,"global":true}'), "later (0.5 s)", COST),
    Case("opsgenie-is-busy", "https://docs.opsgenie.com/docs/api-rate-limiting", lambda _: outcome("opsgenie", 429, '{"message":"You are making too many requests!","took":0.0}'), "later", COST),
    Case("relay-denied-for-now", GITHUB + "root-io/vmail/issues/68", lambda p: mailed(p, rcpt="454 4.7.1 <ann@example.org>: Relay access denied"), "later", COST),
    Case("google-chat-is-exhausted", "https://developers.google.com/workspace/chat/limits", lambda _: outcome("webhook", 429, '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}'), "later", COST),
    Case("pagerduty-took-it", "https://developer.pagerduty.com/docs/send-alert-event", lambda _: outcome("pagerduty", 202, '{"status":"success","message":"Event processed","dedup_key":"k"}'), "taken", COST),
    Case("healthchecks-knows-no-such-check", "https://healthchecks.io/docs/http_api/", lambda _: outcome("heartbeat", 200, "OK (not found)"), "later", COST),
)  # fmt: skip


# The next of the same draw: 39, 40, 42 to 50, 53, 55, 56, 59. The others were used, or are reached through Apprise alone.
DRAWN_3 = (
    Case("relay-access-denied", GITHUB + "docker-mailserver/docker-mailserver/issues/385", lambda p: mailed(p, rcpt="554 5.7.1 <ann@example.org>: Relay access denied"), "never", COST),
    Case("slack-bot-asks-to-wait", "https://docs.slack.dev/apis/web-api/rate-limits/",
         lambda _: outcome("slack bot", 429, '{"ok":false,"error":"ratelimited"}', **{"Retry-After": "10"}), "later (10 s)", COST),
    Case("pagerduty-says-no-more", GITHUB + "moov-io/achgateway/issues/171", lambda _: outcome("pagerduty", 400, "Bad Request"), "never", COST),
    Case("slack-rolls-up", "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks", lambda _: outcome("slack", 500, "rollup_error"), "later", COST),
    Case("exchange-denies-to-send-as", "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/non-delivery-reports-in-exchange-online",
         lambda p: mailed(p, data="550 5.7.60 SMTP; Client does not have permissions to send as this sender"), "never", COST),
    Case("telegram-bad-gateway", "https://core.telegram.org/bots/api", lambda _: outcome("telegram", 502, "<html><h1>502 Bad Gateway</h1></html>"), "later", COST),
    Case("no-proxy-for-a-network", "https://curl.se/docs/manpage.html (NO_PROXY)", lambda _: find_proxy("http://10.3.0.7:9093/x", {"http_proxy": "p:1", "no_proxy": "10.0.0.0/8"}), None, COST),
    Case("slack-prohibits", "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks", lambda _: outcome("slack", 403, "action_prohibited"), "never", COST),
    Case("gmail-sees-an-unusual-rate", "https://support.google.com/a/answer/3221692", lambda p: mailed(p, data="421 4.7.28 Gmail has detected an unusual rate of mail"), "later", COST),
    Case("squid-wants-a-login", "https://wiki.squid-cache.org/Features/Authentication", lambda _: outcome("webhook", 407, "<html>ERR_CACHE_ACCESS_DENIED</html>"), "later", COST),
    Case("no-proxy-for-localhost", "https://pkg.go.dev/golang.org/x/net/http/httpproxy", lambda _: find_proxy("http://localhost:9093/x", {"http_proxy": "p:1"}), None, COST),
    Case("telegram-bot-was-kicked", "https://core.telegram.org/bots/api", lambda _: outcome("telegram", 403, '{"ok":false,"error_code":403,"description":"Forbidden: bot was kicked from the group chat"}'), "never", COST),
    Case("gmail-says-too-large", "https://support.google.com/a/answer/3221692", lambda p: mailed(p, data="552 5.2.3 Your message exceeded Google's message size limits."), "never", COST),
    Case("slack-channel-is-gone", GITHUB + "integrations/slack/issues/197", lambda _: outcome("slack", 410, "channel_is_archived"), "never", COST),
    Case("pagerduty-is-busy", GITHUB + "prometheus/alertmanager/issues/1809", lambda _: outcome("pagerduty", 429, '{"status":"throttle exceeded"}'), "later", COST),
)  # fmt: skip


# Seed 20261202, from 32 sources: 22 that were added for it, and those that were left.
DRAWN_4 = (
    Case("mattermost-took-it", "https://developers.mattermost.com/integrate/webhooks/incoming/", lambda _: outcome("mattermost", 200, "ok"), "taken", COST),
    Case("no-such-ping", "https://healthchecks.io/docs/http_api/", lambda _: outcome("heartbeat", 404, "not found"), "never", COST),
    Case("alertmanager-took-it", GITHUB + "prometheus/alertmanager api/v2", lambda _: outcome("alertmanager", 200, ""), "taken", COST),
    Case("greylisted", GITHUB + "viridIT/vSMTP/pull/571", lambda p: mailed(p, rcpt="451 4.7.1 Greylisting in action, please come back later"), "later", COST),
    Case("no-such-syntax", "postfix 3.9, smtpd", lambda p: mailed(p, rcpt="501 5.1.3 Bad recipient address syntax"), "never", COST),
    Case("ntfy-wants-less", "https://docs.ntfy.sh/publish/#limitations", lambda _: outcome("ntfy", 429, '{"code":42901,"http":429,"error":"limit reached: too many requests","link":"https://ntfy.sh/docs/publish/#limitations"}'), "later", COST),
    Case("ntfy-says-too-large", "https://docs.ntfy.sh/publish/#limitations", lambda _: outcome("ntfy", 413, '{"code":41301,"http":413,"error":"attachment too large"}'), "never", COST),
    Case("teams-says-one", GITHUB + "sebbmeyer/php-microsoft-teams-connector/pull/14", lambda _: outcome("teams", 200, "1"), "taken", COST),
    Case("alertmanager-starts", GITHUB + "prometheus/alertmanager api/v2", lambda _: outcome("alertmanager", 503, "upstream connect error"), "later", COST),
    Case("a-proxy-in-capitals", "https://curl.se/docs/manpage.html (HTTPS_PROXY)", lambda _: find_proxy("https://hooks.example.org/x", {"HTTPS_PROXY": "http://p:3128/"}), "http://p:3128/", COST),
    Case("slack-fails-inside", "https://docs.slack.dev/reference/methods/chat.postMessage", lambda _: outcome("slack bot", 200, '{"ok":false,"error":"internal_error"}'), "later", COST),
    Case("slack-knows-no-token", "https://docs.slack.dev/reference/methods/chat.postMessage", lambda _: outcome("slack bot", 200, '{"ok":false,"error":"invalid_auth"}'), "never", COST),
    Case("opsgenie-knows-no-key", "https://docs.opsgenie.com/docs/response", lambda _: outcome("opsgenie", 401, '{"message":"API Key is invalid","took":0.0}'), "never", COST),
    Case("slack-knows-no-channel", "https://docs.slack.dev/reference/methods/chat.postMessage", lambda _: outcome("slack bot", 200, '{"ok":false,"error":"channel_not_found"}'), "never", COST),
    Case("kuma-knows-no-push", GITHUB + "louislam/uptime-kuma server/routers/api-router.js", lambda _: outcome("heartbeat", 404, '{"ok":false,"msg":"Monitor not found or not active."}'), "never", COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4)
def test_an_answer_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
