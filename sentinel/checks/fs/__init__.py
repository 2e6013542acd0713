"""The `fs` kind: space, inodes, hangs and lost mounts of file systems."""

from sentinel.checks.fs.check import FsCheck

__all__ = ["FsCheck"]
