"""What of a directory may go, and its removal: a program of its own, standard library only.

Nothing outside the named root is ever touched, and nothing is reached through a symbolic link: the
root is opened step by step with O_NOFOLLOW, and all below it by openat(2) and unlinkat(2) from
there. A name that stands for something else than what was looked at is put back and left alone.
"""
