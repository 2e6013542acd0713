"""A fast du: a program of its own, since a directory on a mount that hangs cannot be given up,
only left behind. Standard library only.

A fast file system is walked by several processes, since there the interpreter takes the time; a
slow one by threads, since there the waiting does. It stays on one file system, and nothing is
opened through a symbolic link: a directory is opened with O_NOFOLLOW and has to be the very one
(device and inode) that its parent named.
"""
