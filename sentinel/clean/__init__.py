"""Decides which entries of a directory may be removed, and removes them, in a separate program with
only the standard library.

Nothing outside of the given root is touched, and no symbolic link is followed. The root is opened
step by step with O_NOFOLLOW, and everything below it with openat(2) and unlinkat(2). If a name no
longer means the entry that was checked, it is put back and left alone.
"""
