"""Says what to do about a script of a cron directory that failed, waits or is refused, and which
commands show why. Pure."""

import re
import time
from collections.abc import Iterator

from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, LookingCommand, look

_CHMOD_PATTERN = re.compile(r"\((chmod [a-z]+-w)\)")
_PURPOSE = "`head` below shows what the script does, and so how bad this is."


def format_slot(slot: float) -> str:
    """The time of a run, as in the names of its logs."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(slot))


def find_chmod(why: str) -> str:
    """The chmod that makes an unsafe script safe, if that is what the refusal asks for."""
    found = _CHMOD_PATTERN.search(why)
    return found[1] if found else ""


def guide_script(
    path: str, record: ScriptRecord, newest: SubmittedRun | None, now: float
) -> Guidance:
    """Guidance for a script whose newest run is bad, or that did not run when it should."""
    past = _describe_last_success(record)
    if record.trouble:
        return Guidance(
            impact=f"The script does not run; each pass tries again. {past}{_PURPOSE}",
            todo="Mend what the words above name.",
        )
    if newest and newest.state == "LOST":
        return Guidance(todo="See at the end of its log (`less` below) whether it ended well.")
    if newest and (newest.state != "COMPLETED" or newest.code or newest.elements):
        return Guidance(
            impact=f"The script runs again {_describe_next(record, now)}, and fails again if nothing"
            f" changes. {past}{_PURPOSE}",
            todo="Read its log (`less` below) and the script (`head`), and repair it.",
        )
    if record.skipped > 1:
        return Guidance(
            impact=f"The script does not run again until that job is over. {past}{_PURPOSE}",
            todo="See with `squeue` and `less` below whether the job still works. If it hangs, its owner"
            " cancels it (`scancel JOB`).",
        )
    return Guidance(
        impact=f"The script runs again {_describe_next(record, now)}. {past}{_PURPOSE}",
        todo="`sentinel cron status` below shows what starts the scripts; see why it did not then.",
    )


def suggest_script_commands(
    path: str, record: ScriptRecord, newest: SubmittedRun | None
) -> tuple[LookingCommand, ...]:
    """What shows the script, the log of its run, and where that ran."""
    return (look("head -n 20 {} | cat -v", path), *_show_run(record, newest))


def _show_run(record: ScriptRecord, newest: SubmittedRun | None) -> Iterator[LookingCommand]:
    waits_for = record.open_runs[:1] if record.skipped > 1 and not record.trouble else ()
    run = waits_for[0] if waits_for else newest
    if run and run.log:
        yield look("less {}", run.log)
    if waits_for:
        yield look("squeue -j {} | cat -v", waits_for[0].job)
    elif run and run.is_over and run.job:
        yield look("sacct -j {} --format=JobID,State,ExitCode,End,NodeList", run.job)
    if record.missed and not (run and run.is_over and run.state != "COMPLETED"):
        yield look("sentinel cron status")


def guide_refused(path: str, why: str, record: ScriptRecord | None, now: float) -> Guidance:
    """Guidance for a script that is not run because it is unsafe or not understood."""
    past = _describe_last_success(record) if record else ""
    what = f"The script does not run until this is repaired. {past}"
    again = f"it runs again {_describe_next(record, now)}"
    return Guidance(
        impact=f"{what}{_PURPOSE}" if find_chmod(why) else what.rstrip(),
        todo="Somebody else may have changed it: look at it first (`ls` says when). Then remove the"
        f" write permission (`chmod` below); {again}."
        if find_chmod(why)
        else f"Mend what the words above name; {again}.",
    )


def suggest_repair_commands(path: str, why: str) -> tuple[LookingCommand, ...]:
    """What shows a refused script. What is no regular file is not read: a pipe would hang."""
    shown = look("ls -ld {}", path)
    return (shown, look("head -n 20 {} | cat -v", path)) if find_chmod(why) else (shown,)


def suggest_repair(path: str, why: str) -> tuple[ActingCommand, ...]:
    """The chmod that makes a refused script safe."""
    argv = (*find_chmod(why).split(), path)
    return (ActingCommand(owner=ADMINISTRATOR, argv=argv),) if argv[1:] else ()


def _describe_next(record: ScriptRecord | None, now: float) -> str:
    if record is None or record.next_slot <= now:
        return "at its next time"
    return f"at {format_slot(record.next_slot)}"


def _describe_last_success(record: ScriptRecord) -> str:
    over = [run for run in record.runs if run.is_over]
    fine = (run for run in over if run.state == "COMPLETED" and not (run.code or run.elements))
    good = next(fine, None)
    if good:
        return f"Its last good run was that of {format_slot(good.slot)}. "
    return "No good run of it is known. " if over else ""
