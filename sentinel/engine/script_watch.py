"""Reads the wishes in batch scripts between two passes, so that no check waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from sentinel.core.script_memory import ScriptMemory, StoredScripts
from sentinel.core.stored_memory import decode_memory

if TYPE_CHECKING:
    from sentinel.core.model import Report
    from sentinel.slurm.script_reading import ScriptSource


class WatchedJobs(Struct, frozen=True):
    """The jobs of the last report of a check."""

    cluster: str  # The cluster of the check; empty: the one of this host.
    job_ids: tuple[str, ...]


class ScriptWatch:
    """What was read, for each cluster of `sources`. Without a channel that tells users of their own jobs
    there are none, and Slurm is asked for nothing."""

    def __init__(self) -> None:
        self._sources: Mapping[str, ScriptSource] = {}
        self._memories: dict[str, ScriptMemory] = {}
        self._watched: dict[str, WatchedJobs] = {}
        self._new: set[str] = set()  # clusters with a report since the last round
        self.busy = False

    def recall_scripts(self, stored: Mapping[str, Any]) -> None:
        """Go on with what the state has."""
        found = decode_memory(stored, StoredScripts) or StoredScripts()
        self._memories = dict(found.clusters)
        self.switch_sources(self._sources)

    def switch_sources(self, sources: Mapping[str, ScriptSource]) -> None:
        """Continue with another configuration. Which jobs are watched is seen by the next reports."""
        self._sources, self._watched = sources, {}
        for name, source in sources.items():
            source.use_script_wishes(self._memories.get(name, ScriptMemory()).jobs)

    def note_report(self, check: str, cluster: str, report: Report | None) -> None:
        """Note the jobs of a check that has reported."""
        if report is not None and cluster in self._sources and report.watched_jobs:
            self._watched[check] = WatchedJobs(cluster, report.watched_jobs)
            self._new.add(cluster)

    def read_scripts(self) -> Mapping[str, Any] | None:
        """Read scripts whose turn has come. Returns what to store; None if nothing is new."""
        if not self._new:
            return None
        from sentinel.slurm.script_reading import read_due_scripts  # few configurations need it

        self.busy = True
        try:
            before = dict(self._memories)
            for name in self._new & self._sources.keys():
                self._new.discard(name)
                seen = [one for one in list(self._watched.values()) if one.cluster == name]
                job_ids = {job_id for one in seen for job_id in one.job_ids}
                memory = self._memories.get(name, ScriptMemory())
                self._memories[name] = read_due_scripts(self._sources[name], job_ids, memory)
            if before == self._memories:
                return None
            stored: Mapping[str, Any] = to_builtins(StoredScripts(self._memories))
            return stored
        finally:
            self.busy = False
