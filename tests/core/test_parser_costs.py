"""A line of a foreign text costs what any line of its length costs, whichever parser reads it.

The parsers are found in the source by the name and type of their first argument, so that a new one is in
the test with its first commit. Their texts are made of the words of their own module and of what may
stand between these; the dearest are tried with 1 MiB. What is compared is processor time of this thread,
the quickest of several, in costs of 1 MiB of plain lines in the same process.
"""

import pytest

from benchmarks.bench_redos import GOAL, PLAIN
from sentinel.checks.log.losses import find_losses
from tests.core.our_parsers import (
    SIZES,
    OurParser,
    cost_of_parser,
    find_parsers,
    make_text,
    measure_seconds,
)

REACHED_BY_OTHERS = {
    "sentinel.checks.job.done.find_last_match": "a pattern of the configuration",
    "sentinel.checks.log.ask.ask_flight_recorder": "reads a path, and the dumps by `read_recording`",
    "sentinel.checks.log.earlier_jobs.learn_from_log": "by `scan_text`",
    "sentinel.checks.log.loss_names.find_loss_name": "by `find_losses`",
    "sentinel.checks.log.loss_names.find_phase_name": "by `find_losses`",
    "sentinel.checks.log.new_lines.find_new_lines": "by `scan_text`",
    "sentinel.checks.log.packed_patterns.has_number_in_text": "a pattern that `recognise_log` made",
    "sentinel.checks.log.packed_patterns.learn_packed": "by `scan_text`",
    "sentinel.checks.log.packed_patterns.reconsider_text": "by `recognise_log`",
    "sentinel.checks.log.packed_patterns.scan_packed": "by `scan_text`",
    "sentinel.checks.log.scan.scan_text": "stands in `log_parsers` of the benchmark",
    "sentinel.checks.quota.tools.command.from_text": "a pattern of the configuration",
    "sentinel.clean.hints.read_hint": "at most a few KiB, by `mentions_in_bytes`",
    "sentinel.core.struct_types.decode_msgpack": "msgspec, by whoever stores what it reads",
    "sentinel.nodes.frame.unframed": "looks for a random mark alone",
    "sentinel.nodes.probe.parse.parse": "looks for a random mark; its parts are read by `sections`",
    "sentinel.slurm.slurmctld_log.erased_reasons": "by `node_entries`",
}
"""Parsers whose further arguments are no plain values, with who else is tried in their place."""

LOG_PARSERS = 3  # the last ones: all words of all trainers and troubles
PARTS = 12


def test_every_parser_is_known() -> None:
    """Who writes one with an argument that is no plain value says how else it is tried."""
    known, others = find_parsers()
    assert others == set(REACHED_BY_OTHERS)
    assert len(known) > 150


def _measure_plain() -> float:
    scan = find_parsers()[0][-LOG_PARSERS]
    return min(measure_seconds(scan.parse, make_text("", PLAIN, SIZES[2])) for _ in range(3))


def _find_dear(parsers: list[OurParser], plain: float | None) -> list[str]:
    dear = []
    for one in parsers:
        cost = cost_of_parser(one, plain)
        if cost.times_plain > GOAL:
            dear.append(f"{one.name} costs {cost.times_plain:.1f} plain lines on {cost.text}")
    return dear


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_text_is_dear_to_a_parser(part: int) -> None:
    """Beside a plain line as a log is scanned: few parsers cost that much for any text."""
    parsers = find_parsers()[0][:-LOG_PARSERS][part::PARTS]
    dear = _find_dear(parsers, _measure_plain())
    if (
        dear
    ):  # another process may have slowed them alone: both are measured anew, beside each other
        again = [one for one in parsers if any(text.startswith(f"{one.name} ") for text in dear)]
        dear = _find_dear(again, _measure_plain())
    assert dear == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(LOG_PARSERS))
def test_no_line_of_a_log_is_dear(number: int) -> None:
    """Beside a plain line as the same parser reads it."""
    assert _find_dear([find_parsers()[0][number - LOG_PARSERS]], None) == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_measure_finds_a_dear_one() -> None:
    """One that looks again for what it found already, and one that never ends."""

    def again(text: str) -> None:
        for _ in range(8):
            find_losses(text)

    squared = OurParser("squared", lambda text: [text.count("a=", n) for n in range(len(text))], ())
    twice = OurParser("again", again, ("loss", "nan"))
    assert len(_find_dear([squared, twice], 0.15)) == 2
