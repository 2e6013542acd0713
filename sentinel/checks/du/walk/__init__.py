"""A fast du. It is a program of its own, because reading a directory on a mount that hangs cannot
be cancelled, only abandoned. Standard library only.

On a fast file system, most of the time goes to the interpreter, so several processes walk. On a
slow one, most of the time is waiting, so threads walk. The walk stays on one file system and never
follows a symbolic link: a directory is opened with O_NOFOLLOW and must be the one (device and
inode) that was found in its parent.
"""
