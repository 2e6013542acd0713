"""Judges a run of `dcgmi diag`: pass, fail, or inconclusive. Pure.

A run passes only if the tests of the level (levels.py) ran and passed on every GPU, with no more
than remarks (severity MONITOR). It fails only by a test that failed with a fault of the hardware
(policy.py). A setting (such as persistence mode) is not a broken GPU. Tests that did not run, and
faults that are not known here, prove nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from sentinel.gpu.advice import Advice, worst
from sentinel.gpu.dcgm import levels, policy
from sentinel.gpu.dcgm.model import GPU, Document, Fault, Result
from sentinel.gpu.dcgm.read import parse
from sentinel.gpu.errors import Unreadable

Outcome = Literal["pass", "fail", "inconclusive"]

# 256 minus dcgmReturn_t (dcgmi/main_dcgmi.cpp, dcgmlib/dcgm_structs.h).
RAN = (0, 205, 226)
"""Exit codes after which the tests ran. 0: no error, also if all were skipped. 226 and 205: a test
failed."""
SHELL_SIGNAL_BASE = 128
"""A shell's exit code is this much above the number of the signal that ended the program."""
LOST = 238
CODES = {
    124: "it was ended for taking too long",
    137: "it was killed",
    143: "it was ended",
    198: "there is no such test",
    202: "DCGM is paused",
    203: "its worker was killed",
    204: "its worker (nvvs) is not installed",
    217: "busy: another diagnostic runs there",
    222: "busy: a GPU is in use",
    235: "no host engine (nv-hostengine) answers",
    242: "it has no data",
    245: "it ran into its own time limit",
    254: "it met an exception",
    255: "it refused its parameters",
}
_PHRASES = (
    ("unable to connect to host engine", "no host engine (nv-hostengine) answers"),
    (
        "unable to establish a connection to the specified host",
        "no host engine (nv-hostengine) answers",
    ),
    ("already running", "busy: another diagnostic runs there"),
    ("in use", "busy: a GPU is in use"),
)

SILENT = Fault(text="the test failed, without a word")


class Ran(Struct, frozen=True, kw_only=True):
    """How a run ended. `code`: dcgmi's exit code, 128+N for a signal, None where unknown.

    `late`: it was ended from outside. `gpus`: how many GPUs the node should have, 0 not known.
    """

    out: str
    code: int | None = None
    level: int = 1
    late: bool = False
    gpus: int = 0


class Blame(Struct, frozen=True, kw_only=True):
    """A device with a fault. `index` None: a fault of no single device. `failed`: false where DCGM
    calls the test passed or skipped all the same. `note`: a remark above a pass, by DCGM's own word."""

    entity: str
    index: int | None
    test: str
    text: str
    error_id: int | None = None
    kind: policy.Kind = "unknown"
    advice: Advice = Advice.CONTACT
    serial: str = ""
    failed: bool = True
    note: bool = False

    @property
    def counts(self) -> bool:
        """Whether it makes the run a failure: only a failed test with a hardware fault does."""
        return self.failed and self.kind == "hardware" and self.advice.hardware

    @property
    def needs_a_person(self) -> bool:
        """Whether a person has to look at it although nothing is proven: a setting, an unknown
        fault, or a fault of a test that did not fail."""
        return not self.note and self.kind in ("config", "unknown", "hardware")


class Verdict(Struct, frozen=True, kw_only=True):
    """`why` in one line. A failure is always confirmed: a fault of the hardware is named, and not
    only a failed test.

    `blames`: every device and fault, of whichever kind.
    """

    outcome: Outcome
    why: str
    blames: tuple[Blame, ...] = ()
    version: str = ""
    level: int = 1

    @property
    def confirmed(self) -> bool:
        """Whether a fault of the hardware is proven."""
        return self.outcome == "fail"

    @property
    def advice(self) -> Advice:
        """The strongest advice among the faults."""
        return worst([b.advice for b in self.blames if b.counts])


def judge(ran: Ran) -> Verdict:
    """The verdict about a run. Never raises: an output that cannot be read is inconclusive."""
    try:
        found = parse(ran.out)
    except Unreadable as error:
        return _unread(ran, str(error))
    blames = tuple(_blames(found))
    outcome, why = _decide(found, ran, blames)
    return Verdict(outcome=outcome, why=why, blames=blames, version=found.version, level=ran.level)


def _unread(ran: Ran, error: str) -> Verdict:
    if ran.code == LOST:
        text = "a GPU is lost (it does not answer any more)"
        lost = Blame(
            entity="GPU", index=None, test="dcgmi", text=text, kind="hardware", advice=Advice.REBOOT
        )
        return Verdict(outcome="fail", why=text, blames=(lost,), level=ran.level)
    why = _spoken(ran.out) or _unfinished(ran) or error
    return Verdict(outcome="inconclusive", why=why, level=ran.level)


def _decide(found: Document, ran: Ran, blames: Sequence[Blame]) -> tuple[Outcome, str]:
    bad = [b for b in blames if b.counts]
    if bad:
        return "fail", _told(bad)
    doubt = _doubt(found, ran, blames)
    if doubt:
        return "inconclusive", doubt
    passed = len({r.test for r in found.results if r.status == "pass"})
    skipped = ", ".join(levels.left_out(found))
    more = f", not run there: {skipped}" if skipped else ""
    noted = f"; it remarks: {_told(blames)}" if blames else ""
    return "pass", f"{passed} test{'s' * (passed != 1)} passed{more}{noted}"


def _doubt(found: Document, ran: Ran, blames: Sequence[Blame]) -> str:
    """Why the run is not a pass although no hardware fault was seen; empty if it is one."""
    if faults := [b for b in blames if not b.note]:
        return f"{_class(faults)}: {_told(faults)}"
    if found.error:
        return _spoken(found.error) or f"it did not run: {found.error}"
    if unfinished := _unfinished(ran):
        return unfinished
    if not found.whole:
        return "its output ends before the table does"
    if ran.code in (205, 226) and not blames:  # with notes alone, dcgmi ends with these codes too
        return f"exit code {ran.code} says that a test failed, its output does not"
    if found.failing or any(r.status == "other" for r in found.results):
        return "a test ended in a way that is not known"
    if levels.too_new(found.version):
        return (
            f"DCGM {found.version} is newer than what sentinel knows (2 to {levels.NEWEST}): "
            "nothing in it failed, which proves nothing"
        )
    return _untested(found, ran)


def _class(blames: Sequence[Blame]) -> str:
    kinds = {b.kind for b in blames}
    if "config" in kinds:
        return "configuration"
    if "hardware" in kinds:
        return "warning"
    return "unknown fault" if "unknown" in kinds else "not done"


def _unfinished(ran: Ran) -> str:
    if ran.late:
        return "timed out: it was ended from outside"
    if ran.code is None or ran.code in RAN:
        return ""
    crash = _signal_words(ran.code - SHELL_SIGNAL_BASE)
    ended = f"dcgmi ended with exit code {ran.code}"
    return CODES.get(ran.code, f"dcgmi crashed: {crash} (exit code {ran.code})" if crash else ended)


def _signal_words(number: int) -> str:
    """`segmentation fault` of 11. Empty if there is no such signal."""
    try:
        return (signal.strsignal(number) or "").lower()
    except ValueError:
        return ""


def _untested(found: Document, ran: Ran) -> str:
    if not any(r.status == "pass" for r in found.results):
        return "skipped: no test ran" if found.results else "no test is in it"
    seen = levels.gpus(found)
    if seen and len(seen) < ran.gpus:
        return f"only {len(seen)} of {ran.gpus} GPUs were tested"
    return levels.unrun(found, ran.level)


def _blames(found: Document) -> Iterator[Blame]:
    """Faults of failed tests, and warnings of others: DCGM prints `Pass` above some warnings."""
    for result in found.results:
        for index, fault in _blamed(result):
            note = result.status == "pass" and _is_note(fault)
            rule = policy.REMARK if note else _rule(fault)
            yield Blame(
                entity=result.entity,
                index=index,
                test=result.test,
                text=fault.text,
                error_id=fault.error_id,
                kind=rule.kind,
                advice=rule.advice,
                serial=found.serials.get(index, "") if index is not None else "",
                failed=result.status == "fail",
                note=note,
            )


def _blamed(result: Result) -> Iterator[tuple[int | None, Fault]]:
    """Each fault with its device. If the test is about several devices, the one that the words
    name, else all of them."""
    faults, told = list(_faults(result)), set[int | None]()
    for fault in faults:
        for index in _named(fault, result) or result.ids or (None,):
            told.add(index)
            yield index, fault
    if result.status == "fail":
        for index in result.ids:
            if index not in told:
                yield index, SILENT


def _named(fault: Fault, result: Result) -> tuple[int, ...]:
    if len(result.ids) == 1 or result.entity != "GPU" or not (found := GPU.search(fault.text)):
        return ()
    index = int(found[1])
    return (index,) if index in result.ids or not result.ids else ()


def _faults(result: Result) -> Iterable[Fault]:
    """Faults of a result. Those of a skipped test are only reasons for skipping, unless they name
    the hardware."""
    if result.status == "skip":
        return [f for f in result.faults if _rule(f).kind in ("hardware", "unknown")]
    if result.status == "fail":
        return result.faults or (SILENT,)
    return result.faults


def _rule(fault: Fault) -> policy.Rule:
    return policy.rule(fault.error_id, fault.text, fault.severity, fault.category)


def _is_note(fault: Fault) -> bool:
    return policy.is_note(fault.error_id, fault.severity, fault.category)


def _told(blames: Sequence[Blame]) -> str:
    """The first fault in words, and how many more devices there are."""
    first = blames[0]
    where = f"{first.entity} {first.index}" if first.index is not None else first.entity
    devices = {(b.entity, b.index) for b in blames}
    more = f" (and {len(devices) - 1} more)" if len(devices) > 1 else ""
    return f"{where}: {first.test}: {first.text}{more}"


def _spoken(text: str) -> str:
    """The meaning of what dcgmi prints if it cannot begin; empty if it is not known."""
    low = text[:20_000].lower()
    return next((meaning for phrase, meaning in _PHRASES if phrase in low), "")
