"""The configured rules of retention, and the entries of a directory. Pure, standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from sentinel.core.checkpoint_names import drop_words, find_demanded_words

TWO = 2
"""How many of the newest complete steps are kept whatever is configured, because the last one may
be corrupt."""

UNPROVEN = 2
"""How many more are kept if no `complete` shows which are complete."""


class DirectoryEntry:
    """A file or directory directly in the root, as it was seen."""

    __slots__ = (
        "at",
        "complete",
        "content",
        "entries",
        "files",
        "held",
        "identity",
        "leads",
        "locked",
        "marker",
        "name",
        "named",
        "needs",
        "owner",
        "size",
        "unfinished",
    )

    def __init__(
        self,
        name: str,
        at: float,
        size: int = 0,
        *,
        entries: int = 1,
        complete: bool = True,
        identity: tuple[int, int] = (0, 0),
        named: bool = False,
        held: str = "",
        content: int | None = None,
        owner: int = 0,
    ) -> None:
        self.name = name
        self.owner = owner  # uid
        self.at = at  # when anything in it was last changed (seconds UTC)
        self.size = size  # bytes on disk that its removal frees
        self.entries = entries  # files and directories that its removal deletes
        # it has content, and the file that `complete` names if that is set
        self.complete = complete
        self.unfinished = False  # its name, or a marker beside it, says that it was not completed
        self.identity = identity  # device and inode
        self.named = named  # a pointer leads to it
        self.locked = (
            False  # its mode, or that of a file in it, says that its owner may not write it
        )
        self.held = held  # why it cannot be removed, even if it may be
        self.leads: frozenset[tuple[int, int]] = frozenset()  # targets of the links in it
        # Names of the root's entries that its own descriptions name: an adapter goes with its base.
        # False: it was only resumed from there.
        self.needs: dict[str, bool] = {}
        self.content = size if content is None else content  # bytes of its files
        self.marker: int | None = None  # bytes of the file that `complete` names
        # Path below it, bytes and time of each file in it.
        self.files: list[tuple[str, int, float]] = [("", size, at)]


class RetentionRules:
    """The rules of retention: which names they apply to, and which entries are kept."""

    FIELDS = (
        "match",
        "keep_last",
        "keep_every",
        "older_than",
        "complete",
        "pointers",
        "ignore",
    )

    def __init__(
        self,
        match: str,
        *,
        keep_last: int = TWO,
        keep_every: int = 0,
        older_than: float = 0.0,
        complete: str = "",
        pointers: Sequence[str] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        # must match the whole name; if its first group is a number, that gives the order
        self.match = match
        self.keep_last = keep_last  # how many complete ones are kept
        self.keep_every = keep_every  # of numbered steps, each multiple of this is kept
        self.older_than = older_than  # seconds; younger entries are kept
        self.complete = complete  # a file that only a complete entry has (a shell pattern)
        self.pointers = tuple(pointers)  # paths of links and tracker files in other places
        self.ignore = tuple(ignore)  # patterns of names that are neither pointers nor parts
        self.pattern = re.compile(match)
        self._hidden = match.startswith(r"\.")
        self._demanded = find_demanded_words(match)
        # whether a name may be a pointer, for the names that were checked
        self.pointing: dict[str, bool] = {}
        self._found: dict[str, tuple[bool, int | None, int]] = {}

    @classmethod
    def parse_rules(cls, text: str) -> RetentionRules:
        """The rules from the text of `rules_text`. Raises ValueError, TypeError or re.error."""
        return cls(**json.loads(text))

    def rules_text(self) -> str:
        """The same rules as one line of JSON."""
        return json.dumps({name: getattr(self, name) for name in self.FIELDS}, sort_keys=True)

    def fits_name(self, name: str) -> bool:
        """Whether the rules apply to that name. As with a shell's `*`, a name that begins with a
        dot (.ssh, .snapshot) fits only a pattern that begins with one."""
        return self._search_name(name)[0]

    def step_number(self, name: str) -> int | None:
        """The number in the first group of the pattern. None if there is none."""
        return self._search_name(name)[1]

    def step_number_start(self, name: str) -> int:
        """Where that number begins in the name. -1 if there is none."""
        return self._search_name(name)[2]

    def telling_name(self, name: str) -> str:
        """The name without the words that the pattern demands in every name."""
        return drop_words(name, self._demanded)

    def is_ignored(self, name: str) -> bool:
        """Whether the configuration says that it is neither a pointer nor a part of a checkpoint."""
        return any(fnmatchcase(name, pattern) for pattern in self.ignore)

    def is_marker(self, name: str) -> bool:
        """Whether a file of that name says that a checkpoint is complete."""
        return name == self.complete or fnmatchcase(name, self.complete)

    def _search_name(self, name: str) -> tuple[bool, int | None, int]:
        """Search the name. The pattern is tried once for each name, because a folder may hold
        100,000."""
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._search_uncached(name)
        return known

    def _search_uncached(self, name: str) -> tuple[bool, int | None, int]:
        if name.startswith(".") and not self._hidden:
            return False, None, -1
        found = self.pattern.fullmatch(name)
        text = found[1] if found and self.pattern.groups else None
        if found and text and text.isascii() and text.isdigit():
            return True, int(text), found.start(1)
        return found is not None, None, -1
