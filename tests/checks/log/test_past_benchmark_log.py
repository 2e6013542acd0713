"""MLPerf's marks, in the form of mlperf_logging/mllog/mllog.py of mlcommons/logging."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.checks.log.past_benchmark_log import PastBenchmarkLog
from sentinel.core.run_ledger import LedgerRow
from sentinel.report.run_account import RunAccount, account_run
from tests.checks.log.past_logs import EPOCH
from tests.checks.log.test_past_log import held, seconds
from tests.report.test_properties import check_sums

Mark = tuple[float, str]


def write_marks(marks: Sequence[Mark], status: str = "success") -> str:
    lines = list[str]()
    for at, key in marks:
        metadata = {
            "file": "/workspace/train.py",
            "lineno": 7,
            "samples_count": 512 if at > 99 else 0,
        }
        if key == "run_stop":
            metadata["status"] = status
        told = {
            "namespace": "", "time_ms": round((EPOCH + at) * 1000), "event_type": "INTERVAL_START",
            "key": key, "value": None, "metadata": metadata,
        }  # fmt: skip
        lines.append(f"0: :::MLLOG {json.dumps(told)}\n")
    return "".join(lines)


def account(text: str, starts: Sequence[LedgerRow] = ()) -> RunAccount:
    log = PastBenchmarkLog("llm", "4711", starts)
    log.add_text(text)
    rows = log.finish()
    return account_run(
        "llm", [replace(r, gpus=1) if r.kind == "held" else r for r in rows], 0, 10**17
    )


TRAINING = (
    (0.5, "cache_clear"), (10.25, "init_start"), (10, "init_start"), (40.5, "init_stop"), (40.5, "run_start"),
    (41, "epoch_start"), (100, "eval_start"), (100.5, "eval_start"), (109, "eval_stop"), (109.5, "eval_stop"),
    (200, "eval_start"), (210, "eval_stop"), (210.75, "run_stop"),
)  # fmt: skip


def test_each_part_to_the_millisecond() -> None:
    """Of several ranks the first mark counts, though its line may come later. What comes before init_start is not the training's."""
    told = account(write_marks(TRAINING))
    assert seconds(told) == {"startup": 30.5, "evaluation": 19, "useful": 151.25}
    assert told.interruptions == ()


def test_a_training_that_did_not_reach_its_goal() -> None:
    """Nothing says that its steps are in a model, and one that was cut off was interrupted."""
    assert not account(write_marks(TRAINING, "aborted")).knows_useful
    cut = account(write_marks(TRAINING[:-2]))
    assert not cut.knows_useful
    assert [one.cause for one in cut.interruptions] == ["unknown"]
    assert seconds(cut)["startup"] == 30.5


def test_two_trainings_in_one_file_and_accounting() -> None:
    """Each is a start of its own. Accounting knows the time before the first mark."""
    later = [(at + 1000, key) for at, key in TRAINING]
    both = account(write_marks([*TRAINING, *later]))
    assert seconds(both)["startup"] == 61
    known = account(write_marks(TRAINING), [held(0, 220, "completed")])
    assert seconds(known) == {"startup": 40.5, "evaluation": 19, "useful": 151.25, "idle": 9.25}


def test_marks_alone_count() -> None:
    """Without a run_start there is no training, whatever else stands there."""
    assert PastBenchmarkLog("llm", "1").finish() == ()
    assert account(write_marks(TRAINING[:4])).held == 0
    assert account(":::MLLOG {}\n:::MLLOG" + '"time_ms": 17' * 50).held == 0


KEYS = (
    "init_start",
    "init_stop",
    "run_start",
    "run_stop",
    "eval_start",
    "eval_stop",
    "epoch_start",
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 5000), st.sampled_from(KEYS)), max_size=40))
def test_the_parts_add_up_whatever_the_marks_say(marks: list[Mark]) -> None:
    """Clocks that jump, ends without beginnings."""
    check_sums(account(write_marks(marks)))
    check_sums(account(write_marks(sorted(marks))))
