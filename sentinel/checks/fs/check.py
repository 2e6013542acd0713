"""The `fs` check: asks each path, judges what it says against limits and memory."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from sentinel import proc
from sentinel.checks.fs.limits import Limits, completed, refuse_reversed
from sentinel.checks.fs.mounts import Mounts, parse
from sentinel.checks.fs.probe import Answer, probe, probe_all
from sentinel.checks.fs.verdict import KEPT, Rules, Seen, Sight, finding, remembered, samples
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Report, Status
from sentinel.core.ports import Context
from sentinel.core.settings import FilePath
from sentinel.core.text import visible

LOOKUP = 5.0
"""Seconds for finding out who the members of a group are."""

TABLE = "/proc/self/mountinfo"


class Fs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Space, inodes, hangs and lost mounts of file systems.

    Without `paths`: all file systems on this machine's own disks. `nodes` (a host list or `all`)
    or `job` (its name or id, of `users`): the paths as those nodes see them. `mounted`: true demands
    that each path is a mount point, false never minds; unset, one that was a mount point
    has to stay one. `read_only`: how bad it is that a file system is no longer writable.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 10

    paths: list[FilePath] = []
    warn: Limits = Limits()
    crit: Limits = Limits()
    nodes: str = ""
    job: str = ""
    users: list[str] = []
    mounted: bool | None = None
    read_only: Literal["critical", "warning", "ok"] = "critical"

    def __post_init__(self) -> None:
        refuse_reversed(self.warn, self.crit)
        self._judge_nodes()
        for number, path in enumerate(self.paths):
            if not path.startswith("/"):
                raise Invalid(f"{path!r} is no absolute path; begin it with /", "paths", number)

    def _judge_nodes(self) -> None:
        if self.nodes or self.job:
            from sentinel.checks.nodes_asked import judge_choice

            judge_choice(self.nodes, self.job)
            if not self.paths:
                raise Invalid("name the paths to look at on those nodes", "paths")

    def jobs_of(self) -> frozenset[str] | None:
        """The users squeue has to be asked for; None: everybody. Raises CannotTell."""
        if not self.job:
            return frozenset()
        from sentinel.checks.job.users import watched

        return watched(self.users, LOOKUP)

    def run(self, ctx: Context) -> Report:
        """One finding per path (and node). Raises CannotTell without a mount table or any path."""
        if self.nodes or self.job:
            return self._on_nodes(ctx)
        seen = self._seen(ctx.memory)
        answers = _answers(seen, ctx.limit)
        if not self.paths:  # files bound into a container lead to disks that are not its own
            seen = {p: s for p, s in seen.items() if not _is_file(answers.get(p))}
        mounts = mount_table()
        sights = [_sight(path, answers.get(path), mounts, ctx) for path in seen]
        findings = tuple(finding(s, seen[s.path], self._rules()) for s in sights)
        return Report(
            findings=findings,
            samples=tuple(sample for f in findings for sample in samples(f)),
            memory={visible(s.path): to_builtins(remembered(s, seen[s.path])) for s in sights},
        )

    def _on_nodes(self, ctx: Context) -> Report:
        from sentinel.checks.fs.nodes import on_nodes
        from sentinel.checks.nodes_asked import chosen

        names = chosen(self.nodes, self.job, self.jobs_of() if self.job else None, ctx)
        return on_nodes(names, [str(p) for p in self.paths], self._rules(), KEPT, ctx)

    def _seen(self, memory: Mapping[str, Any]) -> dict[str, Seen]:
        """What is remembered of every path to look at; a listed one is known as mounted."""
        if self.paths:
            return {path: _recalled(memory, path) for path in map(str, self.paths)}
        listed = [mount.point for mount in mount_table().local()]
        if not listed:
            raise CannotTell(f"{TABLE} names no file system on a local disk; give the paths")
        return {path: replace(_recalled(memory, path), mounted=True) for path in listed}

    def _rules(self) -> Rules:
        warn, crit = completed(self.warn, self.crit)
        return Rules(warn=warn, crit=crit, mounted=self.mounted, read_only=Status(self.read_only))


def mount_table() -> Mounts:
    """The mounts this process sees; raises CannotTell."""
    try:
        with open(TABLE, "rb") as file:
            return parse(file.read())
    except (OSError, ValueError) as error:
        raise CannotTell(f"{TABLE} cannot be read: {error}") from error


def _answers(seen: Mapping[str, Seen], limit: float) -> dict[str, Answer]:
    """Ask every path but those in which an earlier probe still hangs."""
    table = mount_table()

    def ask(path: str, patience: float) -> Answer:
        return probe(path, patience, plain=table.is_point(path))

    stuck = {p: s.stuck for p, s in seen.items() if s.stuck and proc.still_stuck(s.stuck)}
    budget = max(0.3 * limit, limit - 1.5 * proc.GRACE)
    fresh = probe_all((p for p in seen if p not in stuck), budget, min(limit / 2, budget), ask)
    return {**fresh, **{path: Answer(hung=True, stuck=child) for path, child in stuck.items()}}


def _sight(path: str, answer: Answer | None, mounts: Mounts, ctx: Context) -> Sight:
    real = answer.real if answer else ""
    return Sight(path=path, answer=answer, mount=mounts.holding(real) if real else None, at=ctx.now)


def _is_file(answer: Answer | None) -> bool:
    return answer is not None and answer.error == "Not a directory"


def _recalled(memory: Mapping[str, Any], path: str) -> Seen:
    try:
        return convert(memory.get(visible(path), {}), Seen)
    except ValidationError:
        return Seen()
