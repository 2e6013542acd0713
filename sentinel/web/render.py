"""Renders templates to pages. All inserted values are escaped, except those that were drawn
here."""

from __future__ import annotations

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
from sentinel.core.digests import sha256
from sentinel.core.guidance import name_config
from sentinel.core.text import shortened
from sentinel.core.values import age_text, size_text
from sentinel.status.types import Facts
from sentinel.web import link_pages
from sentinel.web.auth import ANONYMOUS_VISITOR, Visitor
from sentinel.web.grid import get_state_colour

if TYPE_CHECKING:
    from importlib.abc import Traversable

_PACKAGE_FILES = files("sentinel.web")
LAST_MOMENT_S = 253_402_214_400.0
"""9999-12-31 in UTC, a day before the last moment that datetime can show."""

ASSET_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


class PageRenderer:
    """Renders pages; times are shown in its zone."""

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
            age=age_text,
            size=_format_size,
            cut=shortened,
            colour=get_state_colour,
            with_config=name_config,
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
        """The page for the viewer `me`. `here`: the address of the menu entry to which the page
        belongs."""
        return self._jinja.get_template(template).render(f=facts, here=here, me=me, **more)

    def _format_short_time(self, seconds: float) -> str:
        """A moment in short form, for places where the full form is beside it."""
        return _clamp_moment(seconds, self._zone).strftime("%d %b %H:%M")

    def _render_time_element(self, seconds: float) -> Markup:
        """A moment as an HTML element, to which the browser adds the viewer's local time."""
        at = _format_utc_time(seconds)
        return Markup('<time class="at" datetime="{}">{}</time>').format(
            at, self._format_full_time(seconds)
        )

    def _format_full_time(self, seconds: float) -> str:
        """A moment in the configured zone, to the second."""
        return _clamp_moment(seconds, self._zone).strftime("%Y-%m-%d %H:%M:%S %Z")


@cache
def get_asset_url(name: str) -> str:
    """The address of a file of ours. It changes when the file changes, so browsers may keep the
    file."""
    return f"/static/{sha256(read_asset(name)).hexdigest()[:12]}/{name}"


@cache
def read_asset(name: str) -> bytes:
    """The content of one of sentinel's own files. Raises KeyError for any other name."""
    return _list_assets()[name].read_bytes()


@cache
def _list_assets() -> Mapping[str, Traversable]:
    return {file.name: file for file in (_PACKAGE_FILES / "static").iterdir()}


_STYLE_HASH = f"sha256-{b64encode(sha256(read_asset('style.css')).digest()).decode()}"

PAGE_HEADERS: Mapping[str, str] = {
    **link_pages.LINK_PAGE_HEADERS,
    "Content-Security-Policy": f"default-src 'none'; style-src '{_STYLE_HASH}'; script-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
}
"""Headers that allow no foreign content, and inline only our own style (which saves a request): a
job's name stays text wherever it is shown."""


def load_own_files() -> None:
    """Load templates and browser files when a service starts: see wiring/preload.py."""
    for file in (_PACKAGE_FILES / "templates").iterdir():
        _load_template(file.name)
    for name in _list_assets():
        read_asset(name)


@cache
def _load_template(name: str) -> str:
    """Read a template as a resource of the package, which may be in a folder or in a zip file."""
    return (_PACKAGE_FILES / "templates" / name).read_text("utf-8")


def _format_size(size: float | None) -> str:
    return "–" if size is None else size_text(size)


def _format_utc_time(seconds: float) -> str:
    return _clamp_moment(seconds, timezone.utc).isoformat(timespec="seconds")


def _clamp_moment(seconds: float, zone: tzinfo) -> datetime:
    """The moment in this zone. Moments that datetime cannot show become the last day of the
    calendar: a silence until 9999-12-31 ends later than that in some zones."""
    return datetime.fromtimestamp(min(seconds, LAST_MOMENT_S), zone)
