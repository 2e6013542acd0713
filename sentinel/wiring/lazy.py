"""Ports that are made on the first question: most one-shots never ask."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.settings import CheckConfig, ClusterSettings, SlurmSettings

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.core.cluster import (
        Controller,
        Job,
        JobEnd,
        JobPast,
        Node,
        Reservation,
        Submission,
        Timeouts,
    )
    from sentinel.core.node_answers import Answer, Remote, Unreached
    from sentinel.nodes.probe import NodeProbe, ProbeRequest
    from sentinel.nodes.settings import RemoteSettings
    from sentinel.slurm.client import RequestCount
    from sentinel.slurm.snapshot import SlurmSnapshot


MAX_ANSWER_AGE_S = 20.0
"""Seconds that an answer of Slurm is kept at most: a second look comes half a minute later."""


class LazySettings:
    """How Slurm and nodes are asked, read from the file only when one of them is: a one-shot
    with options starts without. Raises CannotTell where the file cannot be used."""

    def __init__(self, load: Callable[[], Settings | None]) -> None:
        self._load = load
        self._found: Settings | None = None

    @property
    def slurm(self) -> SlurmSettings:
        return self._load_once().slurm

    @property
    def clusters(self) -> Mapping[str, ClusterSettings]:
        return self._load_once().clusters

    @property
    def remote(self) -> RemoteSettings:
        return self._load_once().remote

    def _load_once(self) -> Settings:
        if self._found is None:
            try:
                self._found = self._load() or Settings()
            except CannotTell:
                raise
            except SentinelError as error:
                raise CannotTell(str(error).splitlines()[0]) from error
        return self._found


class LazySlurm:
    """The Slurm port of those of these checks that ask this cluster; empty: the one at hand."""

    def __init__(
        self,
        settings: Settings | LazySettings,
        configs: Sequence[CheckConfig],
        clock: SystemClock,
        cluster: str = "",
    ) -> None:
        self._settings, self._clock, self._cluster = settings, clock, cluster
        self._configs = [c for c in configs if c.common.cluster == cluster]
        self._slurm: SlurmSnapshot | None = None
        self._turn = allocate_lock()

    def jobs(self) -> Sequence[Job]:
        return self.get_snapshot().jobs()

    def gpus(self) -> Mapping[str, int]:
        return self.get_snapshot().gpus()

    def sluids(self) -> Mapping[str, str]:
        return self.get_snapshot().sluids()

    def nodes(self) -> Sequence[Node]:
        return self.get_snapshot().nodes()

    def job_end(self, job_id: str) -> JobEnd | None:
        return self.get_snapshot().job_end(job_id)

    def past(self, job_ids: Collection[str], names: Collection[str], since: float) -> JobPast:
        return self.get_snapshot().past(job_ids, names, since)

    def submission(self, job_id: str) -> Submission | None:
        return self.get_snapshot().submission(job_id)

    def controller(self) -> Controller:
        return self.get_snapshot().controller()

    def timeouts(self) -> Timeouts:
        return self.get_snapshot().timeouts()

    def reservations(self) -> Sequence[Reservation]:
        return self.get_snapshot().reservations()

    def partitions(self) -> Mapping[str, int]:
        """As in `Snapshot`."""
        return self.get_snapshot().partitions()

    def topology(self) -> Mapping[str, str]:
        """As in `Snapshot`."""
        return self.get_snapshot().topology()

    def private(self) -> Collection[str]:
        """As in `Snapshot`."""
        return self.get_snapshot().private()

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """As in `Snapshot`; None of both where nothing was asked yet."""
        return (None, None) if self._slurm is None else self._slurm.last()

    def counts(self) -> Mapping[str, RequestCount]:
        """How often Slurm was asked since the start, by command."""
        return {} if self._slurm is None else dict(self._slurm.client.counts)

    def get_snapshot(self) -> SlurmSnapshot:
        """What stands behind it: one for all threads, or each would ask Slurm for itself."""
        with self._turn:
            if self._slurm is None:
                from sentinel.slurm.connect import connect_slurm

                settings = self._settings
                asked = settings.clusters[self._cluster] if self._cluster else settings.slurm
                self._slurm = connect_slurm(
                    asked, collect_job_users(self._configs), self._compute_max_age(), self._clock
                )
            return self._slurm

    def _compute_max_age(self) -> float:
        from sentinel.core.due import get_interval_s

        return min(
            MAX_ANSWER_AGE_S, min((get_interval_s(c) for c in self._configs), default=60.0) / 2.5
        )


class LazyRemote:
    """The way to nodes, as configured."""

    def __init__(self, settings: Settings | LazySettings) -> None:
        self._settings = settings
        self._remote: Remote | None = None
        self._turn = allocate_lock()

    @property
    def by_steps(self) -> bool:
        """See sentinel.core.node_answers.uses_steps."""
        return self._settings.remote.via == "srun"

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        return self._connect_once().run(nodes, argv, limit=limit, stdin=stdin)

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        return self._connect_once().probe(nodes, wants, limit=limit)

    def _connect_once(self) -> Remote:
        with self._turn:
            if self._remote is None:
                from sentinel.nodes.connect import connect

                self._remote = connect(self._settings.remote)
            return self._remote


def collect_job_users(configs: Sequence[CheckConfig]) -> frozenset[str] | None:
    """Whose jobs the checks ask for; None: everybody's."""
    asked = [_read_job_users(c.plugin) for c in configs]
    return None if None in asked else frozenset[str]().union(*(users for users in asked if users))


def _read_job_users(plugin: Any) -> frozenset[str] | None:
    try:
        users: frozenset[str] | None = plugin.jobs_of()
    except CannotTell:
        return frozenset()  # its own run says why it is blind; the other checks are not
    except Exception:
        import logging

        words = "%s: `jobs_of` failed inside; everybody's jobs are asked for"
        logging.getLogger("sentinel").exception(words, type(plugin).__name__)
        return None
    return users
