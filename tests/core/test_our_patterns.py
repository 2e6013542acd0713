"""No text that a user writes costs more than any other text of its length.

The patterns are found in the source, so a new one is in the test with its first commit. What the
rule for people's patterns (`sentinel.core.pattern_rules.harmless`) does not prove is measured on texts
that are made from the pattern itself: seconds of this thread on the processor, against a plain
pattern on a plain line in the same moment, and how they grow with the text.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from sentinel.channels import smtp
from sentinel.checks.log.advancing_numbers import _WORD_PATTERN, _make_number_pattern
from sentinel.checks.log.losses import _OWN_REGEX
from sentinel.checks.log.progress_words import PROGRESS_WORD_PATTERN, WEAK_WORD_PATTERN
from sentinel.checks.log.table_columns import find_counted_columns
from sentinel.checks.log.trainers import TRAINERS, Trainer
from sentinel.checks.sensor_remedies import _PARTS
from sentinel.core import hostlist
from sentinel.core.checkpoint_names import LOG_NAME_PATTERN
from sentinel.core.pattern_rules import is_harmless
from tests.core.our_patterns import (
    ROOT,
    OurPattern,
    compiled_in_modules,
    cost_of,
    found,
)

TIMES_PLAIN = 30
"""What the hardest text may cost, in costs of a plain one, where a longer one costs more."""

MOST_TIMES_PLAIN = 150
"""And where it does not: a repetition of at most 60 characters begins anew at each place."""

GROWTH = 3.0
"""A pattern that begins anew at each place of a line has one of about 8, any other one of 1."""

ITS_OWN_CONFIGURATION = {
    "sentinel.core.pattern_rules": "patterns of the configuration, of at most 10,000 characters",
    "sentinel.config.display": "an address of a database, from the configuration",
    "sentinel.wiring.last_good": "the line `state:` of the configuration",
}
"""Modules whose patterns see only what the operator wrote, with what that is."""

ELSEWHERE = {
    ("sentinel.alerting.matchers", "translate(text)"): "wildcards of the configuration",
    ("sentinel.core.lazy_pattern", "*self._given"): "what `lazy_pattern` was given, which is found",
    ("sentinel.clean.rules", "match"): "a pattern of the configuration",
    ("sentinel.cli.add", "pattern"): "wildcards that a person typed, in their own command",
    (
        "sentinel.checks.log.wish_number",
        "pattern",
    ): "a user's own pattern, guarded, with a time limit",
    ("sentinel.core.pattern_rules", "text"): "a part of a pattern, on one character",
    ("sentinel.core.patterns", "text"): "this is where people's patterns are proven or guarded",
}

_HOSTLIST_ITEMS = (hostlist._TYPED.pattern, hostlist._PRINTED.pattern)

USED_AS = {
    smtp.DOMAIN.pattern: frozenset({"fullmatch"}),
    LOG_NAME_PATTERN.pattern: frozenset({"fullmatch"}),
    r"\D*(\d+)\D*": frozenset({"fullmatch"}),
    PROGRESS_WORD_PATTERN.pattern: frozenset({"fullmatch"}),
    WEAK_WORD_PATTERN.pattern: frozenset({"fullmatch"}),
    **dict.fromkeys(_HOSTLIST_ITEMS, frozenset({"match"})),
}
"""How patterns are used whose place does not show it."""

MATCHED_TABLES = {
    "sentinel.checks.network.driver_lines:table",
    "sentinel.checks.host.kernel_words:table",
}
"""Tables whose patterns are only asked whether a text begins with them."""


TABLES = (
    "step,loss,lr\n1,2.5,3\n2,2.4,3\n",
    "| step | loss | lr |\n|------|------|----|\n| 1 | 2.5 | 3 |\n",
    "| lr | step | loss |\n|----|------|------|\n| 3 | 1 | 2.5 |\n",
    "| lr | loss | step |\n|----|------|------|\n| 3 | 2.5 | 1 |\n",
    "lr,step,loss\n3,1,2.5\n",
    "lr    step    loss\n3    1    2.5\n",
    "step    loss    lr\n1    2.5    3\n",
    "ETITLE:      TS           BOND          ANGLE\nENERGY:       0     0.0000     0.0000\n",
    "# column   1     --> step : the time step\n   1   2.5\n",
    "Step  (1)   Temp of the bath   Energy\n  10 (1)  1 K  2 J\n",
)
"""One of each form that has rows of its own."""


def _of_trainer(row: Trainer) -> Iterator[str]:
    yield from row.numbers.values()
    yield from row.variants
    yield from filter(None, (row.needs, row.done, *(row.seconds or ("",))[:1]))
    yield from (one for phase in row.phases.values() for one in phase if one)


def _made_at_run_time() -> dict[tuple[str, str], list[str]]:
    """For each place whose pattern its source does not show: what stands there when it runs."""
    from sentinel.checks.log.known_troubles import TROUBLE_KINDS

    rows = [pattern for row in TRAINERS for pattern in _of_trainer(row)]
    numbers = [pattern for row in TRAINERS for pattern in row.numbers.values()]
    word = _WORD_PATTERN.search("step = ")
    assert word
    looked_for = [_make_number_pattern(word)]
    table_rows = [pattern for text in TABLES for _, pattern in find_counted_columns(text)]
    assert len(set(table_rows)) >= 5
    log = "sentinel.checks.log"
    return {
        ("sentinel.channels.markup", "f'([{special}])'"): [r"([\\`*_{}\[\]])"],
        (
            "sentinel.channels.format.facts",
            "f'(?<![\\\\w.]){re.escape(words)}(?![\\\\w%])'",
        ): [r"(?<![\w.])exit\ code\ 1(?![\w%])"],
        (
            "sentinel.checks.drained.node_evidence",
            "f'(?<![\\\\w.-]){re.escape(node)}(?![\\\\w.-])'",
        ): [r"(?<![\w.-])node\-1(?![\w.-])"],
        ("sentinel.checks.job.output", "known.number.pattern"): numbers,
        (f"{log}.gather", "reading.number.pattern"): numbers,
        (f"{log}.trouble_kind", "self.pattern"): [kind.pattern for kind in TROUBLE_KINDS],
        (f"{log}.shown_troubles", "kind.names"): [
            kind.names for kind in TROUBLE_KINDS if kind.names
        ],
        (f"{log}.recognition", "known.number.pattern"): looked_for,
        (f"{log}.advancing_numbers", "pattern"): looked_for,
        (f"{log}.recognition", "pattern"): looked_for,
        (f"{log}.advancing_numbers", "one[1]"): looked_for,
        (f"{log}.losses", "pattern"): [
            _OWN_REGEX,
            r"loss(?<![\w/.-]loss)[^\w\n/.-]{1,12}([-+]?\d[\w.+-]{0,20})",
        ],
        (f"{log}.table_columns", "one[1]"): table_rows,
        (f"{log}.table_columns", "pattern"): table_rows,
        (f"{log}.recognition", "row.needs"): rows,
        (f"{log}.recognition", "own"): [
            r"(?<![\w/])grad_norm['\"]?\s{0,8}[:= ]\s{0,8}['\"]?[-+\dni]"
        ],
        (f"{log}.recognition", "norms"): [
            r"(?i)\b(?:grad(?:ient)?[ _/]?norm|gnorm|total_grad_norm)\b"
        ],
        (f"{log}.recognition", "seconds"): rows,
        (f"{log}.scan", "one.seconds[0]"): rows,
        (f"{log}.scan", "begin"): rows,
        (f"{log}.scan", "end"): rows,
        (
            "sentinel.checks.quota.collect",
            "f'^{re.escape(name)}=\"(\\\\d+)\"$'",
        ): [r'^user\.quota="(\d+)"$'],
        (
            "sentinel.checks.quota.tools.lustre",
            "f'^[ \\\\t]*(?:/\\\\S*|\\\\.)((?:\\\\s+\\\\S+){{{count}}})\\\\s*$'",
        ): [r"^[ \t]*(?:/\S*|\.)((?:\s+\S+){8})\s*$"],
        ("sentinel.slurm.drain_reasons", "re.escape(one.text) + one.whole"): [],
        ("sentinel.checks.sensor_remedies", "known"): [known for _, known in _PARTS],
        ("sentinel.checks.network.driver_lines", "row.pattern"): [],
        ("sentinel.checks.host.kernel_words", "row.pattern"): [],
        (
            "sentinel.checks.quota.tools.command",
            "f'(?<!\\\\S){re.escape(name)}(?!\\\\S)'",
        ): [r"(?<!\S)alice(?!\S)"],
        (f"{log}.tracebacks", "'\\\\d+'.join(map(re.escape, words))"): [
            r"\[\d+\-\d+\ rank\ \d+\]\ node\-\d+:\ "
        ],
        ("sentinel.clean.mentions", "f'(?:^|[^a-z])(?:{words})(?:[^a-z]|$)'"): [
            r"(?:^|[^a-z])(?:best|latest)(?:[^a-z]|$)"
        ],
        ("sentinel.gpu.dcgm.policy", "pattern"): [],
        ("sentinel.gpu.smi_processes", "f'<{field}>([^<>]*)</{field}>'"): [r"<pid>([^<>]*)</pid>"],
        ("sentinel.nodes.srun", "pattern"): [],
        ("sentinel.nodes.ssh", "pattern"): [],
        ("sentinel.slurm.complaints", "pattern"): [],
        ("sentinel.slurm.drain_reasons", "pattern"): [],
        (
            "sentinel.slurm.submission",
            "f\"(?:^|,)(?:gres[:/]){('?' if option == 'gres' else '')}([^,]+)\"",
        ): [r"(?:^|,)(?:gres[:/])?([^,]+)"],
    }


def _all() -> dict[str, OurPattern]:
    """Each distinct pattern once, by where it stands."""
    known = [*found()[0], *compiled_in_modules()]
    for (module, source), texts in _made_at_run_time().items():
        known += [OurPattern(f"{module}:{source[:20]}", t, re.M.value, frozenset()) for t in texts]
    distinct: dict[tuple[object, int], OurPattern] = {}
    for one in known:
        uses = frozenset({"match"}) if one.place in MATCHED_TABLES else one.uses
        uses = USED_AS.get(one.text, uses) if isinstance(one.text, str) else uses
        distinct.setdefault((one.text, one.flags & ~re.UNICODE), one._replace(uses=uses))
    return {f"{n} {one.place}": one for n, one in enumerate(distinct.values())}


@cache
def _unproven() -> dict[str, OurPattern]:
    return {
        name: one
        for name, one in _all().items()
        if one.place.partition(":")[0] not in ITS_OWN_CONFIGURATION
        and not (isinstance(one.text, str) and is_harmless(one.text, one.flags))
    }


def test_every_place_is_known() -> None:
    """Who writes a pattern that is put together at run time adds what it becomes."""
    listed = {(module, ast.unparse(ast.parse(source))) for module, source in _made_at_run_time()}
    assert {*found()[1]} == listed | {*ELSEWHERE}  # each Python quotes a nested string in its way
    assert len(_all()) > 400


def test_no_module_hides_a_pattern_behind_another_name_of_re() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "re", path
            if isinstance(node, ast.Import):
                assert all(a.name != "re" or a.asname is None for a in node.names), path


def _share(pattern: OurPattern) -> tuple[float, str]:
    """What the hardest text costs as a share of what it may, and that text."""
    cost = cost_of(pattern)
    most = TIMES_PLAIN if cost.growth > GROWTH else MOST_TIMES_PLAIN
    return cost.times_plain / most, cost.text


PARTS = 16


@pytest.mark.parametrize("part", range(PARTS))
def test_a_pattern_looks_through_a_text_once(part: int) -> None:
    """A part of them at a time: each worker collects all tests, and to find the patterns takes seconds."""
    dear = []
    for pattern in [*_unproven().values()][part::PARTS]:
        share, text = _share(pattern)
        if share >= 1:
            dear.append(f"{pattern.text!r} needs {share:.1f} times what it may on {text!r}")
    assert dear == []


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        (r"\w+Error: x", True),
        (r"={8,} Step (\d+)", True),
        (r"(\w*)\s+(\w*)\s*=", True),
        (r"a[^\n]{0,200}b[^\n]{0,200}c", True),
        (r"(?:a|a)*b", True),
        (r"\berror code \d{1,4}\b", False),
        (r"^\S+ kernel: ", False),
    ],
)
@pytest.mark.long
def test_the_measure_tells_one_from_the_other(text: str, bad: bool) -> None:
    one = OurPattern("here", text, 0, frozenset({"finditer"}))
    assert (_share(one)[0] >= 1) is bad
