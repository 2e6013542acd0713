"""A whole night from a phone: a mail, its link, the page, and who hears of it."""

import re
import socket
import urllib.error
import urllib.request
from email.message import EmailMessage

from tests.lab.service import Service
from tests.lab.smtp import SmtpServer
from tests.service.watch import Watch

CONFIG = """\
checks:
  LAMP
channels:
  mail: {{kind: email, to: [ops@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
  book: {{kind: file, path: {folder}/book.jsonl}}
web:
  listen: 127.0.0.1:{web}
  url: http://127.0.0.1:{web}
  secret: {{file: {folder}/key}}
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def fetched(url: str, data: bytes | None = None) -> str:
    with urllib.request.urlopen(url, data, timeout=10) as answer:
        return str(answer.read().decode())


def link(mail: EmailMessage, word: str) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    found = re.search(rf"{word}: (\S+)", body.get_content())
    assert found
    return found[1]


def begin_critical(watch: Watch) -> None:
    """The key of the links is there, and the lamp says that something is wrong."""
    key = watch.folder / "key"
    key.write_text("0123456789abcdef0123")
    key.chmod(0o600)
    watch.lamp(2)


def run_until_mail(watch: Watch, smtp: SmtpServer) -> tuple[Service, EmailMessage]:
    """The service, and the mail of its first alert."""
    watch.configure(CONFIG, port=smtp.port, web=free_port())
    service = watch.run()
    watch.wait_told(service, reason="firing", check="lamp")
    service.wait_for(lambda: bool(smtp.mails), "a mail")
    return service, smtp.mails[0].message


def test_an_alert_is_acknowledged_from_a_mail(watch: Watch, smtp: SmtpServer) -> None:
    """Also after a restart; the link stands in no file, no log and no state."""
    begin_critical(watch)
    service, mail = run_until_mail(watch, smtp)
    url = link(mail, "Acknowledge")
    assert "Acknowledge this alert?" in fetched(url)
    logged = service.err
    assert service.terminate() == 0
    service = watch.run()
    service.wait_for(lambda: alive(url), "the page")
    assert watch.told(reason="ack") == []
    assert "No repeats" in fetched(url, b"who=Ann")
    (line,) = watch.wait_told(service, reason="ack")
    assert line["note"] == "acknowledged by Ann (a link sent to mail)"
    watch.lamp(0)
    watch.wait_told(service, reason="resolved")
    assert service.terminate() == 0
    token = url.rstrip("/").rpartition("/")[2]
    files = [p for p in watch.folder.rglob("*") if p.is_file()]
    assert any(p.name == "sentinel.db" for p in files)
    assert [p for p in files if token.encode() in p.read_bytes()] == []
    assert token not in logged + service.err


def alive(url: str) -> bool:
    try:
        return bool(fetched(url))
    except (urllib.error.URLError, OSError):
        return False


def test_a_page_that_cannot_be_served_is_no_reason_not_to_watch(
    watch: Watch, smtp: SmtpServer
) -> None:
    """It is said, and the mails hold no links that would lead nowhere."""
    begin_critical(watch)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        watch.configure(CONFIG, port=smtp.port, web=taken.getsockname()[1])
        service = watch.run()
        service.wait_for(lambda: bool(smtp.mails), "a mail")
        assert service.terminate() == 0
    assert "cannot listen on 127.0.0.1" in service.err
    body = smtp.mails[0].message.get_body(("plain",))
    assert body is not None
    assert "/a/" not in body.get_content()


def test_a_link_that_is_used_again_and_again_tells_nobody_twice(
    watch: Watch, smtp: SmtpServer
) -> None:
    """Whoever has it may press it in a loop, under any name: there is one acknowledgement, one
    silence, and one message of each."""
    begin_critical(watch)
    service, mail = run_until_mail(watch, smtp)
    assert "Acknowledged" in fetched(link(mail, "Acknowledge"), b"who=Ann")
    watch.wait_told(service, reason="ack")
    for number in range(20):
        assert "Acknowledged" in fetched(link(mail, "Acknowledge"), f"who=m{number}".encode())
    for number in range(20):
        assert "Silenced" in fetched(link(mail, "Silence"), f"for=1h&who=m{number}".encode())
    watch.lamp(0)
    watch.wait_told(service, reason="resolved")
    assert len(watch.told(reason="ack")) == 1
    assert service.terminate() == 0
