"""What the `du` check asks of a path: how much lies in the tree."""

from collections.abc import Iterator

from sentinel import proc
from sentinel.checks.du.settings import Du
from sentinel.checks.du.tree import finding, parts, walked
from sentinel.checks.filesystems.limits import Limits, completed
from sentinel.checks.filesystems.report import PathQuestions, real_path_of
from sentinel.checks.filesystems.verdict import Sight
from sentinel.core.model import Finding
from sentinel.core.mounts import LOCAL, Mount
from sentinel.core.ports import Context
from sentinel.core.text import visible


class TreeQuestions(PathQuestions):
    """One walk through the tree at each path."""

    def __init__(self, du: Du, warn: Limits, crit: Limits, ctx: Context, deadline: float) -> None:
        super().__init__(ctx, deadline)
        self._du = du
        self._warn, self._crit = completed(warn, crit)

    def about(self, sight: Sight, mount: Mount) -> Iterator[Finding]:
        """The tree."""
        yield from self.one(f"{sight.path} tree", lambda: [self._tree(sight, mount)])

    def _tree(self, sight: Sight, mount: Mount) -> Finding:
        tree = walked(real_path_of(sight), self._du, mount.type in LOCAL, self.left())
        if tree.stuck:
            left = proc.left_behind(tree.stuck)
            self.hanging.keep(visible(f"{sight.path} tree"), left)
        found = finding(sight.path, tree, self._du, self._warn, self._crit)
        self.parts += parts(found.subject, tree)
        return found
