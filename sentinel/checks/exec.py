"""The `exec` kind: any plugin that speaks the Nagios plugin API.

https://nagios-plugins.org/doc/guidelines.html: exit code 0 to 3, one line of text, performance data
after `|`, then longer text. NHC, Icinga and Checkmk local plugins speak it too.
"""

import math
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import ClassVar

from msgspec import Struct, to_builtins

from sentinel import proc
from sentinel.core.declared import ANY, Metric
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import Guidance, look
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_lines
from sentinel.core.model import Coverage, Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible, visible_lines
from sentinel.plugin import Check
from sentinel.trust import UntrustedFile, list_program_paths, require_trusted_program

MAX_OUTPUT_BYTES = 1_000_000  # bytes; Nagios itself reads 8 KiB
_MAX_SHOWN_CHARS = 4000
MAX_NUMBERS = 500
"""How many values of one run are kept. Each run stores a sample of each of them in the state."""

_STATUS_BY_CODE = {0: Status.OK, 1: Status.WARNING, 2: Status.CRITICAL, 3: Status.UNKNOWN}
NO_ANSWER = (
    "which is no answer of a check (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN): "
    "nothing is known of what it watches"
)
# 'label'=value[UOM];[warn];[crit];[min];[max]. A quote inside a quoted label is doubled. A label
# starts only at the beginning of a word: otherwise a megabyte without an = takes hours.
_LABEL_PATTERN = r"(?<!\S)(?:'((?:[^']|'')*)'|([^\s='|]+))"
_PERFDATA_PATTERN = lazy_pattern(
    _LABEL_PATTERN + r"=([-+]?[\d.]+(?:[eE][-+]?\d+)?|U)([^\s;\d]*)(?:;\S*)?(?!\S)"
)
# What a shell prints if it runs a binary as a script, as execvp(3) does.
_NO_PROGRAM = lazy_pattern(rb"[Ss]yntax error|cannot execute binary file|Exec format error|\x7fELF")


class PluginOutput(Struct, frozen=True, kw_only=True):
    """The parsed output of a plugin: its first line, further text, and numbers by label."""

    line: str  # Its first line, without numbers.
    details: str = ""  # Its further lines.
    numbers: Mapping[str, float] = {}  # Its performance data, by label.


class ExecCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Nagios, Icinga or NHC plugin: its exit code, text and performance data.

    command: The plugin and its arguments as a list; no shell reads it.
    env: Variables added to sentinel's own environment.
    """

    EVERY: ClassVar[float] = 60
    TELLS_HOST: ClassVar[bool] = True
    TIMEOUT: ClassVar[float] = 30
    METRICS = (Metric(ANY, "exec_perfdata", "A number of performance data, in its own unit."),)
    SOURCES = ("The plugin, as a child process on this host.",)
    RUNBOOK = "docs/exec.md"

    command: list[str]
    env: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise Invalid("names no program; give it and its arguments as a list", "command")

    def trusted_paths(self) -> list[str]:
        """The program, and programs among its arguments."""
        return list_program_paths(self.command)

    def run(self, ctx: Context) -> Report:
        """One finding about the check itself. Raises CannotTell if the plugin did not run."""
        try:
            require_trusted_program(self.command[0])
        except UntrustedFile as error:
            raise CannotTell(str(error)) from error
        before = decode_memory(ctx.memory.get("stuck"), proc.StuckProcess)
        hanging = proc.HangingChildren({"": before} if before else {})
        try:
            with hanging.start_alone(""):
                done = proc.run(
                    self.command,
                    limit=ctx.limit,
                    env={**os.environ, **self.env},
                    max_output=MAX_OUTPUT_BYTES,
                )
        except proc.StillHanging as error:
            raise CannotTell(f"an earlier run {error}; no other is started beside it") from None
        except proc.TimedOut as late:
            if late.stuck is None:
                raise
            return _hanging_report(ctx.name, late)
        answer = parse_output(decode_lines(done.out, "surrogateescape"))
        finding = judge_plugin(ctx.name, self.command[0], done, answer)
        samples = tuple(Sample(ctx.name, name, value) for name, value in answer.numbers.items())
        unseen = (ctx.name,) if finding.status is Status.UNKNOWN and done.code != 3 else ()
        return Report(
            findings=(finding,),
            coverage=Coverage(of="plugins", meant=1, unseen=unseen),
            samples=samples,
            memory={},
        )


def parse_output(text: str) -> PluginOutput:
    """Parse a plugin's standard output. Anything that does not have the documented form is text."""
    first, _, rest = text.lstrip("\n").partition("\n")
    line, _, performance = first.partition("|")
    details, _, more = rest.partition("|")
    numbers = parse_perfdata(f"{performance} {more}")
    if (left_out := len(numbers) - MAX_NUMBERS) > 0:
        said = f"{left_out} of {len(numbers)} numbers of performance data are not kept"
        details = f"{said}\n{details}"
    return PluginOutput(
        line=shortened(visible(line.strip()[:_MAX_SHOWN_CHARS]), 500),
        details=shortened(visible_lines(details.strip()[: 2 * _MAX_SHOWN_CHARS]), _MAX_SHOWN_CHARS),
        numbers=dict(islice(numbers.items(), MAX_NUMBERS)),
    )


def parse_perfdata(performance: str) -> dict[str, float]:
    """The values by label, in the unit that the plugin chose. A value that is undetermined or no
    number is left out."""
    found: dict[str, float] = {}
    for match in _PERFDATA_PATTERN.finditer(performance):
        label = visible((match[1] or match[2] or "").replace("''", "'").strip())
        with suppress(ValueError):
            if label and math.isfinite(value := float(match[3])):
                found[label] = value
    return found


def _guide_plugin(name: str, program: str, said: str, status: Status) -> Guidance:
    """The guidance for a plugin's words. Only the author of the plugin knows their meaning."""
    broken = f"The check {visible(name)} is broken: what it guards is not watched."
    return Guidance(
        impact=broken
        if status is Status.UNKNOWN
        else f"Your site's own program {visible(program)} calls this {status.value}; sentinel only passes on"
        " its words.",
        todo=f"Mend what it names. Unclear? Ask whoever wrote {visible(program)}. `sentinel check` below runs"
        " it again."
        if status is not Status.UNKNOWN
        else f"Ask whoever wrote your site's own program {visible(program)} to mend it. `sentinel check`"
        " below runs it again.",
        ask=f"look at what the check {visible(name)} reports: {shortened(said, 200)}",
    )


def judge_plugin(name: str, program: str, done: proc.Done, answer: PluginOutput) -> Finding:
    """The finding for the plugin's exit code."""
    status, summary = _plugin_verdict(visible(program), done, answer)
    return Finding(
        subject=name,
        status=status,
        summary=summary,
        values=answer.numbers,
        details=answer.details or ("" if status is Status.OK else _stderr_details(done, answer)),
        commands=() if status is Status.OK else (look("sentinel check {}", name),),
        guidance=Guidance()
        if status is Status.OK
        else _guide_plugin(name, program, summary, status),
    )


def _plugin_verdict(program: str, done: proc.Done, answer: PluginOutput) -> tuple[Status, str]:
    said = answer.line or shortened(_shorten_stderr(done.err).replace("\n", " "), 300)
    if done.code < 0:
        return (
            Status.UNKNOWN,
            f"{program} was ended by {_signal_name(-done.code)}{_append_said(said)}",
        )
    if not done.out.strip() and _NO_PROGRAM.search(done.err):
        return (
            Status.UNKNOWN,
            f"{program} is no program that this machine can run{_append_said(said)}",
        )
    if done.code not in _STATUS_BY_CODE:
        code = f"the command {program} ended with exit code {done.code}, {NO_ANSWER}"
        return Status.UNKNOWN, code + (f"; it said: {said}" if said else "")
    return _STATUS_BY_CODE[
        done.code
    ], said or f"the command {program} ended with exit code {done.code} and said nothing"


def _stderr_details(done: proc.Done, answer: PluginOutput) -> str:
    """The part of stderr that is not in the summary."""
    said = _shorten_stderr(done.err)
    return said if answer.line or "\n" in said else ""


def _shorten_stderr(err: bytes) -> str:
    return shortened(visible_lines(os.fsdecode(err[:_MAX_SHOWN_CHARS]).strip()), _MAX_SHOWN_CHARS)


def _append_said(said: str) -> str:
    return f": {said}" if said else ""


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _hanging_report(name: str, late: proc.TimedOut) -> Report:
    pid = late.stuck.pid if late.stuck else 0
    finding = Finding(
        subject=name,
        status=Status.UNKNOWN,
        summary=f"{late}, but process {pid} does not go away (what it waits for hangs)",
    )
    return Report(
        findings=(finding,),
        coverage=Coverage(of="plugins", meant=1, unseen=(name,)),
        memory={"stuck": to_builtins(late.stuck)},
    )
