"""Templates in place of the built-in wording: Jinja2, sandboxed, imported only where given.

Variables: `alerts`, the worst first, each with the fields of a notification and its `card`; the
fields of the first of them by themselves; `heading` and `body`, the built-in subject line and text. All
texts are inert, and in the markup of the service where they are put out.
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
"""Characters; a template that makes more is broken."""

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
    """A template cannot be filled in; the text names its line."""


class MailTemplates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mail's own wording. Where only `text` is given, the mail has no HTML part."""

    subject: str = ""
    text: str = ""
    html: str = ""


class ChatTemplates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chat message's own wording: its first line, and what stands below."""

    subject: str = ""
    text: str = ""


class MessageWords(Struct, frozen=True, kw_only=True):
    """What the templates made; None where the built-in wording stands. `trouble` says why a
    template was not followed, in one line."""

    subject: str | None = None
    text: str | None = None
    html: str | None = None
    trouble: str = ""

    @property
    def is_templated(self) -> bool:
        """Whether a template made any of it."""
        return any(part is not None for part in (self.subject, self.text, self.html))

    def give_up_templates(self, error: Exception) -> "MessageWords":
        """The built-in words, because a service refused these."""
        return MessageWords(
            trouble=f"refused with its templates ({error}), told in the built-in words"
        )

    def note_in_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt, with the trouble in it and in the log."""
        if not self.trouble:
            return receipt
        _LOG.warning("%s", self.trouble)
        return structs.replace(receipt, text=f"{receipt.text}; {self.trouble}")


BUILT_IN = MessageWords()


def check_templates(templates: Any, escape: Escape | None = None) -> None:
    """Fill every template in for each sample; Invalid at its key when one cannot be."""
    for name, source in _given_templates(templates):
        for sample in SAMPLES.values():
            try:
                _fill_template(name, source, sample, escape)
            except TemplateError as error:
                raise Invalid(str(error), "templates", name) from None


def fill_templates(
    templates: Any, notifications: Sequence[Notification], escape: Escape | None = None
) -> MessageWords:
    """The wording for these notifications; never fails, a message matters more than its looks.

    `escape` makes the values that `text` puts out inert in the service's markup.
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
    """One template filled in; TemplateError whatever goes wrong in it."""
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
    """The whole text, unless it grows or takes beyond all reason."""
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
    """Ends a template's code after so long. A loop that puts nothing out can be watched from
    within only by tracing; the code of others is left alone."""
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
    """Jinja2's words, with ours for what they call by the names of Python's classes."""
    text = visible(str(error))[:200] or type(error).__name__
    for theirs, ours in _NAMES.items():
        text = text.replace(theirs, ours)
    return text


def _template_line(error: Exception) -> int:
    """The line of the template that an error comes from."""
    found = getattr(error, "lineno", None) or 1
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
