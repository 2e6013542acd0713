"""Templates: checked when the file is read, and never the reason that a message is lost."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sentinel.channels import template
from sentinel.channels.email import Email
from sentinel.channels.format.examples import SAMPLES
from sentinel.channels.template import LONGEST, MailTemplates, check_templates, fill_templates
from sentinel.core.errors import ChannelError, Invalid
from sentinel.core.model import Notification, Status
from tests.channels.contract import assert_inert, send
from tests.channels.samples import HOSTILE, hostile, notification
from tests.lab.smtp import SmtpServer


def text(source: str, *notifications: Notification, **more: Any) -> str | None:
    made = fill_templates(MailTemplates(text=source), notifications or [notification()], **more)
    assert made.trouble == "" or made.text is None
    return made.text


FILLED = [
    ("{{ cluster }} {{ check }} {{ subject }}", "h100-prod training tr11-176B"),
    ("{{ severity }} {{ status }} {{ reason }}", "critical critical firing"),
    ("{% if severity == 'critical' %}!{% endif %}", "!"),
    ("{{ summary }}", "not running: job 4242 FAILED (exit 1)"),
    ("{{ since }}", "2026-09-30T03:12:05+02:00"),
    ("{{ alert }} {{ key }} {{ kind }}", "01J9 01J9-1 job"),
    ("{{ labels.user }} {{ labels['node'] }} {{ labels.nope | default('-') }}", "alice r12n07 -"),
    ("{{ values.exit_code + 1 }}", "2"),
    ("{% for name, value in labels.items() %}{{ name }}={{ value }};{% endfor %}", None),
    ("{{ commands[0] }}", "scontrol show job 4242"),
    ("{{ details.splitlines()[-1] }}", "rank 0: Aborted"),
    ("{{ card.word }} {{ card.title }} {{ card.age }}", "CRITICAL training tr11-176B 25m"),
    ("{{ card.facts[0][0] }}: {{ card.facts[0][1] }}", "exit code: 1"),
    ("{{ runbook }}{{ note }}{{ dry_run }}", "Call https://wiki.example.org/oncallFalse"),
    ("{{ count }} {{ alerts | length }}", "1 1"),
    ("{{ heading }}", None),
    ("{{ body }}", None),
]


@pytest.mark.parametrize(("source", "made"), FILLED)
def test_what_a_template_may_name(source: str, made: str | None) -> None:
    """The documented fields of the worst alert, its card, and all alerts."""
    filled = text(source)
    assert filled if made is None else filled == made


def test_the_worst_alert_of_a_group_comes_first() -> None:
    """A subject that names one alert and counts the others names that one."""
    mild = notification(subject="mild", severity=Status.WARNING, status=Status.WARNING)
    templates = MailTemplates(subject="{{ card.word }} {{ subject }}, {{ alerts[1].subject }}")
    made = fill_templates(templates, [mild, notification(subject="bad")])
    assert made.subject == "CRITICAL bad, mild"


def test_all_alerts_of_a_group() -> None:
    """Each with its own fields."""
    made = text(
        "{% for a in alerts %}{{ a.subject }}: {{ a.card.word }}\n{% endfor %}",
        notification(subject="x"),
        notification(subject="y", reason="resolved"),
    )
    assert made == "x: CRITICAL\ny: RESOLVED\n"


BROKEN = [
    ("fine\n{{ nope }}", "line 2: 'nope' is undefined"),
    ("{% if %}", "line 1: Expected an expression"),
    ("\n\n{% for a in alerts %}", "line 3: Unexpected end of template"),
    ("{{ alerts[0].nope }}", "line 1: an alert has no 'nope'"),
    ("\n{{ labels.nope }}", "line 2: not every alert has a label or value 'nope'"),
    ("{{ 1 / 0 }}", "line 1: division by zero"),
    ("{{ nope | nope }}", "No filter named 'nope'"),
    ("{{ ''.__class__.__mro__ }}", "is unsafe"),
    ("{{ alerts.append(1) }}", "is unsafe"),
    ("{{ ().__class__ }}", "is unsafe"),
    ("{% include '/etc/passwd' %}", "line 1"),
    ("{% for i in range(10**6) %}x{% endfor %}", "Range too big"),
    (
        "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
        "does not come to an end",
    ),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion"),
    ("   \n", "nothing comes out"),
    ("{% if count > 1 %}x{% endif %}", "nothing comes out"),
]


@pytest.mark.parametrize(("source", "problem"), BROKEN)
def test_a_broken_template_is_told_at_its_key(source: str, problem: str) -> None:
    """When the file is read, with the line of the template, for whichever sample it fails."""
    with pytest.raises(Invalid) as caught:
        check_templates(MailTemplates(html=source))
    assert caught.value.path == ("templates", "html")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("source", "problem"), BROKEN[:6])
def test_a_broken_template_loses_nothing(source: str, problem: str) -> None:
    """Where it fails only at a real alert, the built-in wording stands, and why is told."""
    made = fill_templates(MailTemplates(subject="{{ check }}", text=source), [notification()])
    assert (made.subject, made.text) == ("training", None)
    assert problem in made.trouble


@pytest.mark.parametrize(("length", "good"), [(LONGEST, True), (LONGEST + 1, False)])
def test_a_text_has_an_end(length: int, good: bool) -> None:
    """What is longer than any message ever needs to be is a mistake."""
    made = fill_templates(MailTemplates(text=f"{{{{ 'x' * {length} }}}}"), [notification()])
    assert (made.text is not None) == good


@pytest.mark.parametrize("given", [hostile(t) for t in HOSTILE.values()], ids=HOSTILE.keys())
@pytest.mark.parametrize("part", ["subject", "text", "html"])
def test_hostile_values_are_inert(part: str, given: Notification) -> None:
    """In every part, and in HTML they are no markup."""
    source = "{{ summary }}{{ labels }}{{ values }}{{ details }}{{ card.title }}{{ body }}"
    made = getattr(fill_templates(MailTemplates(**{part: source}), [given]), part)
    assert_inert(made)
    assert part != "subject" or "\n" not in made
    assert part != "html" or ("<" not in made and '"' not in made)


def test_no_template_no_jinja() -> None:
    """It is imported only where it is needed: starting up would be slower for everybody."""
    code = (
        "import sys; from sentinel.channels.email import Email;"
        "Email(to=['a@example.org'], from_='a@example.org', host='h');"
        "sys.exit('jinja2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_samples_are_what_channels_are_given() -> None:
    """One that fires, one that is over, several; and one of them without any label."""
    assert [len(s) for s in SAMPLES.values()] == [1, 1, 4]
    assert any(not n.labels for s in SAMPLES.values() for n in s)


def email(server: SmtpServer, **templates: str) -> Email:
    return Email(
        to=["a@example.org"],
        from_="s@example.org",
        host=server.host,
        port=server.port,
        security="none",
        templates=MailTemplates(**templates),
    )


def mailed(server: SmtpServer, channel: Email, given: Notification) -> Any:
    """The mail as it arrived."""
    send(channel, given)
    return server.wait(1)[-1].message


def test_a_mail_in_ones_own_words(smtp: SmtpServer) -> None:
    """Subject and text; no HTML, which would be shown in place of the text."""
    mail = mailed(
        smtp,
        email(smtp, subject="[{{ cluster }}] {{ check }}", text="{{ summary }}"),
        notification(),
    )
    assert mail["Subject"] == "[h100-prod] training"
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().rstrip() == "not running: job 4242 FAILED (exit 1)"


def test_a_mail_with_html_of_ones_own(smtp: SmtpServer) -> None:
    """Beside the built-in text; values are escaped."""
    channel = email(smtp, html="<p>{{ summary }}</p>")
    mail = mailed(smtp, channel, notification(summary="<b>4242 FAILED"))
    assert mail.get_body(["html"]).get_content().rstrip() == "<p>&lt;b&gt;4242 FAILED</p>"
    assert "4242 FAILED" in mail.get_body(["plain"]).get_content()


@pytest.mark.parametrize("text", ["x\nBcc: evil@example.org", "=?utf-8?q?=0ABcc:_e@x?="])
def test_a_subject_of_ones_own_forges_no_header(smtp: SmtpServer, text: str) -> None:
    """Whatever the alert holds."""
    mail = mailed(smtp, email(smtp, subject="{{ summary }}"), notification(summary=text))
    assert mail["Bcc"] is None
    assert len(smtp.wait(1)[-1].recipients) == 1


def test_a_mail_is_sent_all_the_same(smtp: SmtpServer, caplog: pytest.LogCaptureFixture) -> None:
    """With the built-in words; the receipt and the log say which template failed, and where."""
    caplog.set_level(logging.WARNING)
    channel = email(smtp, text="fine\n{% if check == 'odd' %}{{ nope }}{% endif %}")
    receipt = send(channel, notification(check="odd"))
    mail: Any = smtp.wait(1)[-1].message
    assert "4242 FAILED" in mail.get_body(["plain"]).get_content()
    assert "template text failed (line 2:" in receipt.text
    assert "template text failed (line 2:" in caplog.text


@pytest.mark.parametrize("name", ["subject", "text", "html"])
def test_a_mail_that_is_refused_with_its_template_goes_out_without(
    tmp_path: Path, name: str
) -> None:
    """A filter that dislikes somebody's wording must not cost an alert."""
    with SmtpServer(tmp_path) as server:
        server.refuse_content(b"unwanted")
        receipt = asyncio.run(email(server, **{name: "unwanted"}).send([notification()]))
        (mail,) = server.mails
    assert "refused with its templates" in receipt.text
    assert mail.message["Subject"].startswith("CRITICAL h100-prod")


def test_a_mail_without_templates_is_tried_once(tmp_path: Path) -> None:
    """There are no other words."""
    with SmtpServer(tmp_path) as server:
        server.refuse_content(b"h100-prod")
        with pytest.raises(ChannelError, match="554"):
            asyncio.run(email(server).send([notification()]))
        assert server.refusals == 1


def test_a_loop_that_puts_nothing_out_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """In config check and at an alert."""
    monkeypatch.setattr(template, "LIMIT", 0.2)
    nine = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}x"
    with pytest.raises(Invalid, match="line 1: it does not come to an end"):
        check_templates(MailTemplates(text=nine))
    assert (
        "does not come to an end"
        in fill_templates(MailTemplates(text=nine), [notification()]).trouble
    )
