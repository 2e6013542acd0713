"""Finds the names of checkpoints and the numbers of steps in the text of a file. Pure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator

from sentinel.core.checkpoint_names import is_log, parse_step_numbers

# A file with one of these words in its name may say which checkpoint a run continues from.
_POINTING_WORDS = (
    r"last|latest|recent|newest|current|best|better|lowest|highest|smallest|largest|greatest|least"
    r"|min|max|minimum|maximum|minimal|maximal|optimal|optimum|top|champion|winner|final|resumes?"
    r"|restore|restart|checkpointed|pointers?|tracker|keep|kept|pinned|protected"
)
# The same holds for these words, unless the file itself matches `match`.
_GENERAL_WORDS = r"checkpoints?|ckpts?|saves?|saved|states?|progress"
_CAMEL_PATTERN = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _with_words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[^a-z])(?:{words})(?:[^a-z]|$)", re.IGNORECASE)


_POINTING, _GENERAL = _with_words(_POINTING_WORDS), _with_words(_GENERAL_WORDS)
_CERTAIN_PATTERN = _with_words(
    "last|latest|recent|newest|current|best|lowest|highest|min|max|resume|checkpoints?"
)
_FLAG_PATTERN = re.compile(r".*[._-](?:lock|done|flag|ok|pid|success|complete)", re.IGNORECASE)

_URL_PATTERN = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^\s\"'`,;<>()\[\]{}]+", re.IGNORECASE)
_WORD_PATTERN = re.compile(r"[^\s\"'`,;()\[\]{}<>]+")
_DIGIT, _SPACE = re.compile("[0-9]"), re.compile(r"\s")
_FLOAT_VALUE = re.compile(r"(?<=[=:])\d*\.\d+(?![.\w])")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
MAX_NAME_BYTES = 255
_FLOAT = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?|[-+]?\d+(?:\.\d*)?e[-+]?\d+", re.IGNORECASE)

_VERSION_PATTERN = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){2,3}(?:[a-z+-].{0,40})?")
"""`2.50.0`, `2.9.0+cu128`: the version of a program, not the number of a step."""

_STRUCTURED = re.compile(r".*\.(?:ya?ml|toml|ini|cfg|conf)", re.IGNORECASE)
_WEIGHTS = re.compile(
    r".*\.(?:safetensors|pt|pth|ckpt|bin|nemo|h5|hdf5|npz|npy|pkl|pickle|msgpack|gguf|onnx|tar|t7"
    r"|params|model|weights|pdparams|pdopt|distcp|mar|th|joblib|zip|tgz|gz|zst)",
    re.IGNORECASE,
)


class Mentions:
    """What a text names. `names` are whole names, `prefixes` are beginnings of names, `numbers` are
    steps."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.prefixes: set[str] = set()
        self.numbers: set[int] = set()

    def covers_name(self, name: str) -> bool:
        """Whether the text names this entry, or may name it."""
        return (
            name in self.names
            or not self.numbers.isdisjoint(parse_step_numbers(name))
            or (
                bool(self.prefixes) and any(part in self.prefixes for part in name_beginnings(name))
            )
        )

    def add_mentions(self, other: Mentions) -> None:
        """Add what another text names."""
        self.names |= other.names
        self.prefixes |= other.prefixes
        self.numbers |= other.numbers

    def add_name(self, path: str) -> list[str]:
        """Add a path, or a name alone. Returns its parts."""
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        self.names.update(parts)
        for part in parts:
            name = part[:MAX_NAME_BYTES]  # no file name is longer, so the beginning is enough
            if name.isascii() and name.isdigit():
                self.numbers.add(int(name))
            elif _DIGIT.search(name):
                self.prefixes.add(part)
                self.names.update(begin for begin in name_beginnings(name) if _DIGIT.search(begin))
        return parts

    def add_path(self, path: str, there: Collection[str]) -> bool:
        """Add a path, or a name alone. Returns whether something in `there` has one of these names.

        If nothing has, the number in the path counts: `ckpt-100` and `ckpt-100/weights` then mean
        `model_000100.pt`.
        """
        parts = self.add_name(path)
        if any(part in there for part in parts):
            return True
        numbered = next((part for part in reversed(parts[-2:]) if _DIGIT.search(part)), "")
        if _VERSION_PATTERN.fullmatch(numbered):
            return False
        if len(numbered) < MAX_NAME_BYTES and not _SPACE.search(numbered):
            self.numbers.update(parse_step_numbers(_FLOAT_VALUE.sub(" ", numbered)))
        return False


def name_beginnings(name: str) -> Iterator[str]:
    """All beginnings of a name that do not end within a word or a number. The whole name comes
    last.

    `step_100` begins `step_100.data-0`, and does not begin `step_1000`.
    """
    for at in range(1, len(name)):
        left, right = name[at - 1], name[at]
        if not (left.isdigit() and right.isdigit()) and not (left.isalpha() and right.isalpha()):
            yield name[:at]
    yield name


def is_pointing(name: str) -> bool:
    """Whether a file of that name may name a checkpoint; `bestModel.txt` has two words."""
    return _POINTING.search(_CAMEL_PATTERN.sub("_", name)) is not None


def is_about_checkpoints(name: str) -> bool:
    """Whether a file of that name, if it is no checkpoint itself, may name one."""
    return _GENERAL.search(_CAMEL_PATTERN.sub("_", name)) is not None


def has_to_name_one(name: str) -> bool:
    """Whether a file of that name can only be a pointer. If its text cannot be understood, it names
    a checkpoint that nobody knows."""
    return _CERTAIN_PATTERN.search(_CAMEL_PATTERN.sub("_", name)) is not None and not is_flag(name)


def is_flag(name: str) -> bool:
    """Whether a file of that name is meant to be empty, because its name alone says everything."""
    return _FLAG_PATTERN.fullmatch(name) is not None


def is_structured(name: str) -> bool:
    """Whether a file of that name is a configuration of several lines."""
    return _STRUCTURED.fullmatch(name) is not None


def has_weights_name(name: str) -> bool:
    """Whether files with the extension of this name are binary."""
    return _WEIGHTS.fullmatch(name) is not None


def is_weights(name: str, head: bytes, size: int, longest: int) -> bool:
    """Whether a file is a checkpoint itself.

    It is known by its first bytes, or by its name if it is empty. If it is longer than any path
    (`longest`), it is known by its name, or because it is no text.
    """
    if head.startswith(b"PK\x03\x04"):  # torch.save(), numpy.savez()
        return True
    if len(head) > 8 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return True  # safetensors: the length of the header, then the header
    if size == 0:
        return _WEIGHTS.fullmatch(name) is not None  # a full disk leaves an empty file
    if size <= longest:
        return False
    return _WEIGHTS.fullmatch(name) is not None or not is_text(head)


def mentions_in_bytes(raw: bytes, there: Collection[str]) -> Mentions:
    """The names in `there` that a small binary file contains: torch7 and pickle keep texts as they
    are."""
    found = Mentions()
    found.names = {
        name for name in there if _DIGIT.search(name) and _holds_word(raw, os.fsencode(name))
    }
    return found


def _holds_word(raw: bytes, word: bytes) -> bool:
    """Whether the bytes contain the word with no digit directly before or after it."""
    at = raw.find(word)
    while at >= 0:
        around = raw[max(0, at - 1) : at] + raw[at + len(word) : at + len(word) + 1]
        if not any(48 <= byte <= 57 for byte in around):
            return True
        at = raw.find(word, at + 1)
    return False


def is_log_file(name: str) -> bool:
    """Whether it is a log by its name. A `.txt` may be anything."""
    return is_log(name) and not name.lower().endswith(".txt")


STEP_NUMBER_REGEX = r"([0-9]{1,15}|[0-9]{1,3}(?:[,_][0-9]{3}){1,4}|[0-9](?:\.[0-9]{1,12})?[eE]\+?[0-9]{1,2})(?:\.0{1,9})?"
"""A number of a step, also as a program prints a large one, or one that it stored as a float:
`3,000`, `3_000`, `3000.0`, `3e3`, `3.0e+03`."""

_LONE_NUMBER_PATTERN = re.compile(rf"[\"']?{STEP_NUMBER_REGEX}[\"']?")
_STEP_LINE_PATTERN = re.compile(
    r"\s{0,64}[\"']?\w{0,40}(?:step|iter|epoch)\w{0,40}[\"']?\s{0,8}[:=]\s{0,8}[\"']?"
    rf"{STEP_NUMBER_REGEX}[\"']?,?\s{{0,8}}",
    re.IGNORECASE,
)


def parse_step_number(text: str) -> int:
    """The number of a match of STEP_NUMBER_REGEX."""
    return int(float(text)) if "e" in text.lower() else int(re.sub("[,_]", "", text))


def find_lone_number(text: str) -> int | None:
    """The number, if the whole text is one. None otherwise."""
    found = _LONE_NUMBER_PATTERN.fullmatch(text.strip())
    return parse_step_number(found[1]) if found else None


def _find_line_number(line: str) -> int | None:
    found = _STEP_LINE_PATTERN.fullmatch(line)
    return parse_step_number(found[1]) if found else find_lone_number(line)


def mentions_in_json(text: str, there: Collection[str]) -> Mentions | None:
    """Every number and path in an object or array. None if the text is no JSON, or another value."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, (dict, list)):
        return None
    found, waiting = Mentions(), [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            found.add_mentions(mentions_in_text(one, there))
        elif isinstance(one, (int, float)) and not isinstance(one, bool) and one == one // 1 >= 0:
            found.numbers.add(int(one))
    return found


def mentions_in_text(text: str, there: Collection[str]) -> Mentions:
    """The names, paths, URLs with or without a query, and numbers that stand alone in a text."""
    found = Mentions()
    for line in text.splitlines():
        found.add_name(line.strip().strip("\"'"))  # a name may contain a space
        if (number := _find_line_number(line)) is not None:
            found.numbers.add(number)
    for url in _URL_PATTERN.findall(text):
        found.add_path(_without_query(url.partition("://")[2].partition("/")[2]), there)
    for chunk in dict.fromkeys(_WORD_PATTERN.findall(_URL_PATTERN.sub(" ", text))):
        path = _without_query(chunk)
        if _FLOAT.fullmatch(path) or found.add_path(path, there):
            continue
        for part in {*re.split("[=:]", path)} - {path, ""}:
            if not _FLOAT.fullmatch(part):
                found.add_path(part, there)
    return found


def _without_query(path: str) -> str:
    """The path as a server would read it: `step%5F100?version=2#top` is `step_100`."""
    bare = re.split(r"[?#]", path, maxsplit=1)[0].rstrip(".:")
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), bare)


def is_text(head: bytes) -> bool:
    """Whether it is UTF-8 without control characters. A character may be cut at the end."""
    if _CONTROL.search(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True
