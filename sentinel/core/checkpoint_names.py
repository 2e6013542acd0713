"""Interprets the name of a checkpoint's file or directory. Pure, standard library only.

This is the only list of the names under which trainers write before they rename, and of the words
with which they number the parts of one step. `clean` and `checkpoint` both use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Each line is one habit of writing under another name until the save is whole:
# - Orbax, MaxText, paxml: `1000.orbax-checkpoint-tmp`, `….orbax-checkpoint-tmp-17`
#   (orbax/checkpoint/_src/path/atomicity.py); t5x: `checkpoint_1000.tmp-1699999999`
# - OLMo: `step1000-tmp`; Hugging Face Trainer 4.37: `tmp-checkpoint-1000`; NeMo-RL: `tmp_step_10`;
#   paxml: `tmp_1699999999.checkpoint_00001000`; flax: `checkpoint_tmp`; Ray: `checkpoint_tmp_ab12`
# - fairseq, demucs and most hand-written loops: `checkpoint.pt.tmp`
# - TensorFlow: `model.ckpt-1.data-00000-of-00001.tempstate123`, `model.ckpt-1_temp_0a1b…`
# - huggingface_hub: `….incomplete`; rclone, curl, browsers: `.partial`, `.part`, `.download`
# - NeMo: `…-unfinished`; hand-written: `.writing`, `.saving`, `.inprogress`, `.new`
# - DLRover: `._dlrover_ckpt_stage`
# - what somebody put aside, or is just being deleted: `.corrupt`, `.broken`, `.deleting`, `.trash`
_STAGING_PATTERN = re.compile(
    r"(?:^|[^a-z0-9])tmp(?:[^a-z]|$)|[-_.]tmp[a-z0-9_]{6,8}$|^_?checkpoint_tmp"
    r"|^\.?_?(?:tmp|temp|temporary|incomplete|partial|unfinished|writing|staging)[-_.]"
    r"|[-_.](?:tmpdir|temp|tempdir|temporary|tempfile|staging|incomplete|partial|unfinished|unfinalized)"
    r"(?:[-_.]?\d+)?$"
    r"|[-_.](?:writing|saving|uploading|downloading|copying|in[-_.]?progress|wip|dirty)$"
    r"|\.(?:part|filepart|download|crdownload|gstmp|new|swp)$|~$"
    r"|\.tempstate\d*|_temp_[0-9a-f]{8,}|orbax-checkpoint-tmp|_ckpt_stage"
    r"|[-_.](?:corrupt|corrupted|broken|failed|bad|deleting|deleted|to[-_]?delete|trash)$"
    # The AWS command line adds eight digits to the name of a download. rsync puts a dot before the
    # name.
    r"|\.(?:pt|pth|ckpt|bin|safetensors|distcp|tar)\.[0-9a-f]{8}$"
    r"|^\..+\.(?-i:(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6})$",
    re.IGNORECASE,
)

# An unfinished save may have the extension of the finished file: `step_100.tmp.pt`,
# `step-100-tmp.ckpt`.
_EXTENSION_PATTERN = re.compile(
    r"\.(?:pt|pth|ckpt|bin|nemo|safetensors|distcp|tar|h5|hdf5|npz|npy|pkl|msgpack|index|json)$",
    re.IGNORECASE,
)

# Numbers of the parts of one step: `-rank3`, `mp_rank_00`, `shard1`, `00001-of-00008`, `__3_0`; and those in
# extensions.
_PART_PATTERN = re.compile(
    r"(?<![a-z])(?:(?:mp|tp|pp|dp|ep|zero|zero_pp)[-_.]?rank|rank|shard|part|worker|process|proc)"
    r"[-_.=]?\d+|(?<!\d)\d{1,12}-of-\d+|^__\d+_\d+(?=\.)"
    r"|\.(?:sha\d{1,4}|md5|crc32|h5|hdf5|t7|bz2|lz4|mp4)(?![a-z0-9])",
    re.IGNORECASE,
)
_BEFORE_PART_PATTERN = re.compile(
    r"(?:^|[^a-z])(?:rank|shard|part|worker|process|proc|of)[-_.=]?$", re.IGNORECASE
)

# Words that say which of several an entry is, or that it is not complete. `best` is not among them:
# several entries may be the best one.
_STATE_WORD_PATTERN = re.compile(
    r"(?<![a-z])(?:last|latest|newest|final|keep|kept|pinned|protected|tmp|temp|temporary|partial|incomplete|unfinished|staging"
    r"|writing|saving|new|dirty|failed|bad|broken)(?![a-z?*{])",
    re.IGNORECASE,
)
_CLASS_PATTERN = re.compile(r"\\.|\[(?:[^\[\]\\]|\\.)*\]")
_GROUP_PATTERN = re.compile(r"\([^()]*\)[*+?]?")

LOG_NAME_PATTERN = re.compile(
    r".*(?:\.(?:log|out|err|stdout|stderr|csv|tsv|jsonl|html|png|jpe?g|svg|pdf|gif|mp4|wav|prof"
    r"|trace|txt)(?:[.-]\d+)*(?:\.(?:gz|xz|bz2|zst))?|tfevents\b.*)",
    re.IGNORECASE,
)
"""Logs, tables and pictures: no training resumes from them, and they are no part of a step."""

# Words of what a training goes on with, in names that do not show their kind by an extension.
_PART_WORD_PATTERN = re.compile(
    r"(?<![a-z])(?:optim|model|weights?|params?|state|ema|adapter|lora|rng|random|sched|scaler|shard|rank|zero)",
    re.IGNORECASE,
)
_WEIGHTS_FILE_PATTERN = re.compile(
    r".*\.(?:safetensors|pt|pth|ckpt|bin|distcp|h5|hdf5|npz|npy|nemo|msgpack|index)"
    r"|.*\.data-\d+-of-\d+",
    re.IGNORECASE,
)
_DOCUMENT_PATTERN = re.compile(
    r".*\.(?:json|ya?ml|toml|ini|cfg|conf|txt|info|meta|md)", re.IGNORECASE
)

# A marker with such a name has content. If it has 0 bytes, the disk was full when it was written.
_HAS_CONTENT_PATTERN = re.compile(
    r".*\.(?:json|ya?ml|toml|pt|pth|bin|ckpt|safetensors|index|pkl|npz|npy|h5|msgpack|distcp)",
    re.IGNORECASE,
)


def is_staging(name: str) -> bool:
    """Whether an entry of that name is not completely written, or was put aside as bad."""
    return (
        _STAGING_PATTERN.search(name) is not None
        or _STAGING_PATTERN.search(_EXTENSION_PATTERN.sub("", name)) is not None
    )


def find_demanded_words(match: str) -> tuple[str, ...]:
    """State words (`last`, `tmp`) that are in every name which the regular expression matches.

    Such a word belongs to the name of the run, as in rl_games' `last_Ant_ep_(\\d+)\\.pth`, and says
    nothing about one entry. A word within a group or beside a `|` is optional, so it is left
    out."""
    text = _CLASS_PATTERN.sub("\0", match)
    while (shorter := _GROUP_PATTERN.sub("\0", text)) != text:
        text = shorter
    return () if "|" in text else tuple(_STATE_WORD_PATTERN.findall(text))


def drop_words(name: str, words: Iterable[str]) -> str:
    """The name without the first occurrence of each of these words."""
    for word in words:
        name = name.replace(word, "", 1)
    return name


_VARYING_PATTERN = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|(?=[a-f]*[0-9])[0-9a-f]{12,})"
    r"(?![0-9A-Za-z])|[0-9]+"
)


def name_form(name: str) -> str:
    """The name with `#` in place of its numbers, and of words that are drawn or are sums (`d/3f2a…` of
    TensorStore's OCDBT): at least twelve hexadecimal digits, or a UUID."""
    return _VARYING_PATTERN.sub("#", name)


def training_form(name: str) -> str:
    """The same of an entry, in which drawn words stay as they are: the id of a run says which training it
    is, and a name that is drawn says nothing (Determined's folders)."""
    return _VARYING_PATTERN.sub(lambda found: "#" if found[0].isdigit() else found[0], name)


def drop_part_numbers(name: str) -> str:
    """The name without the numbers of ranks and shards."""
    return _PART_PATTERN.sub("", name)


def get_unfinished_marker_name(name: str) -> str:
    """The name of the marker that NeMo keeps beside a checkpoint until it is whole
    (nemo/utils/callbacks/nemo_model_checkpoint.py)."""
    stem = name.removesuffix(".nemo").removesuffix(".ckpt").removesuffix("-EMA")
    return f"{stem}-unfinished"


def is_log(name: str) -> bool:
    """Whether a file of that name is a log, a table or a picture."""
    return LOG_NAME_PATTERN.fullmatch(name) is not None


def is_weights_file(name: str) -> bool:
    """Whether a file of that name may hold weights or the state of an optimizer."""
    return _WEIGHTS_FILE_PATTERN.fullmatch(name) is not None


def may_be_part(name: str) -> bool:
    """Whether an entry beside a step of its number may be a part that the training needs."""
    if is_weights_file(name):
        return True
    described = is_log(name) or is_description(name)
    return not described and _PART_WORD_PATTERN.search(name) is not None


def is_description(name: str) -> bool:
    """Whether a file of that name is a configuration or a description."""
    return _DOCUMENT_PATTERN.fullmatch(name) is not None


def needs_content(marker: str) -> bool:
    """Whether a marker of that name proves nothing if it has 0 bytes."""
    return _HAS_CONTENT_PATTERN.fullmatch(marker) is not None


def parse_step_numbers(name: str) -> tuple[int, ...]:
    """The numbers in a name, without those of ranks and shards. They are the same in all parts of
    one step."""
    return tuple(int(digits) for digits in re.findall(r"[0-9]+", drop_part_numbers(name)))


def is_part_number(name: str, start: int) -> bool:
    """Whether the number that begins at `start` counts ranks or shards, and no steps."""
    return _BEFORE_PART_PATTERN.search(name[:start]) is not None
