"""Templates to pages: everything that is put in is text, unless it was drawn here."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timezone, tzinfo
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from sentinel import __version__
from sentinel.core.text import shortened
from sentinel.core.values import duration_text, size_text
from sentinel.status.types import Facts
from sentinel.web import link_pages
from sentinel.web.auth import NOBODY, Viewer
from sentinel.web.grid import colour

if TYPE_CHECKING:
    from importlib.abc import Traversable

_HERE = files("sentinel.web")
LAST = 253_402_214_400.0
"""9999-12-31 in UTC, a day before datetime has no more days to give."""

TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


class Pages:
    """Makes pages; times are shown in this zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._jinja = Environment(
            loader=FunctionLoader(_template),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._jinja.filters.update(
            age=_age,
            size=_size,
            cut=shortened,
            colour=colour,
            iso=_iso,
            unquoted=unquote_plus,
            stamp=self._stamp,
            moment=self._time,
            clock=self._clock,
        )
        style = Markup(content("style.css").decode())  # noqa: S704 - a file of ours
        self._jinja.globals.update(asset=asset, version=__version__, style=style)

    def page(self, template: str, facts: Facts, here: str, me: Viewer = NOBODY, **more: Any) -> str:
        """The page for `me`; `here` is the address of the entry of the menu that it belongs to."""
        return self._jinja.get_template(template).render(f=facts, here=here, me=me, **more)

    def _clock(self, seconds: float) -> str:
        """A moment in short; the whole stands beside it."""
        return _moment(seconds, self._zone).strftime("%d %b %H:%M")

    def _time(self, seconds: float) -> Markup:
        """The same as an element, beside which the browser tells the viewer's own time."""
        at = _iso(seconds)
        return Markup('<time class="at" datetime="{}">{}</time>').format(at, self._stamp(seconds))

    def _stamp(self, seconds: float) -> str:
        """A moment in the configured zone, to the second."""
        return _moment(seconds, self._zone).strftime("%Y-%m-%d %H:%M:%S %Z")


@cache
def asset(name: str) -> str:
    """The address of a file of ours; another one when it changes, so that it may be kept."""
    return f"/static/{hashlib.sha256(content(name)).hexdigest()[:12]}/{name}"


@cache
def content(name: str) -> bytes:
    """The file itself; KeyError for what is not ours."""
    return _files()[name].read_bytes()


@cache
def _files() -> Mapping[str, Traversable]:
    return {file.name: file for file in (_HERE / "static").iterdir()}


_STYLE = f"sha256-{b64encode(hashlib.sha256(content('style.css')).digest()).decode()}"

HEADERS: Mapping[str, str] = {
    **link_pages.HEADERS,
    "Content-Security-Policy": f"default-src 'none'; style-src '{_STYLE}'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
}
"""Nothing from elsewhere, nothing inline but our style, which saves a way over the line: a job's name is
text wherever it ends up."""


def _template(name: str) -> str:
    """Read as a resource of the package, wherever that lies: in a folder or in a zip file."""
    return (_HERE / "templates" / name).read_text("utf-8")


def _age(seconds: float) -> str:
    """Whole seconds: nobody reads milliseconds of the past."""
    return duration_text(max(0, int(seconds)))


def _size(size: float | None) -> str:
    return "–" if size is None else size_text(size)


def _iso(seconds: float) -> str:
    return _moment(seconds, timezone.utc).isoformat(timespec="seconds")


def _moment(seconds: float, zone: tzinfo) -> datetime:
    """The last day of the calendar for what lies behind it: a silence until 9999-12-31 in the
    file is over later in some zones."""
    return datetime.fromtimestamp(min(seconds, LAST), zone)
