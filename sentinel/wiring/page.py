"""Makes the status page and its API from a running engine, the configuration and other clusters."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.status.collect import StatusSettings
from sentinel.web.auth import Gate
from sentinel.web.other_clusters import OtherClusters
from sentinel.web.site import Site
from sentinel.web.snapshot_cache import LiveFacts
from sentinel.wiring import app
from sentinel.wiring.status import (
    build_engine_surroundings,
    count_slurm_requests,
    open_logbook,
)

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.config.settings import Settings
    from sentinel.engine.engine import Engine


def build_site(engine: Engine, settings: Settings, clock: SystemClock) -> Site:
    """The status page with its API, for a web server."""
    log, web, kept = open_logbook(settings), settings.web, app.get_evidence_folder(settings)
    others = OtherClusters(web.others if web else {}, clock)

    def build_surroundings() -> StatusSettings:
        return replace(
            build_engine_surroundings(engine.world, log, kept), clusters=others.list_cluster_facts()
        )

    live = LiveFacts(engine, clock, build_surroundings, lambda: count_slurm_requests(engine))
    if web is None:
        return Site(live, Gate())
    token = web.token.reveal() if web.token else ""
    names = (os.uname().nodename, *web.hosts)
    rulers = frozenset(web.administrators)
    gate = Gate(token, web.url, web.user_header, names, rulers)
    return Site(live, gate, others=others)
