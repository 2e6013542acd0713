"""Finds out which files and directories of a configuration others could change, and who could get
a secret of it.

In this release that is told: by `config check`, `doctor`, and an alert of sentinel about itself. What
would give a user the rights of root is refused where it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, StoreError
from sentinel.core.settings import Secret, is_this_machine, is_web_address
from sentinel.core.text import visible
from sentinel.proc import threads
from sentinel.trust import find_group_id, find_site_fault, find_user_id, is_service_group

LOOK_TIMEOUT_S = 5.0
"""Seconds for all looks together, whose file systems may hang."""

_TOKEN_PATTERN = re.compile(r"(?=.*[0-9A-Z]).{8,}", re.DOTALL)
"""A part of a path that whoever made the address did not write by hand."""

_worker = threads.BoundedWorker(LOOK_TIMEOUT_S, "trust")
"""While a look hangs, no other is begun beside it."""


def list_trust_doubts(settings: Settings, state: str) -> list[str]:
    """A line for each place that others could change, and each secret that a wrong peer could get,
    with the remedy. `state`: its directory or URL. Raises CannotTell if a file system does not answer."""
    try:
        return _worker.do_within(lambda: [*_find_doubts(settings, state)])
    except TimeoutError as error:
        raise CannotTell(f"the files of the configuration: {error.strerror}") from error


def _find_doubts(settings: Settings, state: str) -> Iterator[str]:
    for name in settings.trust:
        if find_user_id(name) is None:
            yield f"trust: there is no user {visible(name)} on this host"
    for name in settings.trust_groups:
        if find_group_id(name) is None:
            yield f"trust_groups: there is no group {visible(name)} on this host"
    if "://" in state:
        yield from _find_server_doubt(state)
    for what, sender in _list_senders(settings):
        for place in find_clear_addresses(sender):
            yield f"{what}: a secret goes to {place} without verified TLS; use its https:// address"
    yield from _find_path_doubts(settings, state)
    for check in settings.checks:
        yield from (f"checks.{visible(check.name)}: {text}" for text in check.plugin.doubts())


def _find_path_doubts(settings: Settings, state: str) -> Iterator[str]:
    known = set[str]()
    for what, path in _list_places(settings, state):
        try:
            fault = find_site_fault(path)
        except OSError:
            continue  # whoever uses it tells that it cannot be used
        if fault is None or (fault.gid is not None and is_service_group(fault.gid)):
            continue
        if fault.text not in known:
            known.add(fault.text)
            yield f"{what}: {fault.text}"


def _list_senders(settings: Settings) -> Iterator[tuple[str, Struct]]:
    """The settings that send something to an address."""
    for channel in settings.channels:
        yield f"channels.{visible(channel.name)}", channel.plugin
    if settings.heartbeat:
        yield "heartbeat", settings.heartbeat
    for name, other in settings.web.others.items() if settings.web else ():
        yield f"web.others.{visible(name)}", other


def _find_server_doubt(url: str) -> Iterator[str]:
    from sentinel.store.postgres import PostgresBackend

    with suppress(StoreError):  # whoever opens it tells that
        if doubt := PostgresBackend(url).find_doubt():
            yield f"state: {doubt}"


def _list_places(settings: Settings, state: str) -> Iterator[tuple[str, str]]:
    """The places by the words of the configuration."""
    own = {
        "the configuration": settings.path,
        "state": "" if "://" in state else state,
        "spare_state": settings.spare_state,
        "evidence": settings.evidence,
    }
    yield from ((what, path) for what, path in own.items() if path)
    for check in settings.checks:
        yield from _name_paths(f"checks.{visible(check.name)}", check.plugin.trusted_paths())
    for channel in settings.channels:
        yield from _name_paths(f"channels.{visible(channel.name)}", channel.plugin.trusted_paths())


def _name_paths(what: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((what, os.path.abspath(path)) for path in paths)


def find_clear_addresses(sender: Struct) -> Iterator[str]:
    """Host and port of each http:// address off this host to which these settings send a
    secret: a token or header beside it, or what is in the address itself."""
    own = [getattr(sender, name) for name in sender.__struct_fields__]
    inner = [one for value in own for one in (value.values() if isinstance(value, dict) else ())]
    inner += [one for value in own for one in (value if isinstance(value, list) else ())]
    secrets = [value.reveal() for value in [*own, *inner] if isinstance(value, Secret)]
    addresses = [getattr(sender, "web_address", ""), *own, *inner, *secrets]
    is_secret_beside = any("://" not in text for text in secrets)
    for text in addresses:
        parts = urlsplit(text if isinstance(text, str) and is_web_address(text) else "")
        if parts.scheme != "http" or is_this_machine(parts.hostname or ""):
            continue
        words = [unquote(word) for word in parts.path.split("/")]
        in_it = "@" in parts.netloc or parts.query or any(map(_TOKEN_PATTERN.fullmatch, words))
        if is_secret_beside or in_it:
            yield visible(parts.netloc.rpartition("@")[2])
