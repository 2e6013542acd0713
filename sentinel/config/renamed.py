"""Keys of the file that have another name now, or do nothing any more: accepted with a warning for
two minor releases."""

from collections.abc import Sequence

from msgspec import Struct

from sentinel.config.nodes import TableEntry, TableNode
from sentinel.config.problems import Path, ProblemCollector


class RenamedKey(Struct, frozen=True):
    """A renamed key, or one that ended. `kind` is the name of its settings class. `since` is the release that did
    it."""

    kind: str
    old: str  # Its old name.
    new: str  # Its new name; empty if it does nothing any more.
    since: str


RENAMED_KEYS: Sequence[RenamedKey] = (RenamedKey("Log", "loss_spikes", "", "0.2.0"),)
"""A row stays for two minor releases after `since`; docs/policy.md promises that."""


def rename_keys(
    table: TableNode,
    kind: str,
    path: Path,
    collector: ProblemCollector,
    renamed: Sequence[RenamedKey],
) -> TableNode:
    """The table with the key names of this version. If both names are given, this is an error,
    because it is unclear which one counts."""
    rows = {row.old: row for row in renamed if row.kind == kind and row.old in table.entries}
    if not rows:
        return table
    entries: dict[str, TableEntry] = {}
    for key, entry in table.entries.items():
        row = rows.get(key)
        if row is None:
            entries[key] = entry
        elif not row.new:
            collector.add_warning(
                entry.line, (*path, key), f"does nothing since {row.since}; remove it"
            )
        elif row.new in table.entries:
            collector.add_error(
                entry.line, (*path, key), f"is the old name of {row.new}, which is there too"
            )
        else:
            collector.add_warning(
                entry.line, (*path, key), f"is called {row.new} since {row.since}; rename it"
            )
            entries[row.new] = TableEntry(row.new, entry.line, entry.value)
    return TableNode(entries, table.line)
