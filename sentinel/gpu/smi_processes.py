"""Rewrites what a page of `nvidia-smi -q -x` says of processes, since users choose their names. Pure.

nvidia-smi may print a name as it is, so a name can hold tags, newlines, and whole GPUs. The names of
a GPU stand after its first `<processes>` and before its last `</processes>`, whatever they hold.
All between the two is read piece by piece and written anew. A name with a line like the first of a
GPU makes one GPU too many; `sentinel.gpu.smi` compares the numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from sentinel.core.text import shortened, visible

_GPU = re.compile(r'^[ \t]*<gpu id="[^"<>\n]*">', re.MULTILINE)
"""Where a GPU begins: no name without a newline has such a line."""
_OPEN, _CLOSE, _NAME = "<processes>", "</processes>", "<process_name>"
_MOST = 10_000
"""Processes of one GPU at most."""

_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
"""As xml.sax.saxutils has them, which loads what opens connections."""


def rewrite_processes(text: str) -> tuple[str, int | None]:
    """The page, in which nothing that a process's name holds is a part of the XML, and how many lines
    open a GPU; None if there are no names."""
    if _NAME not in text:
        return text, None
    starts = [0, *(found.start() for found in _GPU.finditer(text)), len(text)]
    parts = (text[start:end] for start, end in itertools.pairwise(starts))
    return "".join(map(_rewrite_gpu, parts)), len(starts) - 2


def _rewrite_gpu(part: str) -> str:
    start, end = part.find(_OPEN), part.rfind(_CLOSE)
    if not 0 <= start < end:
        return part
    pieces = part[start + len(_OPEN) : end].split("<process_info>", _MOST)[1:]
    return f"{part[:start]}{_OPEN}{''.join(map(_rewrite_process, pieces))}{part[end:]}"


def _rewrite_process(piece: str) -> str:
    return f"<process_info>{''.join(_fields(piece))}</process_info>"


def _fields(piece: str) -> Iterator[str]:
    """What stands before the name is the driver's; the memory stands behind the last name."""
    before, _, after = piece.partition(_NAME)
    name, _, behind = after.rpartition("</process_name>")
    for field, place in (("pid", before), ("type", before), ("used_memory", behind)):
        if found := re.search(rf"<{field}>([^<>]*)</{field}>", place):
            yield f"<{field}>{_escape_text(visible(found[1]))}</{field}>"
    yield f"<process_name>{_escape_text(visible(shortened(_unescape_text(name), 1000)))}</process_name>"


def _escape_text(text: str) -> str:
    return text.translate(_ENTITIES)


def _unescape_text(text: str) -> str:
    for character, entity in reversed(_ENTITIES.items()):
        text = text.replace(entity, chr(character))
    return text
