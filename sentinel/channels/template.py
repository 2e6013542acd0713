"""Templates that replace the built-in wording. Jinja2 in a sandbox, imported only if there are
templates.

Variables: `alerts` are the alerts, the worst first. Each has the fields of a notification and its
`card`. The fields of the first alert are also variables themselves. `heading` and `body` are the
built-in subject line and text. All texts are free of control characters, and are escaped for the
service when they are inserted.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from types import FrameType, SimpleNamespace
from typing import Any

from msgspec import Struct, structs

from sentinel.channels.format import text as render
from sentinel.channels.format.examples import SAMPLES
from sentinel.channels.format.text import make_card
from sentinel.channels.record import make_inert
from sentinel.core.errors import Invalid, SentinelError
from sentinel.core.model import Notification, Receipt
from sentinel.core.text import visible

LONGEST = 200_000
"""Characters. A template that makes a longer text is broken."""

LIMIT = 5.0
"""Seconds for one template."""

_LOG = logging.getLogger("sentinel")
_ALERTS = 500
_FILE = "<template>"
_NAMES = {
    "'types.SimpleNamespace object' has no attribute": "an alert has no",
    "'dict object' has no attribute": "not every alert has a label or value",
}

Escape = Callable[[str], str]


class TemplateError(SentinelError):
    """A template cannot be filled in. The text names its line."""


class MailTemplates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wording of a mail. If only `text` is given, the mail has no HTML part."""

    subject: str = ""  # Template of the subject.
    text: str = ""
    html: str = ""  # Template of the HTML part.


class ChatTemplates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wording of a chat message: its first line, and the text below."""

    subject: str = ""  # Template of the first line.
    text: str = ""  # Template of the rest.


class MessageWords(Struct, frozen=True, kw_only=True):
    """The results of the templates. None means the built-in wording. `trouble` says in one line why
    a template was not used."""

    subject: str | None = None  # Subject or first line.
    text: str | None = None  # Text.
    html: str | None = None  # HTML.
    trouble: str = ""

    @property
    def is_templated(self) -> bool:
        """Whether any part comes from a template."""
        return any(part is not None for part in (self.subject, self.text, self.html))

    def give_up_templates(self, error: Exception) -> "MessageWords":
        """Return to the built-in words, because a service refused these."""
        return MessageWords(
            trouble=f"refused with its templates ({error}), told in the built-in words"
        )

    def note_in_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt with the trouble added. The trouble is also logged."""
        if not self.trouble:
            return receipt
        _LOG.warning("%s", self.trouble)
        return structs.replace(receipt, text=f"{receipt.text}; {self.trouble}")


BUILT_IN = MessageWords()


def check_templates(templates: Any, escape: Escape | None = None) -> None:
    """Fill in every template with each sample. Raises Invalid with the key if one fails."""
    for name, source in _given_templates(templates):
        for sample in SAMPLES.values():
            try:
                _fill_template(name, source, sample, escape)
            except TemplateError as error:
                raise Invalid(str(error), "templates", name) from None


def fill_templates(
    templates: Any, notifications: Sequence[Notification], escape: Escape | None = None
) -> MessageWords:
    """The wording for these notifications. It never raises, because a plain message is better than
    none.

    `escape` escapes the values that `text` inserts, for the service's markup.
    """
    made: dict[str, str] = {}
    trouble = ""
    for name, source in _given_templates(templates):
        try:
            made[name] = _fill_template(name, source, notifications, escape)
        except TemplateError as error:
            trouble = trouble or f"template {name} failed ({error}), told in the built-in words"
    return MessageWords(**made, trouble=trouble)


def _given_templates(templates: Any) -> list[tuple[str, str]]:
    pairs = [(name, getattr(templates, name)) for name in templates.__struct_fields__]
    return [(name, source) for name, source in pairs if source]


def _fill_template(
    name: str, source: str, notifications: Sequence[Notification], escape: Escape | None
) -> str:
    """Fill in one template. Raises TemplateError for any error in it."""
    environment = _sandbox(escape if name == "text" else None, autoescape=name == "html")
    try:
        template = environment.from_string(source)
        text = _join_bounded(template.generate(_template_variables(notifications)))
    except TemplateError:
        raise
    except Exception as error:
        raise TemplateError(f"line {_template_line(error)}: {_error_words(error)}") from None
    if not text.strip():
        raise TemplateError("line 1: nothing comes out")
    return visible(" ".join(text.split())) if name == "subject" else text


def _sandbox(escape: Escape | None, autoescape: bool) -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def put_out(value: Any) -> Any:
        value = value.value if isinstance(value, Enum) else value
        return escape(str(value)) if escape else value

    return ImmutableSandboxedEnvironment(
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=put_out,
    )


def _template_variables(notifications: Sequence[Notification]) -> Mapping[str, Any]:
    alerts = [_template_alert(n) for n in render.sort_worst_first(notifications)[:_ALERTS]]
    built_in = {
        "heading": render.subject_line(notifications),
        "body": render.render_text(notifications),
    }
    return {**vars(alerts[0]), "alerts": alerts, "count": len(notifications), **built_in}


def _template_alert(notification: Notification) -> SimpleNamespace:
    safe = structs.asdict(make_inert(notification))
    plain = {k: v.value if isinstance(v, Enum) else v for k, v in safe.items()}
    return SimpleNamespace(**plain, card=SimpleNamespace(**structs.asdict(make_card(notification))))


def _join_bounded(pieces: Any) -> str:
    """Join the text. Raises an error if it is too long or takes too long."""
    text, size = [], 0
    with _limit_seconds(LIMIT):
        for piece in pieces:
            text.append(piece)
            size += len(piece)
            if size > LONGEST:
                raise TemplateError("line 1: it does not come to an end")
    return "".join(text)


@contextmanager
def _limit_seconds(seconds: float) -> Iterator[None]:
    """Stop a template after this many seconds.

    A loop without output can be stopped from within only by tracing. Code outside of the template
    is not traced.
    """
    end, before = time.monotonic() + seconds, sys.gettrace()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != _FILE:
            return None
        if time.monotonic() > end:
            raise TemplateError("line 1: it does not come to an end")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _error_words(error: Exception) -> str:
    """Jinja2's message, with plain words in place of the names of Python's classes."""
    text = visible(str(error))[:200] or type(error).__name__
    for theirs, ours in _NAMES.items():
        text = text.replace(theirs, ours)
    return text


def _template_line(error: Exception) -> int:
    """The line of the template where an error arose."""
    found = getattr(error, "lineno", None) or 1
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
