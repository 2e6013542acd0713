"""The way of a mail from the alert to the server, whatever the server does."""

import re
import signal
from collections.abc import Callable

import pytest

from tests.lab.service import Service
from tests.lab.smtp import Mail, SmtpServer
from tests.service.watch import Line, Watch

CONFIG = """\
checks:
  LAMP
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  oncall: {{kind: email, to: [ops@example.org], from: s@example.org, host: localhost, port: {port}, {more}}}
"""
PLAIN = "security: none"


@pytest.mark.long
def test_a_server_that_was_down_gets_everything_in_order_once_it_is_up(
    watch: Watch, smtp: SmtpServer
) -> None:
    """Four transitions while connections are refused, a restart in the middle: each is told
    once, in its order; the other channel did not wait."""
    smtp.down()
    service = started(watch, smtp)
    for count, code in enumerate((2, 0), 1):
        turn(watch, service, code, count)
    assert service.terminate() == 0
    service = watch.run()
    for count, code in enumerate((2, 0), 3):
        turn(watch, service, code, count)
    assert len(watch.status()["unsent"]) == 4
    smtp.up()
    service.wait_for(lambda: watch.status()["unsent"] == [], "an empty outbox", 40)
    booked = [(line["reason"], line["key"].split("-")[0]) for line in watch.told(check="lamp")]
    assert [reason for reason, _ in booked] == ["firing", "resolved"] * 2
    assert mailed(smtp.mails) == booked


def test_a_refused_recipient_does_not_stop_the_others_and_is_told_elsewhere(
    watch: Watch, smtp: SmtpServer
) -> None:
    """550 to one of three: the two have their mails, once; the other channel hears of the
    address and of the server's answer, and of the end when the address is good again."""
    smtp.refuse("gone@example.org")
    configure(watch, smtp, "cc: [gone@example.org, boss@example.org], security: none")
    for code in (2, 2, 0):
        watch.lamp(code)
        assert watch.say("tick", "--all").returncode == 0
    (first, second) = (m for m in smtp.mails if m.message["X-Sentinel-Check"] == "lamp")
    assert first.recipients == second.recipients == ["ops@example.org", "boss@example.org"]
    (told,) = watch.told(check="sentinel")
    assert (told["subject"], told["reason"]) == ("channel oncall", "firing")
    assert "does not reach gone@example.org: " in told["summary"]
    assert "550 5.1.1 no such user here" in told["summary"]
    smtp.accept("gone@example.org")
    watch.lamp(2)
    assert watch.say("tick", "--all").returncode == 0
    assert watch.told(check="sentinel")[1]["reason"] == "resolved"


def test_a_greylisted_mail_comes_once_when_its_time_has_come(
    watch: Watch, smtp: SmtpServer
) -> None:
    """451 is tried again, with the next message waiting behind it."""
    smtp.greylist("ops@example.org")
    service = started(watch, smtp)
    turn(watch, service, 2, 1)
    service.wait_for(lambda: attempts(watch) >= 2, "the second attempt")
    turn(watch, service, 0, 2)
    smtp.accept("ops@example.org")
    assert keys(smtp.wait(2)) == [line["key"] for line in watch.told(check="lamp")]


@pytest.mark.long
def test_a_slow_server_holds_up_neither_checks_nor_other_channels(
    watch: Watch, smtp: SmtpServer
) -> None:
    """While one mail takes its time, the alert ends and the book has it; the mails follow."""
    smtp.slow(1.5)
    service = started(watch, smtp)
    for count, code in enumerate((2, 0), 1):
        turn(watch, service, code, count)
    assert smtp.mails == []
    assert keys(smtp.wait(2, 40)) == [line["key"] for line in watch.told(check="lamp")]


def test_a_server_that_never_answers_is_given_up_and_tried_again(
    watch: Watch, smtp: SmtpServer
) -> None:
    """The limit of the channel ends the waiting; once it answers the mail comes."""
    smtp.slow(60)
    service = started(watch, smtp, "security: none, timeout: 1s")
    turn(watch, service, 2, 1)
    service.wait_for(lambda: attempts(watch) >= 1, "the end of the first attempt")
    (row,) = watch.status()["unsent"]
    assert "did not answer within 1s" in row["error"]
    smtp.slow(0)
    assert len(smtp.wait(1)) == 1


def test_mail_goes_over_starttls_with_a_login(
    watch: Watch, smtp_server: Callable[..., SmtpServer]
) -> None:
    """The password comes from a file, the server's authority from `ca_file`; no log has it."""
    server = smtp_server(security="starttls", logins={"sentinel": "pass-phrase"})
    secret = watch.folder / "secret"
    secret.write_text("pass-phrase\n")
    more = f"ca_file: {server.ca}, username: sentinel, password: {{file: {secret}}}"
    service = started(watch, server, more)
    turn(watch, service, 2, 1)
    server.wait(1)
    assert service.terminate() == 0
    assert "pass-phrase" not in service.out + service.err


def test_mail_goes_over_implicit_tls(watch: Watch, smtp_server: Callable[..., SmtpServer]) -> None:
    """TLS from the first byte, verified."""
    server = smtp_server(security="tls")
    service = started(watch, server, f"security: tls, ca_file: {server.ca}")
    turn(watch, service, 2, 1)
    assert len(server.wait(1)) == 1


def test_a_server_that_cannot_be_verified_gets_nothing(
    watch: Watch, smtp_server: Callable[..., SmtpServer]
) -> None:
    """The reason is in the status; with `ca_file` and SIGHUP the same mail goes out."""
    server = smtp_server(security="tls")
    service = started(watch, server, "security: tls")
    turn(watch, service, 2, 1)
    service.wait_for(lambda: attempts(watch) >= 1, "the first attempt")
    (row,) = watch.status()["unsent"]
    assert "certificate" in row["error"]
    assert server.mails == []
    configure(watch, server, f"security: tls, ca_file: {server.ca}")
    service.signal(signal.SIGHUP)
    assert keys(server.wait(1)) == [line["key"] for line in watch.told(check="lamp")]


def started(watch: Watch, server: SmtpServer, more: str = PLAIN) -> Service:
    watch.lamp(0)
    configure(watch, server, more)
    return watch.run()


def configure(watch: Watch, server: SmtpServer, more: str) -> None:
    watch.configure(CONFIG, port=server.port, more=more)


def turn(watch: Watch, service: Service, code: int, count: int) -> list[Line]:
    """Switch the lamp; until the book has this transition too."""
    watch.lamp(code)
    return watch.wait_told(service, count, check="lamp")


def attempts(watch: Watch) -> int:
    return max((row["attempts"] for row in watch.status()["unsent"]), default=0)


def mailed(mails: list[Mail]) -> list[tuple[str, str]]:
    """Reason and alert of every transition in the mails, also where one mail tells of several."""
    parts = [mail.message.get_body(("plain",)) for mail in mails]
    text = "".join(part.get_content() for part in parts if part)
    words = re.findall(r"^(CRITICAL|RESOLVED)  lamp", text, re.MULTILINE)
    alerts = re.findall(r"^    sentinel explain (\w+)", text, re.MULTILINE)
    reasons = {"CRITICAL": "firing", "RESOLVED": "resolved"}
    return [(reasons[word], alert) for word, alert in zip(words, alerts, strict=True)]


def keys(mails: list[Mail]) -> list[str]:
    return [mail.message["X-Sentinel-Key"] for mail in mails]
