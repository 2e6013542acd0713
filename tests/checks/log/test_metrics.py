"""Files of metrics: the records of the real writers, what is damaged, and what the check makes of them.

`recorded/` holds an event file of tensorboardX 2.6.5 and an offline file of wandb 0.31.0, five steps
each, with a loss that is NaN in the last one."""

import json
import os
import random
import re
import tempfile
from pathlib import Path
from struct import pack

import pytest

from sentinel.checks.log import Log
from sentinel.checks.log.metric_points import MAX_NAME_CHARS, MAX_VALUES, read_json_line
from sentinel.checks.log.metric_records import (
    BLOCK_BYTES,
    compute_masked_crc32c,
    split_tfrecords,
    split_wandb_records,
)
from sentinel.checks.log.metric_text import read_metrics
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from tests.checks.log.test_check import Watch, mine

RECORDED = Path(__file__).parent / "recorded"
EVENTS = RECORDED / "events.out.tfevents.1795820788.host"
WANDB = RECORDED / "run-nvo9w1jq.wandb"


def frame(body: bytes) -> bytes:
    """A TFRecord."""
    size = pack("<Q", len(body))
    return (
        size
        + pack("<I", compute_masked_crc32c(size))
        + body
        + pack("<I", compute_masked_crc32c(body))
    )


def event(step: int, loss: float, tag: bytes = b"train/loss") -> bytes:
    """An `Event` with one number."""
    value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + pack("<f", loss)
    summary = b"\x0a" + bytes([len(value)]) + value
    number, steps = step & 2**64 - 1, bytearray()
    while number > 127:
        steps.append(number & 127 | 128)
        number >>= 7
    steps.append(number)
    return frame(
        b"\x09"
        + pack("<d", 1.8e9)
        + b"\x10"
        + bytes(steps)
        + b"\x2a"
        + bytes([len(summary)])
        + summary
    )


def lines(path: Path) -> list[str]:
    return read_metrics(path.read_bytes(), str(path), 0).text.splitlines()


def test_the_event_file_of_tensorboardx() -> None:
    found = lines(EVENTS)
    assert found[:2] == ["step 0", "train/loss: 3"]
    assert found[-6:-4] == ["step 40", "train/loss: nan"]
    shown = read_metrics(EVENTS.read_bytes(), str(EVENTS), 0).shown
    assert shown == {"mfu": pytest.approx(0.41), "tokens_per_second": 12385.0}


def test_the_offline_file_of_wandb() -> None:
    found = lines(WANDB)
    steps = [line for line in found if line.startswith("step ")]
    assert steps == [f"step {n}" for n in range(0, 50, 10)]
    last = found[found.index("step 40") :]
    assert {"train/loss: nan", "nested/tokens_per_sec: 140"} <= {*last}


def test_a_scalar_that_is_a_tensor() -> None:
    """tf.summary.scalar writes a TensorProto: DT_FLOAT, its bytes as tensor_content."""
    tensor = b"\x08\x01\x22\x04" + pack("<f", 2.5)
    value = b"\x0a\x04loss\x42" + bytes([len(tensor)]) + tensor
    body = b"\x10\x07\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value
    assert read_metrics(frame(body), "tfevents", 0).text == "step 7\nloss: 2.5\n"


def test_json_lines() -> None:
    text = '{"step": 3, "loss": NaN, "perf": {"MFU (%)": 41.5}}\n{"step": 4, "loss": 2, "note": "x"}\n{"ste'
    found = read_metrics(text.encode(), "/x/metrics.jsonl", 0)
    tail = read_metrics(text.encode()[9:], "/x/metrics.jsonl", 9, is_cut=True)
    assert tail.text == "step 4\nloss: 2\n"
    assert found.text == "step 3\nloss: nan\nperf/MFU_(%): 41.5\nstep 4\nloss: 2\n"
    assert found.shown == {"mfu": 41.5}
    assert text.encode()[found.size :] == b'{"ste'


def test_names_within_a_long_name_take_no_memory() -> None:
    """Each number within an object begins with its name: 1 MiB of this took 79 s and 2 GB. The step
    behind it is found."""
    inner = {f"{number:x}": 1 for number in range(300)}
    point = read_json_line(
        json.dumps({"A" * 30_000: {"a": inner, "b": inner, "c": inner}, "step": 7})
    )
    assert point is not None
    assert point.step == 7
    assert len(point.values) <= MAX_VALUES
    assert max(map(len, point.values)) <= MAX_NAME_CHARS


def test_a_long_line_of_json_is_whole() -> None:
    """verl and others write more than a hundred numbers a step."""
    many = {f"critic/number_{n}": n for n in range(300)}
    text = json.dumps({**many, "step": 5}) + "\n"
    assert len(text) > 4096
    assert read_metrics(text.encode(), "m.jsonl", 0).text.startswith("step 5\n")


@pytest.mark.parametrize("path", [EVENTS, WANDB])
def test_every_cut_reads_on_where_it_stopped(path: Path) -> None:
    """Wherever a writer has been met in the middle, both parts together tell what the whole does."""
    data, whole = path.read_bytes(), lines(path)
    for cut in range(0, len(data), 7):
        first = read_metrics(data[:cut], path.name, 0)
        second = read_metrics(data[first.size :], path.name, first.size)
        assert (first.text + second.text).splitlines() == whole, cut


def test_the_end_of_a_long_event_file_is_found() -> None:
    data = b"".join(event(step, 2.0) for step in range(100))
    for start in range(1, 120):
        assert read_metrics(data[start:], "tfevents", start).text.endswith(
            "step 99\ntrain/loss: 2\n"
        )


def test_the_end_of_a_long_wandb_file_is_found() -> None:
    """From the middle of a block, the next block is read; a record over two blocks is whole."""
    from zlib import crc32

    def chunk(kind: int, body: bytes) -> bytes:
        return pack("<IHB", crc32(bytes([kind]) + body), len(body), kind) + body

    record = b"\x12\x1b\x0a\x13\x0a\x04loss\x82\x01\x0a2.50000000\x12\x04\x08\xe8\x07\x10"
    record = b"\x12" + bytes([len(record) - 3]) + record[2:-1]
    filler = chunk(1, bytes(BLOCK_BYTES - 7 - 7 - 20))
    data = b":W&B" + bytes(3) + filler
    left = BLOCK_BYTES - len(data) - 7
    data += chunk(2, record[:left]) + chunk(4, record[left:])
    assert split_wandb_records(data, 0).records[-1] == record
    assert split_wandb_records(data[100:], 100).records == []
    assert split_wandb_records(data, 0).size == len(data)


@pytest.mark.parametrize("path", [EVENTS, WANDB])
def test_damage_ends_no_reading(path: Path) -> None:
    data, chance = path.read_bytes(), random.Random(7)
    for _ in range(300):
        hurt = bytearray(data)
        for _ in range(chance.randint(1, 5)):
            hurt[chance.randrange(len(hurt))] = chance.randrange(256)
        try:
            found = read_metrics(bytes(hurt), path.name, chance.choice([0, 3, BLOCK_BYTES]))
        except CannotTell:
            continue
        assert 0 <= found.size <= len(hurt)


def test_holes_hold_no_record() -> None:
    for name in ("tfevents", "a.wandb"):
        assert read_metrics(bytes(2**20), name, 2**30).text == ""
    assert split_tfrecords(bytes(2**20)).size > 2**20 - 32


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.wandb", b"PK\x03\x04" + bytes(9), "is no file of W&B"),
        ("events.out.tfevents.1", b"x" * 5000, "is no event file"),
        ("metrics.jsonl", b"step 1\nstep 2\n", "its lines are no JSON objects"),
    ],
)
def test_another_form_than_the_name_says(name: str, data: bytes, why: str) -> None:
    with pytest.raises(CannotTell, match=why):
        read_metrics(data, f"/x/{name}", 0)


def watch(folder: Path, *names: str, **settings: object) -> Watch:
    """A job whose output says nothing, with files of metrics."""
    output = folder / "output"
    output.write_text("nothing\n")
    return Watch(
        mine(name="train"),
        job="train",
        path=FilePath(output),
        metrics=[FilePath(folder / name) for name in names],
        **settings,
    )


def test_a_step_that_stands_still_is_a_hang(tmp_path: Path) -> None:
    events = tmp_path / "events.out.tfevents.1.h"
    events.write_bytes(event(1, 3.0))
    one = watch(tmp_path, "events.out.tfevents.*")
    assert one.look().status is Status.OK
    for step in (2, 3):
        with events.open("ab") as file:
            file.write(event(step, 2.5))
        moving = one.look(5)
    assert (moving.status, moving.summary) == (Status.OK, "at step 3, advancing")
    with events.open("ab") as file:
        file.write(event(3, 2.5) + event(4, 2.5)[:20])  # the same step again, and half a record
    assert one.look(5).status is Status.OK
    hung = one.look(6)
    assert (hung.status, hung.summary) == (
        Status.CRITICAL,
        "no progress for 11m, still at step 3 (limit 10m)",
    )
    with events.open("ab") as file:
        file.write(event(4, 2.5)[20:])
    assert one.look(1).summary == "at step 4, advancing"


def test_the_output_may_grow_while_the_training_hangs(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 1}\n{"step": 2}\n')
    one = watch(tmp_path, "metrics.jsonl")
    one.look()
    metrics.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n')
    one.look(1)
    (tmp_path / "output").write_text("nothing\nretry\n")
    assert one.look(11).status is Status.CRITICAL


def test_numbers_and_losses(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(
        "".join(
            json.dumps({"step": n, "loss": float("nan"), "mfu": 0.4, "tps": 99}) + "\n"
            for n in range(5)
        )
    )
    report = watch(tmp_path, "m.jsonl").report()
    first, *more = report.findings
    assert (first.values["mfu"], first.values["tokens_per_second"]) == (0.4, 99)
    assert {s.name: s.value for s in report.samples}["mfu"] == 0.4
    assert [(f.subject, f.status) for f in more] == [("train loss", Status.CRITICAL)]


def test_a_newer_file_goes_on_and_may_go_back(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(event(90, 1.0) + event(100, 1.0))
    one = watch(tmp_path, "events.out.tfevents.*")
    one.look()
    (tmp_path / "events.out.tfevents.2").write_bytes(event(80, 1.0))
    os.utime(tmp_path / "events.out.tfevents.1", (1, 1))
    assert one.look(9).summary == "at step 80, advancing"


def test_a_file_that_has_ended_is_given_up_for_one_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 500}\n')
    (tmp_path / "b.jsonl").write_text('{"step": 1}\n')
    one = watch(tmp_path, "a.jsonl", "b.jsonl")
    one.look()
    for step in range(2, 6):
        with (tmp_path / "b.jsonl").open("a") as file:
            file.write(f'{{"step": {step}}}\n')
        assert one.look(9).status is Status.OK


def test_no_file_yet_and_none_ever(tmp_path: Path) -> None:
    one = watch(tmp_path, "*.wandb")
    one.look()
    assert one.look(11).summary.startswith("no step is in the files of `metrics`, for 11m now")


@pytest.mark.parametrize("output", ["/dev/null", "gone"])
def test_an_output_that_says_nothing_is_no_trouble(tmp_path: Path, output: str) -> None:
    (tmp_path / "m.jsonl").write_text('{"step": 1}\n')
    one = watch(tmp_path, "m.jsonl")
    (tmp_path / "output").unlink()
    if output != "gone":
        (tmp_path / "output").symlink_to(output)
    assert one.look().status is Status.OK
    hung = one.look(11).summary
    assert hung.startswith("no progress for 11m, still at step 1 (limit 10m)")
    assert ("errors in it go unseen" in hung) is (output != "gone")


def test_a_fifo_and_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.jsonl")
    refused = watch(tmp_path, "m.jsonl").look()
    assert refused.status is Status.UNKNOWN
    assert "m.jsonl is a" in refused.summary
    assert "not a log; name a regular file" in refused.summary


def test_twenty_gigabytes_cost_a_mebibyte(tmp_path: Path) -> None:
    events = tmp_path / "events.out.tfevents.1"
    with events.open("wb") as file:
        file.write(event(1, 3.0))
        file.truncate(20 * 10**9)
        file.seek(0, os.SEEK_END)
        file.write(event(7, 3.0))
    assert watch(tmp_path, "events.out.tfevents.1").look().values["progress"] == 7


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"job": "a", "metrics": ["m.jsonl"]}, "no absolute path"),
        ({"path": "/x", "metrics": ["/y/%j.jsonl"]}, "depends on a job"),
        ({"match": "a", "metrics": ["/y/m.jsonl"]}, "one of many trainings"),
        ({"job": "a", "metrics": ["/y/m.jsonl"], "progress": "growth"}, "looks at no step"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, object], why: str) -> None:
    if "match" in settings:
        settings = {**settings, "match": re.compile(str(settings["match"]))}
    with pytest.raises(Invalid, match=why):
        Log(**settings)  # type: ignore[arg-type]


@pytest.mark.root
def test_with_the_rights_of_the_jobs_user(tmp_path: Path) -> None:
    """A link to a file that the job's user may not read gives nothing of it away."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "train.jsonl").write_text('{"step": 3}\n')
        (folder / "secret").write_text('{"step": 9}\n')
        (folder / "secret").chmod(0o600)
        (tmp_path / "output").write_text("nothing\n")
        theirs = mine(name="train", user="nobody")
        one = Watch(theirs, job="train", path=FilePath(tmp_path / "output"), users=["nobody"],
                    metrics=[FilePath(folder / "%x.jsonl")])  # fmt: skip
        assert one.look().values["progress"] == 3
        (folder / "train.jsonl").unlink()
        (folder / "train.jsonl").symlink_to(folder / "secret")
        refused = one.look(1)
    assert refused.status is Status.UNKNOWN
    assert "cannot be read as nobody: Permission denied" in refused.summary
