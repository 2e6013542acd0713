"""BLAKE2b without OpenSSL: hashlib loads that for its other algorithms, which costs a start 3 ms."""

try:
    from _blake2 import blake2b  # what hashlib.blake2b is
except ImportError:  # an interpreter that was built without it
    from hashlib import blake2b

__all__ = ["blake2b"]
