"""Delivery, hunted by somebody who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.channels.http_request import find_proxy
from sentinel.channels.smtp import ehlo_name
from tests.world.case import Case, each
from tests.world.delivery_answers import mailed, outcome, through_program
from tests.world.test_delivery_drawn import COST

PORTAL = "<!DOCTYPE html>\n<html><head><title>Network login</title></head><body>Please sign in</body></html>"
SPF = "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/non-delivery-reports-in-exchange-online"

HUNTED_1 = (
    Case("misdirected", "RFC 9110 15.5.20: another connection may be asked", lambda _: outcome("webhook", 421, "Misdirected Request"), "later", COST),
    Case("locked", "RFC 4918 11.3", lambda _: outcome("webhook", 423, "Locked"), "later", COST),
    Case("the-balancer-gave-up", "nginx 1.27, ngx_http_request.h (499)", lambda _: outcome("webhook", 499), "later", COST),
    Case("maintenance", "RFC 9110 10.2.3", lambda _: outcome("pagerduty", 503, "", **{"Retry-After": "120"}), "later (120 s)", COST),
    Case("cloudflare-has-no-origin", "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/", lambda _: outcome("discord", 520, "error code: 520"), "later", COST),
    Case("a-portal-for-slack", "a captive portal, RFC 8952", lambda _: outcome("slack", 200, PORTAL), "later", COST),
    Case("a-portal-for-pagerduty", "a captive portal, RFC 8952", lambda _: outcome("pagerduty", 200, PORTAL), "later", COST),
    Case("a-receiver-that-answers-in-html", "a program of one's own", lambda _: outcome("webhook", 200, "<html>ok</html>"), "taken", COST),
    Case("a-ping-is-taken", "https://healthchecks.io/docs/http_api/", lambda _: outcome("heartbeat", 200, "OK"), "taken", COST),
    Case("exchange-knows-nobody", SPF, lambda p: mailed(p, rcpt="550 5.4.1 Recipient address rejected: Access denied. AS(201806281)"), "never", COST),
    Case("no-name-server", "postfix 3.9, postconf(5) unknown_address_reject_code", lambda p: mailed(p, data="451 4.3.0 Temporary lookup failure"), "later", COST),
    Case("too-many-recipients", "RFC 5321 4.5.3.1.10", lambda p: mailed(p, rcpt="452 4.5.3 Too many recipients"), "later", COST),
    Case("sendmail-is-busy", "sysexits.h, EX_TEMPFAIL", lambda p: through_program(p, 75), "later", COST),
    Case("a-dot-behind-the-host", "hostname --fqdn of a resolver with a root dot", lambda _: ehlo_name("node-7.hpc.example.org.", "example.org"), "node-7.hpc.example.org", COST),
    Case("no-proxy-in-capitals", "https://curl.se/docs/manpage.html (NO_PROXY)", lambda _: find_proxy("https://hooks.example.org/x", {"https_proxy": "p:1", "NO_PROXY": "EXAMPLE.ORG"}), None, COST),
)  # fmt: skip


HUNTED_2 = (
    Case("not-a-success", "a program of one's own", lambda _: outcome("webhook", 200, '{"success": false, "error": "queue is full"}'), "later", COST),
    Case("a-string-of-zero", "https://developer.work.weixin.qq.com (errcode)", lambda _: outcome("webhook", 200, '{"errcode":"0","errmsg":"ok"}'), "taken", COST),
    Case("a-mark-before-the-json", "RFC 8259 8.1: a byte order mark", lambda _: outcome("webhook", 200, '\ufeff{"ok": false}'), "later", COST),
    Case("at-once", "RFC 9110 10.2.3", lambda _: outcome("webhook", 503, "", **{"Retry-After": "0"}), "later (0 s)", COST),
    Case("soon", "RFC 9110 10.2.3, against it", lambda _: outcome("webhook", 503, "", **{"Retry-After": "soon"}), "later", COST),
    Case("two-days", "https://core.telegram.org/bots/api#responseparameters", lambda _: outcome("telegram", 429, '{"ok":false,"error_code":429,"parameters":{"retry_after":172800}}'), "later (86400 s)", COST),
    Case("cloudflare-bans", "https://discord.com/developers/docs/topics/rate-limits (error 1015)", lambda _: outcome("discord", 429, "<!DOCTYPE html><title>Access denied</title>", **{"Retry-After": "3600"}), "later (3600 s)", COST),
    Case("a-ping-that-is-not-ok", "https://github.com/louislam/uptime-kuma", lambda _: outcome("heartbeat", 200, '{"ok":false,"msg":"Monitor is paused"}'), "later", COST),
    Case("a-ping-with-a-newline", "https://github.com/healthchecks/healthchecks", lambda _: outcome("heartbeat", 200, "OK\n"), "taken", COST),
    Case("this-machine-by-ipv6", "https://pkg.go.dev/golang.org/x/net/http/httpproxy", lambda _: find_proxy("http://[::1]:9093/x", {"http_proxy": "p:1"}), None, COST),
    Case("this-machine-by-another-number", "RFC 1122 3.2.1.3", lambda _: find_proxy("http://127.5.0.1/x", {"http_proxy": "p:1"}), None, COST),
    Case("nobody-paid", "RFC 9110 15.5.3", lambda _: outcome("webhook", 402), "later", COST),
    Case("a-conflict", "RFC 9110 15.5.10", lambda _: outcome("webhook", 409), "later", COST),
    Case("moved", "RFC 9110 15.4.2: a POST does not follow", lambda _: outcome("slack", 301, "", Location="https://slack.com/signin"), "never", COST),
    Case("only-the-beginning-counts", "a log that a receiver sends back", lambda _: outcome("webhook", 200, 'stored: {"ok": false}'), "taken", COST),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_2)
def test_an_answer_that_was_hunted(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
