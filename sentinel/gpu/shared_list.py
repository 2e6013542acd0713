"""The list of lemons that clusters and teams share: one JSON document, signed if there is a key.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace

from sentinel.core.digests import is_same_digest, make_hmac
from sentinel.core.errors import SentinelError
from sentinel.core.lemon_policy import Class
from sentinel.core.struct_types import decode_json

FORM = "sentinel-gpus-1"


class BadList(SentinelError):
    """The text is not such a list, or is not signed with the key."""

    exit_code = 65
    """EX_DATAERR of sysexits(3)."""


class Listed(Struct, frozen=True, kw_only=True):
    """A GPU on the list. `seen` in epoch seconds; `why` is one line."""

    uuid: str
    judged: Class
    serial: str = ""
    score: float = 0.0
    why: str = ""
    node: str = ""
    seen: int = 0


class GpuList(Struct, frozen=True, kw_only=True):
    """Who says so, when (epoch seconds), and of which GPUs. `signature`: HMAC-SHA256, hex."""

    form: str
    cluster: str
    at: int
    gpus: tuple[Listed, ...] = ()
    signature: str = ""


def written(cluster: str, at: int, gpus: Sequence[Listed], key: bytes = b"") -> str:
    """The list as a document, signed if there is a key."""
    plain = GpuList(form=FORM, cluster=cluster, at=at, gpus=tuple(gpus))
    whole = replace(plain, signature=_signature(plain, key)) if key else plain
    return json.format(json.encode(whole), indent=1).decode()


def read(text: str | bytes, key: bytes = b"") -> GpuList:
    """The list in a document. Raises BadList for another form, and with a key for a list that is
    not signed with it."""
    try:
        found = decode_json(text, GpuList)
    except (DecodeError, ValidationError, UnicodeError, RecursionError) as error:
        raise BadList(f"no list of GPUs: {error}") from error
    if found.form != FORM:
        raise BadList(f"a list of the form {found.form[:40]!r}; this sentinel reads {FORM!r}")
    if key and not is_same_digest(found.signature.encode(), _signature(found, key).encode()):
        said = "is signed with another key, or was changed" if found.signature else "is not signed"
        raise BadList(f"the list {said}")
    return found


def _signature(found: GpuList, key: bytes) -> str:
    """The signature over the document without its signature, with fields in a fixed order."""
    return make_hmac(key, json.encode(replace(found, signature=""))).hex()
