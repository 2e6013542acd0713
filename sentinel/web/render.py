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
from sentinel.web.auth import ANONYMOUS_VISITOR, Visitor
from sentinel.web.grid import get_state_colour

if TYPE_CHECKING:
    from importlib.abc import Traversable

_PACKAGE_FILES = files("sentinel.web")
LAST_MOMENT_S = 253_402_214_400.0
"""9999-12-31 in UTC, a day before datetime has no more days to give."""

ASSET_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


class PageRenderer:
    """Makes pages; times are shown in this zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._jinja = Environment(
            loader=FunctionLoader(_load_template),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._jinja.filters.update(
            age=_format_age,
            size=_format_size,
            cut=shortened,
            colour=get_state_colour,
            iso=_format_utc_time,
            unquoted=unquote_plus,
            stamp=self._format_full_time,
            moment=self._render_time_element,
            clock=self._format_short_time,
        )
        style = Markup(read_asset("style.css").decode())  # noqa: S704 - a file of ours
        self._jinja.globals.update(asset=get_asset_url, version=__version__, style=style)

    def render_page(
        self, template: str, facts: Facts, here: str, me: Visitor = ANONYMOUS_VISITOR, **more: Any
    ) -> str:
        """The page for `me`; `here` is the address of the entry of the menu that it belongs to."""
        return self._jinja.get_template(template).render(f=facts, here=here, me=me, **more)

    def _format_short_time(self, seconds: float) -> str:
        """A moment in short; the whole stands beside it."""
        return _clamp_moment(seconds, self._zone).strftime("%d %b %H:%M")

    def _render_time_element(self, seconds: float) -> Markup:
        """The same as an element, beside which the browser tells the viewer's own time."""
        at = _format_utc_time(seconds)
        return Markup('<time class="at" datetime="{}">{}</time>').format(
            at, self._format_full_time(seconds)
        )

    def _format_full_time(self, seconds: float) -> str:
        """A moment in the configured zone, to the second."""
        return _clamp_moment(seconds, self._zone).strftime("%Y-%m-%d %H:%M:%S %Z")


@cache
def get_asset_url(name: str) -> str:
    """The address of a file of ours; another one when it changes, so that it may be kept."""
    return f"/static/{hashlib.sha256(read_asset(name)).hexdigest()[:12]}/{name}"


@cache
def read_asset(name: str) -> bytes:
    """The file itself; KeyError for what is not ours."""
    return _list_assets()[name].read_bytes()


@cache
def _list_assets() -> Mapping[str, Traversable]:
    return {file.name: file for file in (_PACKAGE_FILES / "static").iterdir()}


_STYLE_HASH = f"sha256-{b64encode(hashlib.sha256(read_asset('style.css')).digest()).decode()}"

PAGE_HEADERS: Mapping[str, str] = {
    **link_pages.LINK_PAGE_HEADERS,
    "Content-Security-Policy": f"default-src 'none'; style-src '{_STYLE_HASH}'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
}
"""Nothing from elsewhere, nothing inline but our style, which saves a way over the line: a job's name is
text wherever it ends up."""


def _load_template(name: str) -> str:
    """Read as a resource of the package, wherever that lies: in a folder or in a zip file."""
    return (_PACKAGE_FILES / "templates" / name).read_text("utf-8")


def _format_age(seconds: float) -> str:
    """Whole seconds: nobody reads milliseconds of the past."""
    return duration_text(max(0, int(seconds)))


def _format_size(size: float | None) -> str:
    return "–" if size is None else size_text(size)


def _format_utc_time(seconds: float) -> str:
    return _clamp_moment(seconds, timezone.utc).isoformat(timespec="seconds")


def _clamp_moment(seconds: float, zone: tzinfo) -> datetime:
    """The last day of the calendar for what lies behind it: a silence until 9999-12-31 in the
    file is over later in some zones."""
    return datetime.fromtimestamp(min(seconds, LAST_MOMENT_S), zone)
