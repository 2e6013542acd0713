"""The result of a diagnostic run, whatever version of DCGM printed it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

GPU = re.compile(r"\bGPU ?([0-9]{1,4})\b")
"""How a message names the GPU that it is about."""

Status = Literal["pass", "fail", "skip", "other"]
"""DCGM folds Warn into Fail in all its JSON (HelperDisplayDiagResult in dcgmi/Diag.cpp); tables
of 2.x still have it, and it is a failed test here. Any word that is not known is `other`."""


class Fault(Struct, frozen=True, kw_only=True):
    """A warning of a test. `error_id` is dcgmError_t, `severity` dcgmErrorSeverity_t, `category`
    dcgmErrorCategory_t (dcgmlib/dcgm_errors.h); None where not told, and before DCGM 3.2.5."""

    text: str
    error_id: int | None = None
    severity: int | None = None
    category: int | None = None


class Result(Struct, frozen=True, kw_only=True):
    """One test on some devices. `ids` empty: on all of them, or not told on which."""

    test: str
    category: str
    status: Status
    entity: str = "GPU"
    ids: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()
    info: str = ""


class Document(Struct, frozen=True, kw_only=True):
    """All of a run. `form`: json-3 (2.x and 3.x), json-4, table. `gpus`: those it was about, by
    their DCGM ids, as far as it lists them.

    `error`: the run itself failed, in DCGM's words. `whole`: false for a table that ends before
    its last line. `failing`: somewhere in it something says that it failed.
    """

    form: str
    results: tuple[Result, ...] = ()
    version: str = ""
    driver: str = ""
    serials: Mapping[int, str] = {}
    gpus: tuple[int, ...] = ()
    error: str = ""
    whole: bool = True
    failing: bool = False
