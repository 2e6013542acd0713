"""Groups entries to steps, and decides which of them may be removed. Pure, standard library only.

A step is all entries of one number in a folder. A checkpoint is often a file for each rank, or the
model, its optimizer and a description side by side. It is removed as a whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from sentinel.clean.hints import MAX_NAMED_STEPS
from sentinel.clean.likeness import ComparedStep, explain_unlike
from sentinel.clean.mentions import is_log_file
from sentinel.clean.replacing import StepContent, find_irreplaceable, find_track_labels
from sentinel.clean.rules import TWO, UNPROVEN, DirectoryEntry, RetentionRules
from sentinel.core.checkpoint_names import (
    is_log,
    is_part_number,
    is_staging,
    may_be_part,
    needs_content,
    parse_step_numbers,
)
from sentinel.core.checkpoint_parts import find_missing_part
from sentinel.core.checkpoint_series import find_missing_in_order, find_saved_series


class CheckpointStep:
    """The entries of one number, which are removed together."""

    __slots__ = ("at", "complete", "held", "named", "number", "owner", "parts", "unfinished")

    def __init__(self, parts: Sequence[DirectoryEntry], number: int | None) -> None:
        self.parts = tuple(sorted(parts, key=lambda e: e.name))
        self.number = number
        self.at = max(e.at for e in parts)  # when anything in it was last changed (seconds UTC)
        self.named = any(e.named for e in parts)  # a pointer leads to it
        self.held = next((f"{e.name}: {e.held}" for e in self.parts if e.held), "")
        if self.held and len(parts) == 1:
            self.held = self.parts[0].held
        owners = {e.owner for e in parts}
        self.owner = owners.pop() if len(owners) == 1 else None  # uid; None: several
        if self.owner is None:
            self.held = self.held or "its parts belong to several users"
        self.unfinished = any(e.unfinished for e in parts)  # a name says that it was not ended
        self.complete = (
            any(e.complete for e in parts)
            and not self.unfinished
            and not find_missing_part(path for path, _, _ in self.list_files())
        )

    @property
    def first_name(self) -> str:
        """The name of its first entry. In requests it stands for all entries."""
        return self.parts[0].name

    @property
    def freed_bytes(self) -> int:
        """Bytes on disk that its removal frees."""
        return sum(e.size for e in self.parts)

    @property
    def entry_count(self) -> int:
        """Files and directories that its removal deletes."""
        return sum(e.entries for e in self.parts)

    @property
    def marker_bytes(self) -> int | None:
        """Bytes of the file that shows that it is complete. None if there is none."""
        found = [e.marker for e in self.parts if e.marker is not None]
        return max(found, default=None)

    def list_files(self) -> Iterator[tuple[str, int, float]]:
        """Path, bytes and time of each of its files."""
        for entry in self.parts:
            yield from ((f"{entry.name}/{path}", size, at) for path, size, at in entry.files)

    @property
    def is_log(self) -> bool:
        """Whether all its entries are logs, so that no run continues from it. A `.txt` may be anything."""
        return all(is_log_file(e.name) for e in self.parts)


class MisreadPattern(ValueError):
    """The first group of `match` captures the number of a rank or shard, not of a step."""


def group_steps(
    entries: Iterable[DirectoryEntry], rules: RetentionRules, others: Iterable[str] = ()
) -> list[CheckpointStep]:
    """Group all entries to steps. Raises MisreadPattern.

    `others` are names beside them that do not fit `match`. If one of them has the number of a step,
    the step is held, because it would not be removed as a whole.
    """
    groups = dict[object, list[DirectoryEntry]]()
    for entry in entries:
        start = rules.step_number_start(entry.name)
        if start >= 0 and is_part_number(entry.name, start):
            raise MisreadPattern(
                f"the first group of `match` catches the number of a rank or shard in "
                f"{entry.name!r}; put the step into the first group"
            )
        groups.setdefault(_step_key(entry.name, rules), []).append(entry)
    steps = [CheckpointStep(parts, rules.step_number(parts[0].name)) for parts in groups.values()]
    for own in _split_by_owner(steps):
        _judge_markers(own, rules)
        _compare_files(own)
    _hold_parts(steps, others, rules)
    _spare_what_others_need(steps)
    return steps


def removable_steps(
    steps: Sequence[CheckpointStep], rules: RetentionRules, now: float
) -> list[CheckpointStep]:
    """The steps that may be removed, oldest first. In doubt, a step is kept.

    The newest steps are kept by number and by time, because a run that was started again counts
    from 1. So is each step that two newer ones do not replace (`replacing`). All are kept for each
    owner. Otherwise, in a folder that several users write and root cleans, the new steps of one user
    would make those of another user old.
    """
    going = {s for own in _split_by_owner(steps) for s in _removable_of_owner(own, rules, now)}
    return [s for s in _order_steps(steps) if s in going]


def _split_by_owner(steps: Sequence[CheckpointStep]) -> list[list[CheckpointStep]]:
    owned: dict[int | None, list[CheckpointStep]] = {}
    for step in steps:
        owned.setdefault(step.owner, []).append(step)
    return [*owned.values()]


def _removable_of_owner(
    steps: Sequence[CheckpointStep], rules: RetentionRules, now: float
) -> list[CheckpointStep]:
    ordered = _order_steps(steps)
    older = _older_steps(ordered, rules)
    if not older:
        return []
    doubts = _find_doubts(ordered, rules)
    going = {s for s in older if (s.held or s not in doubts) and _may_go(s, rules, now)}
    needed = {name for s in steps if s not in going for name in _find_needs(s, ordered)}
    while bases := {s for s in going if not needed.isdisjoint(e.name for e in s.parts)}:
        going -= bases  # a base may have a base
        needed = {name for s in bases for name, base in _find_needs(s, ordered).items() if base}
    return [*going]


def _find_needs(step: CheckpointStep, ordered: Sequence[CheckpointStep]) -> dict[str, bool]:
    """The names that descriptions in the step give; none if they list what was saved before it: the step
    directly before it, and half of all before it."""
    needs = {name: is_base for e in step.parts for name, is_base in e.needs.items()}
    if len(needs) <= MAX_NAMED_STEPS or step not in ordered:
        return needs
    before = ordered[: ordered.index(step)]
    named = [s for s in before if not needs.keys().isdisjoint(e.name for e in s.parts)]
    return {} if named and named[-1] is before[-1] and 2 * len(named) >= len(before) else needs


def _older_steps(ordered: Sequence[CheckpointStep], rules: RetentionRules) -> list[CheckpointStep]:
    """The steps below those that `keep_last` keeps, without those that are among the newest by time."""
    whole, spared = [s for s in ordered if s.complete], kept_count(ordered, rules)
    if len(whole) <= spared:
        return []
    newest = {*whole[-spared:], *sorted(whole, key=lambda s: (s.at, s.first_name))[-spared:]}
    return [s for s in ordered[: ordered.index(whole[-spared])] if s not in newest]


def _find_doubts(
    ordered: Sequence[CheckpointStep], rules: RetentionRules
) -> dict[CheckpointStep, str]:
    """The steps that newer ones are not shown to make needless, and why, be it by number or by time. Logs are
    none: nobody goes on from them."""
    asked = [s for s in ordered if not s.is_log]
    tracks = find_track_labels((s.first_name, s.number) for s in asked)
    compared = {
        s: ComparedStep(
            tuple(e.name for e in s.parts),
            max(parse_step_numbers(s.first_name), default=None) if s.number is None else s.number,
            max(at for _, _, at in s.list_files()) if any(e.files for e in s.parts) else s.at,
            StepContent(s.list_files(), s.number, tracks),
            s.complete,
            s.unfinished,
            any(e.locked for e in s.parts),
            any(is_base for e in s.parts for is_base in e.needs.values()),
        )
        for s in asked
    }
    doubts = dict[CheckpointStep, str]()
    for oldest_first in (asked, sorted(asked, key=lambda s: (s.at, s.first_name))):
        rows = [compared[s] for s in oldest_first]
        doubts |= {s: why for s, why in zip(oldest_first, explain_unlike(rows, kept_count(ordered, rules)), strict=True) if why}  # fmt: skip
        for at in find_irreplaceable(
            [row.content for row in rows[::-1]],
            [not row.is_whole for row in rows[::-1]],
            [row.is_unfinished for row in rows[::-1]],
            TWO,
        ):
            doubts.setdefault(
                oldest_first[-1 - at], "no two newer ones hold as much under the same names"
            )
    return doubts


def kept_count(steps: Sequence[CheckpointStep], rules: RetentionRules) -> int:
    """How many complete steps are kept. It is more if nothing shows which steps are complete."""
    unproven = not rules.complete and not all(s.is_log for s in steps)
    return max(TWO, rules.keep_last) + (UNPROVEN if unproven else 0)


def still_removable(
    names: Collection[str], steps: Sequence[CheckpointStep], rules: RetentionRules, now: float
) -> tuple[list[CheckpointStep], list[CheckpointStep]]:
    """The steps of these names that may be removed now, and those that exist and may not or cannot
    be removed."""
    names = frozenset(names)
    asked = [s for s in removable_steps(steps, rules, now) if s.first_name in names]
    free = [s for s in asked if not s.held]
    going = {s.first_name for s in free}
    return free, [s for s in steps if s.first_name in names and s.first_name not in going]


def _step_key(name: str, rules: RetentionRules) -> object:
    """The key that all entries of one step have in common."""
    number = rules.step_number(name)
    if number is not None:
        return number
    return name if rules.pattern.groups else (parse_step_numbers(name) or name)


def _judge_markers(steps: Sequence[CheckpointStep], rules: RetentionRules) -> None:
    """Mark steps without a marker as incomplete. An empty marker counts only if markers never have
    content, because a full disk leaves empty files."""
    if not rules.complete:
        return
    filled = any(s.marker_bytes for s in steps)
    for step in steps:
        empty = step.marker_bytes == 0 and (filled or needs_content(rules.complete))
        if step.marker_bytes is None or empty:
            step.complete = False


def _compare_files(steps: Sequence[CheckpointStep]) -> None:
    """Mark a step as incomplete if it lacks files that the complete ones before it have."""
    ordered = sorted((s for s in steps if s.complete), key=lambda s: (s.at, s.first_name))
    series = [find_saved_series([*s.list_files()]) for s in ordered]
    for step, missing in zip(ordered, find_missing_in_order(series), strict=True):
        step.complete = not missing


def _hold_parts(
    steps: Sequence[CheckpointStep], others: Iterable[str], rules: RetentionRules
) -> None:
    beside = dict[object, str]()
    for name in sorted(others):
        if not (is_log(name) or is_staging(name)) and (
            may_be_part(name) or not rules.is_ignored(name)
        ):
            numbers = parse_step_numbers(name)
            for key in (numbers, *numbers):
                beside.setdefault(key, name)
    for step in steps:
        key = parse_step_numbers(step.first_name) if step.number is None else step.number
        if key == () or step.is_log or step.held or not (name := beside.get(key, "")):
            continue
        advice = "" if may_be_part(name) else f", or write `ignore: [{name}]`"
        step.held = f"{name} has the same number, and `match` does not fit it; let it fit{advice}"


def _spare_what_others_need(steps: Sequence[CheckpointStep]) -> None:
    """Keep the targets of links and tracker files in other steps."""
    needed = Counter(lead for s in steps for lead in {i for e in s.parts for i in e.leads})
    for step in steps:
        own = {i for e in step.parts for i in e.leads}
        for entry in step.parts:
            if needed[entry.identity] > (entry.identity in own):
                step.named = True


def _order_steps(steps: Sequence[CheckpointStep]) -> list[CheckpointStep]:
    """The oldest first: by number, or by time if none has a number. If only some have one, the
    position of the others is not known, so they are left out and kept."""
    numbered = [s for s in steps if s.number is not None]
    if not numbered:
        return sorted(steps, key=lambda s: (s.at, s.first_name))
    return sorted(numbered, key=lambda s: (s.number or 0, s.at, s.first_name))


def _may_go(step: CheckpointStep, rules: RetentionRules, now: float) -> bool:
    number = step.number
    if step.named or (rules.keep_every and (number is None or number % rules.keep_every == 0)):
        return False
    return now - step.at >= rules.older_than


def describe_doubts(steps: Sequence[CheckpointStep], rules: RetentionRules) -> list[str]:
    """Why complete steps cannot be recognised as complete, each reason with the remedy."""
    checkpoints = [s for s in steps if not s.is_log]
    if not checkpoints:
        return []
    doubts = []
    if not rules.complete:
        doubts.append(
            f"nothing shows which are whole, so the {kept_count(steps, rules)} newest stay; name a file "
            f"that only a whole one holds in `complete`"
        )
    whole = [s for s in checkpoints if s.complete]
    if rules.complete and not whole:
        doubts.append(f"none holds {rules.complete} (`complete`), so nothing is removed")
    counted, examples = Counter[str](), dict[str, str]()
    for step, why in _find_spared(checkpoints, rules):
        counted[why] += 1
        if counted[why] == 1:
            examples[why] = step.first_name
    doubts += [
        f"{number} older stay, such as {examples[why]}: {why}" for why, number in counted.items()
    ]
    return doubts


def _find_spared(
    steps: Sequence[CheckpointStep], rules: RetentionRules
) -> Iterator[tuple[CheckpointStep, str]]:
    """The steps older than those that `keep_last` keeps that are not shown to be needless, and why."""
    for own in _split_by_owner(steps):
        ordered = _order_steps(own)
        if older := _older_steps(ordered, rules):
            doubts = _find_doubts(ordered, rules)
            yield from ((s, doubts[s]) for s in older[::-1] if s in doubts and not s.named)
