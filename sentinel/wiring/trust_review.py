"""Finds out which files and directories of a configuration others could change.

In this release that is told: by `config check`, `doctor`, and an alert of sentinel about itself. What
would give a user the rights of root is refused where it is used.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator

from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, StoreError
from sentinel.core.text import visible
from sentinel.proc import threads
from sentinel.trust import (
    SiteTrust,
    find_group_id,
    find_site_fault,
    is_service_group,
    set_site_trust,
)

LOOK_TIMEOUT_S = 5.0
"""Seconds for all looks together, whose file systems may hang."""

_worker = threads.BoundedWorker(LOOK_TIMEOUT_S, "trust")
"""While a look hangs, no other is begun beside it."""


def take_site_trust(settings: Settings) -> None:
    """Let this process trust whom the configuration names. Names that this host does not know are
    left out, and `list_trust_doubts` tells them."""
    uids = (_find_user_id(name) for name in settings.trust)
    gids = map(find_group_id, settings.trust_groups)
    set_site_trust(
        SiteTrust(
            frozenset(uid for uid in uids if uid is not None),
            frozenset(gid for gid in gids if gid is not None),
        )
    )


def list_trust_doubts(settings: Settings, state: str) -> list[str]:
    """A line for each place that others could change, with the remedy. `state`: its directory or
    URL. Raises CannotTell if a file system does not answer."""
    try:
        return _worker.do_within(lambda: [*_find_doubts(settings, state)])
    except TimeoutError as error:
        raise CannotTell(f"the files of the configuration: {error.strerror}") from error


def _find_doubts(settings: Settings, state: str) -> Iterator[str]:
    for name in settings.trust:
        if _find_user_id(name) is None:
            yield f"trust: there is no user {visible(name)} on this host"
    for name in settings.trust_groups:
        if find_group_id(name) is None:
            yield f"trust_groups: there is no group {visible(name)} on this host"
    if "://" in state:
        yield from _find_server_doubt(state)
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


def _find_server_doubt(url: str) -> Iterator[str]:
    from sentinel.store.postgres import PostgresBackend

    try:
        doubt = PostgresBackend(url).find_doubt()
    except StoreError:
        return  # whoever opens it tells that
    if doubt:
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


def _find_user_id(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
