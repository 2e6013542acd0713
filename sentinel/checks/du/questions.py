"""The questions of the `du` check about a path."""

from collections.abc import Iterator

from sentinel import proc
from sentinel.checks.du.settings import DuSettings
from sentinel.checks.du.tree import show_tree, tree_finding, tree_samples, walk_tree
from sentinel.checks.filesystems.limits import SpaceLimits, complete_limits
from sentinel.checks.filesystems.report import PathQuestions, real_path_of
from sentinel.checks.filesystems.verdict import PathObservation
from sentinel.core.model import Finding
from sentinel.core.mounts import LOCAL_DISK_TYPES, Mount
from sentinel.core.ports import Context
from sentinel.core.text import visible


class TreeQuestions(PathQuestions):
    """Walks once through the tree at each path."""

    def __init__(
        self, du: DuSettings, warn: SpaceLimits, crit: SpaceLimits, ctx: Context, deadline: float
    ) -> None:
        super().__init__(ctx, deadline)
        self._du = du
        self._warn, self._crit = complete_limits(warn, crit)

    def ask_about(self, sight: PathObservation, mount: Mount) -> Iterator[Finding]:
        """Walk through the tree at this path."""
        yield from self.ask_one(f"{sight.path} tree", lambda: [self._tree_finding(sight, mount)])

    def _tree_finding(self, sight: PathObservation, mount: Mount) -> Finding:
        tree = walk_tree(
            real_path_of(sight), self._du, mount.type in LOCAL_DISK_TYPES, self.run_seconds_left()
        )
        if tree.stuck:
            left = proc.remember_process(tree.stuck)
            self.hanging.keep_hanging(visible(f"{sight.path} tree"), left)
        found = tree_finding(sight.path, tree, self._du, self._warn, self._crit)
        self.parts += tree_samples(found.subject, tree)
        if self.ctx.one_shot:
            self.shown[found.subject] = show_tree(tree)
        return found
