"""A week of a real service, by a clock that is moved by hand, with its state on disk."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.core.clock import SECOND, Instant
from sentinel.core.model import Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.engine.engine import Engine
from sentinel.store.opening import open_store
from sentinel.testing import ALL_SEEN, FixedSlurm, ManualClock
from sentinel.wiring import app
from sentinel.wiring.runtime import build_runtime_config
from tests.engine.worlds import Book, Grouped
from tests.kinds import PlainCheck

PASS_S = 3600
START = Instant(wall=1_790_000_000 * SECOND + 654_321)
"""Within a second, as real passes are, and without a boot clock: the replay has none either."""

Story = Callable[[int], Mapping[str, Sequence[Finding]]]
"""What each check sees in a pass, by the number of the pass."""

FILE = """
cluster: lab
state: {state}
timezone: UTC
checks:
  disks: {kind: fs, paths: [/scratch, /home], every: 1h}
  nodes: {kind: nodes, nodes: all, every: 1h, for: 2h}
  trainings: {kind: log, job: llm, every: 1h, keep_firing_for: 2h}
channels:
  oncall: {kind: email, to: [a@example.org], from: s@example.org, host: localhost}
  book: {kind: file, path: {state}/book.jsonl}
routes:
  - match: {severity: critical}
    to: [oncall, book]
    repeat: 12h
  - {to: [book], repeat: 1d}
silences:
  - {cron: "0 6 * * *", for: 3h, match: {check: [nodes]}, reason: morning}
"""


def write_file(folder: Path, text: str = FILE, name: str = "sentinel.yaml") -> Path:
    path = folder / name
    path.write_text(text.replace("{state}", str(folder / "state")))
    path.chmod(0o600)
    return path


def bad(subject: str, status: Status = Status.CRITICAL) -> Finding:
    return Finding(subject=subject, status=status, summary=f"{subject} is {status.value}")


def fill(path: str, percent: int) -> Finding:
    """A disk of 1,000 GB, by the default limits."""
    status = Status.CRITICAL if percent >= 95 else Status.WARNING if percent >= 85 else Status.OK
    numbers = {"used_percent": float(percent), "free_bytes": (100 - percent) * 10**10}
    return Finding(subject=path, status=status, summary=f"{percent}% used", values=numbers)


class Sees(PlainCheck):
    """Sees what the story says; its numbers are kept as samples."""

    def __init__(self, name: str, story: Story, turn: list[int]) -> None:
        self._name, self._story, self._turn = name, story, turn

    def run(self, ctx: Context) -> Report:
        found = tuple(self._story(self._turn[0]).get(self._name, ()))
        numbers = (
            Sample(f.subject, name, float(value))
            for f in found
            for name, value in f.values.items()
            if isinstance(value, int | float)
        )
        return Report(coverage=ALL_SEEN, findings=found, samples=tuple(numbers))


def live_through(settings: Settings, story: Story, passes: int) -> int:
    """Run a service for so many passes. Returns the end, µs UTC."""
    clock, turn = ManualClock(START), [0]
    world = build_runtime_config(settings, SystemClock(), False)
    checks = {
        name: replace(config, plugin=Sees(name, story, turn))
        for name, config in world.checks.items()
    }
    world = replace(
        world, checks=checks, channels={"oncall": Grouped(), "book": Book()}, slurm=FixedSlurm()
    )
    store = open_store(app.get_state_location(settings), clock.now()).store

    async def main() -> None:
        engine = Engine(world, store, clock)
        await engine.start_leading("test")
        for number in range(passes):
            turn[0] = number
            await asyncio.gather(*(engine.run_check(name) for name in checks))
            await engine.deliver_due()
            clock.advance(PASS_S)
        await engine.close()

    asyncio.run(main())
    return clock.now().wall
