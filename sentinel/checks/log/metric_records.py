"""Splits files of metrics into their records: TensorBoard's event files (TFRecord) and W&B's offline
files (blocks of LevelDB's log). Pure, and run in the child that reads texts.

A file is read from the middle, cut at its end, and written by others, so every length is checked
before it is believed."""

from struct import Struct as Layout
from zlib import crc32

from msgspec import Struct

MAX_RECORD_BYTES = 2**16
"""A longer record is skipped: pictures, histograms and graphs hold no step that others lack."""

_TF_HEADER = Layout("<QI")
_TF_FOOTER_BYTES = 4
_MASK_DELTA = 0xA282EAD8
BLOCK_BYTES = 2**15
WANDB_IDENT = b":W&B"
_WANDB_HEADER_BYTES = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_CHUNK_HEADER = Layout("<IHB")


def _make_crc32c_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC32C_TABLE = _make_crc32c_table()


class SplitRecords(Struct, frozen=True):
    """The records, and how many bytes they and what was skipped take. The rest is not whole yet."""

    records: list[bytes]
    size: int


def compute_masked_crc32c(data: bytes) -> int:
    """The checksum of TFRecord: CRC-32C, rotated and shifted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def split_tfrecords(data: bytes) -> SplitRecords:
    """The records of an event file. Where none begins, the next beginning is searched."""
    records, at = list[bytes](), 0
    while at + _TF_HEADER.size <= len(data):
        length = _read_tf_length(data, at)
        if length is None:
            at = _find_tf_header(data, at + 1)
            continue
        begin = at + _TF_HEADER.size
        end = begin + length + _TF_FOOTER_BYTES
        if end > len(data):
            break
        body = data[begin : begin + length]
        told = int.from_bytes(data[begin + length : end], "little")
        if length <= MAX_RECORD_BYTES and compute_masked_crc32c(body) == told:
            records.append(body)
        at = end
    return SplitRecords(records, min(at, len(data)))


def _read_tf_length(data: bytes, at: int) -> int | None:
    """The length of the record that begins here. None if no record begins here."""
    length, told = _TF_HEADER.unpack_from(data, at)
    if not 0 < length < 2**32 or compute_masked_crc32c(data[at : at + 8]) != told:
        return None
    return int(length)


def _find_tf_header(data: bytes, at: int) -> int:
    """Where the next record may begin: the upper half of its length is zero."""
    while (found := data.find(b"\0\0\0\0", at + 4)) >= 0:
        at = found - 4
        if at + _TF_HEADER.size > len(data):
            return at
        if _read_tf_length(data, at) is not None:
            return at
        at += 1
    return max(at, len(data) - _TF_HEADER.size + 1)


def split_wandb_records(data: bytes, start: int) -> SplitRecords:
    """The records of a W&B file from position `start` on, which need not be the beginning of one."""
    at, is_open = 0 if start else _WANDB_HEADER_BYTES, False
    records, whole, parts = list[bytes](), 0, list[bytes]()
    while at + _CHUNK_HEADER.size <= len(data):
        left = BLOCK_BYTES - (start + at) % BLOCK_BYTES
        if left < _CHUNK_HEADER.size:
            at += left
            continue
        told, length, kind = _CHUNK_HEADER.unpack_from(data, at)
        end = at + _CHUNK_HEADER.size + length
        if not _FULL <= kind <= _LAST or length > left - _CHUNK_HEADER.size:
            if at + left > len(data):
                break
            at, is_open = at + left, False  # damaged, or not written yet: the next block
            whole = at
            continue
        if end > len(data):
            break
        body = data[at + _CHUNK_HEADER.size : end]
        sound = crc32(bytes([kind]) + body) == told
        at = end
        if not sound or kind in (_FULL, _FIRST):
            parts, is_open = [], sound
        if is_open:
            parts.append(body)
        if kind in (_FULL, _LAST) or not is_open:
            if is_open and sum(map(len, parts)) <= MAX_RECORD_BYTES:
                records.append(b"".join(parts))
            parts, is_open, whole = [], False, at
    return SplitRecords(records, whole)
