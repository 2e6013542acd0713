"""Ports that are made at their first use: most one-shots never use them."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.settings import CheckConfig, ClusterSettings, SlurmSettings

if TYPE_CHECKING:
    from sentinel.clock import SystemClock
    from sentinel.config.settings import Settings
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
    from sentinel.core.script_memory import KnownScript
    from sentinel.nodes.probe import NodeProbe, ProbeRequest
    from sentinel.nodes.settings import RemoteSettings
    from sentinel.slurm.client import RequestCount
    from sentinel.slurm.controllers import ControllerProbe
    from sentinel.slurm.rights import QueueRights
    from sentinel.slurm.snapshot import SlurmSnapshot


MAX_ANSWER_AGE_S = 20.0
"""Seconds for which an answer of Slurm is kept at most; a second look comes half a minute later."""


class LazySettings:
    """Settings for Slurm and nodes, read from the file at the first use: a one-shot with options
    starts without them. Raises CannotTell if the file cannot be used."""

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
        from sentinel.config.settings import Settings  # not needed for a check with options

        if self._found is None:
            try:
                self._found = self._load() or Settings()
            except CannotTell:
                raise
            except SentinelError as error:
                raise CannotTell(str(error).splitlines()[0]) from error
        return self._found


class LazySlurm:
    """The port to Slurm for those of the checks that ask this cluster (empty: the cluster of this
    host)."""

    def __init__(
        self,
        settings: Settings | LazySettings,
        configs: Sequence[CheckConfig],
        clock: SystemClock,
        cluster: str = "",
    ) -> None:
        self._settings, self._clock, self._cluster = settings, clock, cluster
        self._configs = [c for c in configs if c.common.cluster == cluster]
        self._controllers: ControllerProbe | None = None
        self._slurm: SlurmSnapshot | None = None
        self._scripts: Mapping[str, KnownScript] = {}
        self._turn = allocate_lock()

    def jobs(self) -> Sequence[Job]:
        return self.get_snapshot().jobs()

    def gpus(self) -> Mapping[str, int | None]:
        return self.get_snapshot().gpus()

    def sluids(self) -> Mapping[str, str]:
        return self.get_snapshot().sluids()

    def nodes(self) -> Sequence[Node]:
        return self.get_snapshot().nodes()

    def job_end(self, job_id: str) -> JobEnd | None:
        return self.get_snapshot().job_end(job_id)

    def past(
        self,
        job_ids: Collection[str],
        names: Collection[str],
        since: float,
        *,
        failed_within: float = 0.0,
    ) -> JobPast:
        return self.get_snapshot().past(job_ids, names, since, failed_within=failed_within)

    def submission(self, job_id: str) -> Submission | None:
        return self.get_snapshot().submission(job_id)

    def controller(self) -> Controller:
        return self._connect_controllers().ask_controllers()

    def timeouts(self) -> Timeouts:
        return self.get_snapshot().timeouts()

    def reservations(self) -> Sequence[Reservation]:
        return self.get_snapshot().reservations()

    def partitions(self) -> Mapping[str, int]:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().partitions()

    def partition_states(self) -> Mapping[str, str]:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().partition_states()

    def topology(self) -> Mapping[str, str]:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().topology()

    def private(self) -> Collection[str]:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().private()

    def last(self) -> tuple[Sequence[Node] | None, Sequence[Job] | None]:
        """See `SlurmSnapshot`. Both are None if Slurm was not asked yet."""
        return (None, None) if self._slurm is None else self._slurm.last()

    def rights(self) -> QueueRights:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().rights()

    def read_script(self, job_id: str) -> bytes:
        """See `SlurmSnapshot`."""
        return self.get_snapshot().read_script(job_id)

    def use_script_wishes(self, known: Mapping[str, KnownScript]) -> None:
        """See `SlurmSnapshot`, which need not exist yet."""
        self._scripts = known
        if self._slurm is not None:
            self._slurm.use_script_wishes(known)

    def counts(self) -> Mapping[str, RequestCount]:
        """The requests to Slurm since the start, by command."""
        return {} if self._controllers is None else dict(self._controllers.client.counts)

    def get_snapshot(self) -> SlurmSnapshot:
        """The snapshot behind this port. All threads share it, so that Slurm is asked only once."""
        probe = self._connect_controllers()
        with self._turn:
            if self._slurm is None:
                from sentinel.slurm.connect import connect_slurm

                users = collect_job_users(self._configs)
                self._slurm = connect_slurm(
                    self._asked, users, self._compute_max_age(), self._clock, probe
                )
                self._slurm.use_script_wishes(self._scripts)
            return self._slurm

    def _connect_controllers(self) -> ControllerProbe:
        """What asks the slurmctlds. A pass that only needs the cluster's name loads nothing else."""
        with self._turn:
            if self._controllers is None:
                from sentinel.slurm.controllers import connect_controllers

                self._controllers = connect_controllers(self._asked, self._clock)
            return self._controllers

    @property
    def _asked(self) -> SlurmSettings | ClusterSettings:
        settings = self._settings
        return settings.clusters[self._cluster] if self._cluster else settings.slurm

    def _compute_max_age(self) -> float:
        from sentinel.core.due import get_interval_s  # needed only if Slurm is asked

        return min(
            MAX_ANSWER_AGE_S, min((get_interval_s(c) for c in self._configs), default=60.0) / 2.5
        )


class LazyRemote:
    """The configured way to nodes, made at its first use."""

    def __init__(self, settings: Settings | LazySettings) -> None:
        self._settings = settings
        self._remote: Remote | None = None
        self._turn = allocate_lock()

    @property
    def by_steps(self) -> bool:
        """Whether each question is a step of Slurm: see sentinel.core.node_answers.uses_steps."""
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
    """The users whose jobs the checks need; None: everybody's."""
    asked = [_read_job_users(c.plugin) for c in configs]
    return None if None in asked else frozenset[str]().union(*(users for users in asked if users))


def _read_job_users(plugin: Any) -> frozenset[str] | None:
    try:
        users: frozenset[str] | None = plugin.jobs_of()
    except CannotTell:
        # its own run reports why it could not see; other checks are not affected
        return frozenset()
    except Exception:
        import logging

        words = "%s: `jobs_of` failed inside; everybody's jobs are asked for"
        logging.getLogger("sentinel").exception(words, type(plugin).__name__)
        return None
    return users
