"""What the text of a file names: names of checkpoints, numbers of steps. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from sentinel.core.checkpoint_names import is_log, parse_step_numbers

# A file with one of these words in its name may say where a run begins again.
_POINTING_WORDS = (
    r"last|latest|recent|newest|current|best|better|lowest|highest|smallest|largest|greatest|least"
    r"|min|max|minimum|maximum|minimal|maximal|optimal|optimum|top|champion|winner|final|resumes?"
    r"|restore|restart|checkpointed|pointers?|tracker|keep|kept|pinned|protected"
)
# So may one with these, unless it is itself a part of what `match` means.
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

_STRUCTURED = re.compile(r".*\.(?:ya?ml|toml|ini|cfg|conf)", re.IGNORECASE)
_WEIGHTS = re.compile(
    r".*\.(?:safetensors|pt|pth|ckpt|bin|nemo|h5|hdf5|npz|npy|pkl|pickle|msgpack|gguf|onnx|tar|t7"
    r"|params|model|weights|pdparams|pdopt|distcp|mar|th|joblib|zip|tgz|gz|zst)",
    re.IGNORECASE,
)


class Mentions:
    """What a text may name. `names`: whole names; `prefixes`: with what a name may begin;
    `numbers`: of steps."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.prefixes: set[str] = set()
        self.numbers: set[int] = set()

    def covers_name(self, name: str) -> bool:
        """Whether that name is meant, or may be."""
        return (
            name in self.names
            or not self.numbers.isdisjoint(parse_step_numbers(name))
            or (
                bool(self.prefixes) and any(part in self.prefixes for part in name_beginnings(name))
            )
        )

    def add_mentions(self, other: Mentions) -> None:
        """What another text names as well."""
        self.names |= other.names
        self.prefixes |= other.prefixes
        self.numbers |= other.numbers

    def add_name(self, path: str) -> list[str]:
        """A path, or a name alone; returns its parts."""
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        self.names.update(parts)
        for part in parts:
            name = part[
                :MAX_NAME_BYTES
            ]  # no file has a longer one: its beginning is all that counts
            if name.isascii() and name.isdigit():
                self.numbers.add(int(name))
            elif _DIGIT.search(name):
                self.prefixes.add(part)
                self.names.update(begin for begin in name_beginnings(name) if _DIGIT.search(begin))
        return parts

    def add_path(self, path: str, there: Collection[str]) -> bool:
        """The same; whether something in `there` has that very name. Where nothing has, its number
        counts: `ckpt-100` and `ckpt-100/weights` then mean `model_000100.pt`."""
        parts = self.add_name(path)
        if any(part in there for part in parts):
            return True
        numbered = next((part for part in reversed(parts[-2:]) if _DIGIT.search(part)), "")
        if len(numbered) < MAX_NAME_BYTES and not _SPACE.search(numbered):
            self.numbers.update(parse_step_numbers(_FLOAT_VALUE.sub(" ", numbered)))
        return False


def name_beginnings(name: str) -> Iterator[str]:
    """What a name begins with, cut where no word and no number is cut in two; the whole name last.

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
    """Whether a file of that name means nothing else: where its content cannot be understood,
    something is named that nobody knows."""
    return _CERTAIN_PATTERN.search(_CAMEL_PATTERN.sub("_", name)) is not None and not is_flag(name)


def is_flag(name: str) -> bool:
    """Whether an empty file of that name says all that it has to say."""
    return _FLAG_PATTERN.fullmatch(name) is not None


def is_structured(name: str) -> bool:
    """Whether a file of that name is a configuration of several lines."""
    return _STRUCTURED.fullmatch(name) is not None


def is_weights(name: str, head: bytes, size: int, longest: int) -> bool:
    """Whether a file is a checkpoint itself, by how it begins or, where it is longer than any path
    (`longest`), by its name or because it is no text."""
    if head.startswith(b"PK\x03\x04"):  # torch.save(), numpy.savez()
        return True
    if len(head) > 8 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return True  # safetensors: the length of its header, then the header
    if size <= longest:
        return False
    return _WEIGHTS.fullmatch(name) is not None or not is_text(head)


def is_log_file(name: str) -> bool:
    """Whether it is a log by its name; a `.txt` is whatever somebody wrote into it."""
    return is_log(name) and not name.lower().endswith(".txt")


def mentions_in_json(text: str, there: Collection[str]) -> Mentions | None:
    """Every number and path of an object or array; None where it is neither."""
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
    """Whatever the words of a text may name: names, paths, URLs with or without a query, numbers
    that stand alone."""
    found = Mentions()
    for line in text.splitlines():
        found.add_name(line.strip().strip("\"'"))  # a name may have a space in it
    for url in _URL_PATTERN.findall(text):
        found.add_path(_without_query(url.partition("://")[2].partition("/")[2]), there)
    for chunk in _WORD_PATTERN.findall(_URL_PATTERN.sub(" ", text)):
        path = _without_query(chunk)
        if _FLOAT.fullmatch(path) or found.add_path(path, there):
            continue
        for part in re.split("[=:]", path):
            if part != path and not _FLOAT.fullmatch(part):
                found.add_path(part, there)
    return found


def _without_query(path: str) -> str:
    """As a server would look for it: `step%5F100?version=2#top` is `step_100`."""
    bare = re.split(r"[?#]", path, maxsplit=1)[0].rstrip(".:")
    return re.sub("%([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), bare)


def is_text(head: bytes) -> bool:
    """Whether it is UTF-8 without control characters; a character may be cut at its end."""
    if _CONTROL.search(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True
