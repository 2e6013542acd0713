"""BLAKE2b and SHA-256 without OpenSSL: hashlib loads that for its other algorithms, which costs a start 3 ms."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b  # the implementation of hashlib.blake2b
    except ImportError:  # this interpreter was built without it
        from hashlib import blake2b
    try:
        # the implementation of hashlib.sha256 without OpenSSL, since Python 3.12
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

__all__ = ["blake2b", "is_same_digest", "make_hmac", "sha256"]


def make_hmac(key: bytes, body: bytes) -> bytes:
    """HMAC-SHA256 of 32 bytes."""
    import hmac  # loads OpenSSL, which only signatures need

    return hmac.digest(key, body, "sha256")


def is_same_digest(ours: bytes, theirs: bytes) -> bool:
    """Whether both are equal. The comparison takes the same time for all values, so it reveals
    nothing about them."""
    import hmac

    return hmac.compare_digest(ours, theirs)
