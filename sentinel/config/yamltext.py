"""Plain data -> YAML text that means the same to readers of YAML 1.1 and of 1.2."""

from collections.abc import Iterator
from typing import Any

from sentinel.core.lazy_pattern import lazy_pattern

_BARE = lazy_pattern(r"[A-Za-z/][A-Za-z0-9_./@%+-]*|(?:[0-9]+(?:ms|[wdhms]|%|[kKMGTPE]i?B|B))+")
_TAKEN = lazy_pattern(r"(?i)y|n|yes|no|on|off|true|false|null|nan|inf")
"""Words that some reader of YAML takes for something else than text."""

_WIDTH = 88


def yaml_text(data: dict[str, Any]) -> str:
    """A block mapping. Short lists and mappings are on one line."""
    return "".join(f"{line}\n" for line in _table_lines(data, "")) or "{}\n"


def _table_lines(data: dict[str, Any], indent: str) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry_lines(f"{indent}{scalar_text(key)}:", value, f"{indent}  ")


def _entry_lines(head: str, value: Any, indent: str) -> Iterator[str]:
    line = f"{head} {flow_text(value)}"
    short = len(line) <= _WIDTH and not (isinstance(value, dict) and _holds_containers(value))
    if not value or not isinstance(value, dict | list) or short:
        yield line
    elif isinstance(value, dict):
        yield head
        yield from _table_lines(value, indent)
    else:
        yield head
        yield from (f"{indent}- {flow_text(item)}" for item in value)


def _holds_containers(value: dict[str, Any]) -> bool:
    return any(isinstance(item, dict | list) for item in value.values())


def flow_text(value: Any) -> str:
    """The value in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar_text(k)}: {flow_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow_text, value))}]"
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """Text in quotes wherever some reader could take it for something else."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _number_text(value)
    if isinstance(value, int):
        return str(value)
    bare = _BARE.fullmatch(value) and not _TAKEN.fullmatch(value)
    return value if bare else f'"{"".join(map(_escape_char, value))}"'


def _number_text(value: float) -> str:
    text = repr(value).replace("inf", ".inf").replace("nan", ".nan")
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def _escape_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )
