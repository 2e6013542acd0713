"""The `fs` check as it was when quotas and trees were keys of it, and what replaces it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel.checks.fs.settings import Settings

OWN = ("auto", "statfs")
MOVED = {"quotas": "quota", "quota": "quota", "command": "quota", "pattern": "quota", "du": "du"}
"""Keys and options by the kind that has them now."""

_KEYS = (*Settings.__struct_fields__, *MOVED, "kind")
_BOUNDS = ("used", "free", "full_in")


def moved(option: str, values: Sequence[str]) -> str:
    """The kind that an option of the command line belongs to now, empty where it is fs's own."""
    if option == "measure":
        return "" if set(values) <= {*OWN} else "du" if "du" in values else "quota"
    return MOVED.get(option, "")


def old_key(check: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the former form shows; empty where it does not."""
    if check.get("measure", "auto") not in OWN:
        return ("measure",)
    keys = [(key,) for key in MOVED if key in check]
    return next(
        iter([*keys, *((d, "grace") for d in ("warn", "crit") if _has_grace(check, d))]), ()
    )


def replaced(name: str, check: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The checks that look at the same, by name; what changed nothing is left out."""
    further = _further(check)
    own = {key: value for key, value in check.items() if key not in MOVED}
    own |= {d: _without_grace(check[d]) for d in ("warn", "crit") if _has_grace(check, d)}
    if further or check.get("measure", "auto") not in OWN:
        own["measure"] = "statfs"
    blocks = {name: {key: value for key, value in own.items() if value != {}}}
    if further:
        blocks[f"{name}-{further['kind']}"] = further
    return blocks


def _further(check: Mapping[str, Any]) -> dict[str, Any]:
    measure = check.get("measure", "auto")
    if check.get("nodes") or check.get("job") or measure == "statfs":
        return {}
    common = {key: value for key, value in check.items() if key not in _KEYS}
    paths = {key: check[key] for key in ("paths",) if key in check}
    if measure == "du":
        return {"kind": "du", **common, **paths, **_du(check)}
    asked = measure != "auto" or "quotas" in check
    if not asked and not any(_has_grace(check, d) for d in ("warn", "crit")):
        return {}
    return {"kind": "quota", **common, **paths, **_quota(check, measure)}


def _quota(check: Mapping[str, Any], measure: str) -> dict[str, Any]:
    limits = {"warn": _without_grace(check.get("warn")), "crit": check.get("crit")}
    command = check.get("command")
    keys = ("command", "pattern") if command else ("quotas",)
    found = {key: check[key] for key in keys if key in check}
    if measure not in ("auto", "quota", "command"):
        found = {"tool": measure, **found}
    found |= {key: limit for key, limit in limits.items() if limit}
    return found | _forecast(check)


def _forecast(check: Mapping[str, Any]) -> dict[str, Any]:
    limits = [check[d] for d in ("warn", "crit") if isinstance(check.get(d), Mapping)]
    if not (check.get("headroom") or any("full_in" in limit for limit in limits)):
        return {}
    return {key: check[key] for key in ("headroom", "lag") if key in check}


def _du(check: Mapping[str, Any]) -> dict[str, Any]:
    du = check.get("du")
    found = dict(du) if isinstance(du, Mapping) else {}
    for degree in ("warn", "crit") if "size" in found else ():
        given = check.get(degree)
        limit = (
            {k: v for k, v in given.items() if k in _BOUNDS} if isinstance(given, Mapping) else {}
        )
        found |= {degree: limit} if limit else {}
    return found


def _has_grace(check: Mapping[str, Any], degree: str) -> bool:
    return isinstance(check.get(degree), Mapping) and "grace" in check[degree]


def _without_grace(limits: Any) -> Any:
    if not isinstance(limits, Mapping):
        return limits
    return {key: value for key, value in limits.items() if key != "grace"}
