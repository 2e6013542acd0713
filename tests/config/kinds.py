"""Small kinds of checks and channels that use every type a setting may have."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from sentinel.config.registry import KindRegistry
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret
from sentinel.core.values import Duration, Share, Size
from sentinel.plugin import Channel, Check


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a disk."""

    used: Share | None = None
    free: Size | None = None
    full_in: Duration | None = None


class Disk(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How full disks are.

    More about it.
    """

    EVERY: ClassVar[float] = 60.0
    TIMEOUT: ClassVar[float] = 10.0

    paths: list[FilePath] = []
    warn: Limits = Limits(used=Share(85))
    crit: Limits = Limits(used=Share(95), free=Size(10**13))
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.warn.used and self.crit.used and self.warn.used > self.crit.used:
            raise Invalid("warn must be below crit", "warn", "used")


class Watch(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a log says."""

    EVERY: ClassVar[float] = 60.0
    TIMEOUT: ClassVar[float] = 10.0

    path: FilePath
    stale_after: Duration | Literal["auto"] = Duration(1200)
    progress: re.Pattern[str] | None = None
    mode: Literal["growth", "number"] = "growth"
    lines: Annotated[int, Meta(ge=1, le=1000)] = 10
    factor: float = 1.5
    users: list[str] = []
    phases: dict[str, Limits] = {}
    match: str | list[str] | None = None
    pair: Annotated[tuple[int, ...], Meta(min_length=1)] = (1,)

    def conflicts(self, others: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        for name, other in others.items():
            if getattr(other, "path", None) == self.path:
                yield "path", f"the check '{name}' watches this file already"


class Done(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of its keys is a word that references use as well."""

    file: FilePath
    words: list[str] = []


class Mail(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sends mail."""

    to: list[str]
    host: str = "localhost"
    port: int = 25
    password: Secret | None = None
    headers: dict[str, str] = {}
    ca_file: FilePath | None = None
    tokens: dict[str, Secret] = {}
    keys: list[Secret] = []
    done: str | Done | None = None

    def __post_init__(self) -> None:
        if not self.host.isascii() or " " in self.host:
            raise Invalid(f"{self.host!r} is no host", "host")


class Screen(Channel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prints."""


HERE = __name__
CHECKS = KindRegistry({"disk": f"{HERE}:Disk", "watch": f"{HERE}:Watch"}, "sentinel.test.none")
CHANNELS = KindRegistry({"mail": f"{HERE}:Mail", "screen": f"{HERE}:Screen"}, "sentinel.test.none")
