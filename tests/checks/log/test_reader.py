"""What a log says is found out in a child, which has limits; the service's interpreter is free."""

import importlib
import re
import time
from pathlib import Path

import pytest

from sentinel.checks import text_child as module
from sentinel.checks.log.reader import LogReader
from sentinel.checks.log.scan import LogPatterns, merge_phases, scan_text
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.errors import CannotTell
from sentinel.core.patterns import compile_pattern

LOG = "step 1 loss: 2.5\nstep 2 loss: nan\nRuntimeError: CUDA error: an illegal access\n"


def patterns(*own: str) -> LogPatterns:
    """As a check makes them."""
    finder = TroubleFinder({f"own {n}": compile_pattern(text) for n, text in enumerate(own)}, [])
    numbers = {"step": re.compile(r"step (\d+)")}
    return LogPatterns(numbers=numbers, phases=merge_phases({}), loss=None, finder=finder)


@pytest.fixture(autouse=True)
def _nothing_rests() -> None:
    module._resting.clear()


def test_a_child_finds_what_is_found_here() -> None:
    with LogReader(in_child=True) as reader:
        found = reader.scan_text(LOG, patterns(), "/logs/a", "node-1")
        known = reader.recognise_log("/logs/a", LOG)
        assert reader.follow_lines("/logs/a", None, LOG, "") == known
    here = scan_text(LOG, patterns(), "/logs/a", "node-1")
    assert [repr(event) for event in found] == [repr(event) for event in here]  # NaN is not NaN
    assert known == LogReader(in_child=False).recognise_log("/logs/a", LOG)


def test_what_a_function_refuses_is_told_as_here() -> None:
    with LogReader(in_child=True) as reader, pytest.raises(CannotTell, match="is no file of W&B"):
        reader.read_metrics("/logs/run.wandb", b"none" * 10, 0, False)


def test_a_log_that_exceeds_the_limit_is_unknown_by_its_name_and_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "WAIT_LIMIT_S", 0.001)
    with LogReader(in_child=True) as reader:
        with pytest.raises(CannotTell, match=r"/logs/evil could not be read within"):
            reader.scan_text(LOG * 5000, patterns(), "/logs/evil", "")
        began = time.monotonic()
        with pytest.raises(CannotTell, match=r"/logs/evil .* it is read again in 15m|14m"):
            reader.refuse_resting_log("/logs/evil")
        assert time.monotonic() - began < 1
        monkeypatch.setattr(module, "WAIT_LIMIT_S", 60.0)
        assert reader.scan_text(LOG, patterns(), "/logs/good", "")  # by another child


def test_the_start_of_the_child_does_not_count_for_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy node its imports take longer than most logs."""
    slow = tmp_path / "slow_to_import.py"
    slow.write_text("import time\ntime.sleep(1.5)\ndef count(text): return len(text)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    count = importlib.import_module("slow_to_import").count
    monkeypatch.setattr(module, "WAIT_LIMIT_S", 1.0)
    module.close_idle_children()
    with module.TextReader(in_child=True) as reader:
        assert reader.ask("/logs/good", count, int, "12345") == 5


def test_what_counts_is_the_processor_time_of_a_text_and_not_the_load_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that waits for its turn is answered. One that computes without end is ended."""
    asked = tmp_path / "questions.py"
    asked.write_text(
        "import time\n"
        "def wait(text): time.sleep(2.5); return len(text)\n"
        "def compute(text):\n    while True: pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    questions = importlib.import_module("questions")
    monkeypatch.setattr(module, "READ_LIMIT_S", 1.0)
    module.close_idle_children()
    with module.TextReader(in_child=True) as reader:
        assert reader.ask("/logs/good", questions.wait, int, "12345") == 5
        with pytest.raises(CannotTell, match=r"/logs/evil could not be read within 1 s of proc"):
            reader.ask("/logs/evil", questions.compute, int, "12345")
    module.close_idle_children()


def test_a_child_that_does_not_start_says_nothing_against_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "START_LIMIT_S", 0.001)
    module.close_idle_children()
    with module.TextReader(in_child=True) as reader:
        with pytest.raises(CannotTell, match=r"/logs/good was not read: .* did not start"):
            reader.ask("/logs/good", len, int, "12345")
        reader.refuse_resting_log("/logs/good")
        monkeypatch.undo()
        assert reader.ask("/logs/good", len, int, "12345") == 5


def test_all_questions_of_a_run_have_a_limit_together() -> None:
    """What there was no time for is unknown by its name, and is asked for in the next run."""

    def read_for_ever(reader: LogReader) -> None:
        while True:
            reader.scan_text(LOG, patterns(), "/logs/b", "")

    with (
        LogReader(in_child=True, total_s=2.0) as reader,
        pytest.raises(CannotTell, match=r"/logs/b was not read( to its end)?: "),
    ):
        read_for_ever(reader)
    with (
        LogReader(in_child=True, total_s=0.0) as reader,
        pytest.raises(CannotTell, match=r"/logs/b was not read: other logs took all the time"),
    ):
        reader.scan_text(LOG, patterns(), "/logs/b", "")
    with LogReader(in_child=True) as reader:
        assert reader.scan_text(LOG, patterns(), "/logs/b", "")


def test_memory_has_a_limit() -> None:
    """Where even the words for it find no room, the child ends without a word."""
    with LogReader(in_child=True, max_memory_bytes=2**28) as reader:
        with pytest.raises(CannotTell, match=r"/logs/evil could not be read .* the memory for it"):
            reader.scan_text("a" * 2**27, patterns(), "/logs/evil", "")
        assert reader.scan_text(LOG, patterns(), "/logs/good", "")


def test_the_child_is_kept_for_the_next_run_unless_it_has_ended() -> None:
    """To start one takes longer than to look at twenty new lines."""
    with LogReader(in_child=True) as reader:
        reader.scan_text(LOG, patterns(), "/logs/a", "")
        first = reader._child
    with LogReader(in_child=True) as reader:
        reader.scan_text(LOG, patterns(), "/logs/a", "")
        assert first is not None
        assert reader._child is first
    first.end_child()
    with LogReader(in_child=True) as reader:
        assert reader.scan_text(LOG, patterns(), "/logs/a", "")
        assert reader._child is not first
