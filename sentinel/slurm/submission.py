"""How a job was submitted, and the command that submits it again.

squeue is asked, since a job's name can forge the output of `scontrol show job`. The -O names exist
from 20.11 to 26.05 (src/squeue/opts.c). sacct has the command as it was typed (SubmitLine, 21.08
on), with its words joined by blanks (src/common/proc_args.c); it is used if the blanks lose
nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import join, normpath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sentinel.core import hostlist
from sentinel.core.cluster import Submission
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.guidance import ActingCommand
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.slurm import gres
from sentinel.slurm.words import MAX_SHORT_NUMBER, decode_list, parse_count

if TYPE_CHECKING:
    from sentinel.slurm.sbatch_words import SbatchOption

_SUBMISSION_FIELDS = (
    *("Name", "UserName", "Partition", "Account", "QOS", "TimeLimit", "NumNodes", "NumTasks"),
    *("cpus-per-task", "tres-per-job", "tres-per-node", "tres-per-task", "tres-alloc", "Feature"),
    "tres-per-socket",
    *("Reservation", "WorkDir", "Command", "STDOUT", "AllocNodes", "JobArrayID"),
    "BatchFlag",
)
# A command that can be repeated as it stands. `/dev/fd/63` was a pipe of the shell that submitted it.
_PLAIN_PATTERN = lazy_pattern(r"(?!/dev/|/proc/)[\w@%+=:,./~ -]*", re.ASCII)
_TIME_PATTERN = lazy_pattern(r"[\d:-]+|UNLIMITED")
_SILENT = (23, 2)
"""The first release whose slurmctld reports the script without its arguments: packstr(argv[0]) in
_pack_default_job_details(), src/slurmctld/job_mgr.c."""

_ADD = "and its arguments, if it had any: this Slurm tells them in SubmitLine only"
_UNPRINTED = "and its arguments: they cannot be pasted"
_VARIABLES = "and what its --export set: this Slurm tells that in SubmitLine only"
_UNREPEATABLE = {"array", "wrap", "test-only", ":"}
"""Options in a typed line to which nothing can be added. A relative folder would be looked for inside itself."""
_OWN_FILES = {"nodefile", "export-file", "bbf"}
"""Options that name a file which sbatch itself reads, where it runs."""
_USED_UP = {"hold", "wait", "begin", "deadline", "clusters", "exclude"}
"""Options that were meant for the first submission: its owner has released it, it has begun, nobody waits
for it, its deadline has passed, and its cluster was chosen. Which nodes it excludes now, Slurm tells."""


_PLACE_OPTIONS = tuple(
    f"--{name}=" for name in ("partition", "account", "qos", "time", "constraint", "reservation")
)
"""Options that say where a job runs and how long; it has one value of each."""

_COLOURS = rb"(?:\x1b\[[0-9;]*m)*"
_SUBMITTED = (
    rb"^[ \t]*%b(Submitted batch job )?(\d+)(?:;[^\s\x1b]*| on cluster [^\s\x1b]+)?%b[ \t\r]*$"
    % (_COLOURS, _COLOURS)
)
"""What sbatch prints for a job that it submitted: src/sbatch/sbatch.c, with --parsable and without."""


def submitted_job(out: bytes) -> str:
    """The job id in the output of `sbatch --parsable`; empty if there is none.

    A site's own sbatch may greet before it, or lose the option. So the last line counts that is an
    id (and a cluster): in sbatch's sentence, else alone."""
    found = re.findall(_SUBMITTED, out, re.MULTILINE)
    told = [number for said, number in found if said] or [number for _, number in found]
    return told[-1].decode() if told else ""


def hides_arguments(release: tuple[int, int]) -> bool:
    """Whether a slurmctld of this release does not report the arguments of the script; True for an
    unknown release."""
    return not (0, 0) < release < _SILENT


def submission_columns(nonce: str) -> str:
    """The value of squeue's `-O` for an answer that `read_submission` understands."""
    return ",".join([*(f"{name}:{nonce}|" for name in _SUBMISSION_FIELDS), f"JobID:{nonce}."])


def read_submission(out: bytes, nonce: str, job_id: str) -> Submission | None:
    """The row of that job; None if there is none. Raises CannotTell if the answer has another
    form."""
    *records, rest = out.split(f"{nonce}.\n".encode())
    for record in records:
        *fields, number = record.split(f"{nonce}|".encode())
        if rest or len(fields) != len(_SUBMISSION_FIELDS):
            raise CannotTell("squeue's answer about a job is not in the form asked for")
        told = dict(zip(_SUBMISSION_FIELDS, map(decode_list, fields), strict=True))
        if job_id in (number.decode(errors="replace"), told["JobArrayID"]):
            return _make_submission(told)
    return None


def resubmit_argv(
    job: Submission, without: str = "", wait: str = "", *, exact: bool = False
) -> tuple[str, ...]:
    """The command that submits the job again, for its working directory. Empty if the exact command
    is not known.

    The job does not get the node `without`. It starts when `wait` (an expression of sbatch's
    --dependency) allows it. `exact`: no option that was typed may be missing, as nobody reads the command.
    """
    if (
        "+" in job.id
        or not (job.batch and job.command)
        or not _PLAIN_PATTERN.fullmatch(job.command)
    ):
        return ()
    keep = _kept_options(job, without, wait)
    options, command = _split_typed_line(job, without)
    if command:
        typed = (one for one in options if not _is_used_up(one, wait))
        words = (word for one in typed for word in _repeat_option(one, job.workdir))
        # Accounting has no option that came from the environment (SBATCH_ACCOUNT); those typed count after these.
        place = (one for one in job.options if exact and one.startswith(_PLACE_OPTIONS))
        return ("sbatch", *place, *words, *keep, *command)
    if job.bare or (job.line if exact else _sets_variables(job)):
        return ()
    return ("sbatch", *job.options, *keep, *job.command.split())


def resubmit_command(job: Submission, without: str = "", wait: str = "") -> ActingCommand | None:
    """The same command for the shell of the job's user; if Slurm does not have the script's path, with
    the command that fetches the script. None if there is none, or a name in it does not print: nobody is
    to end a job of which no line is left that submits it again."""
    words, note, script_of = resubmit_argv(job, without, wait), "", ""
    if not job.batch:
        return None
    missing = [*([_ADD] if job.bare else []), *([_VARIABLES] if _sets_variables(job) else [])]
    if not words and missing and job.command:
        words = resubmit_argv(replace(job, bare=False, line=""), without, wait)
        note = "; ".join(missing) if words else ""
    if not words and job.id.isdigit():
        words, script_of = ("sbatch", *job.options, *_kept_options(job, without, wait)), job.id
        note = _UNPRINTED if job.command else ""
    if not words or not job.user or not "".join((*words, job.workdir, job.user)).isprintable():
        return None
    return ActingCommand(
        owner=job.user, argv=tuple(words), folder=job.workdir, script_of=script_of, note=note
    )


def _is_used_up(option: SbatchOption, wait: str) -> bool:
    """Whether the option was meant for the first submission. The jobs that it waited for are over, and
    sbatch refuses an id that slurmctld has forgotten."""
    over = bool(wait) or option.value != "singleton"
    return over if option.name == "dependency" else option.name in _USED_UP


def _repeat_option(option: SbatchOption, folder: str) -> tuple[str, ...]:
    """The words of a typed option, for any folder."""
    if option.name not in _OWN_FILES or option.value.startswith("/"):
        return option.words
    return (f"--{option.name}={normpath(join(folder, option.value))}",)


def _sets_variables(job: Submission) -> bool:
    """Whether the typed line gave the job other variables than those of the shell. Only the line tells them."""
    from sentinel.slurm.sbatch_words import split_sbatch_words  # few looks have a dead job

    options, _ = split_sbatch_words(job.line.split()[1:])
    named = [one for one in options if one.name in ("export", "export-file")]
    return any(one.value != "ALL" for one in named)


def _split_typed_line(
    job: Submission, without: str
) -> tuple[Sequence[SbatchOption], Sequence[str]]:
    """The options and the command of the typed line, if its words are known: sbatch itself would read the
    job's script there (a value with a blank would end the options), and no option contradicts what is
    added. Else two empty lists."""
    from sentinel.slurm.sbatch_words import split_sbatch_words  # few looks have a dead job

    program, *words = job.line.split() or [""]
    options, command = split_sbatch_words(words)
    # A site may have renamed it, behind a wrapper (sbatch.real).
    named = program.rpartition("/")[2].partition(".")[0]
    if not command or "--" in words[: -len(command)] or named != "sbatch":
        return (), ()
    script, *arguments = job.command.split()
    same = normpath(join(job.workdir, command[0])) == normpath(script)
    if not same and script.endswith(f"/{command[0]}") and "/" not in command[0]:
        same, command = True, (script, *command[1:])  # sbatch found it in PATH
    moved = any(one.name == "chdir" for one in options)
    odd = any(
        one.name in _UNREPEATABLE
        or (one.name in ("chdir", *(_OWN_FILES if moved else ())) and one.value[:1] != "/")
        or (one.name == "export-file" and one.value.isdigit())
        or (one.name in ("nodelist", "nodefile") and without)
        for one in options
    )
    blank = " " in job.name or not _PLAIN_PATTERN.fullmatch(job.line)
    known = same and (job.bare or [*command[1:]] == arguments)
    return (options, command) if known and not (odd or blank or "_" in job.id) else ((), ())


def _kept_options(job: Submission, without: str, wait: str) -> tuple[str, ...]:
    """The options for the nodes that the job must not get, and for what it waits for."""
    after = (f"--dependency={wait}",) if wait else ()
    try:
        names = [*(hostlist.expand_hostlist(job.exclude) if job.exclude else ())]
        names += [hostlist.check_name(without)] if without else []
    except Invalid:
        return after
    return (*after, f"--exclude={hostlist.fold_for_people(names)}") if names else after


def _make_submission(told: dict[str, str]) -> Submission:
    nodes, tasks = _parse_number(told["NumNodes"]), _parse_number(told["NumTasks"])
    asked = (told[f"tres-per-{what}"] for what in ("job", "node", "task", "socket"))
    per_job, per_node, per_task, per_socket = asked
    gpus = gres.count_job_gpus(
        told["tres-alloc"], per_job, per_node, per_task, per_socket, nodes, tasks
    )
    return Submission(
        id=told["JobArrayID"],
        name=told["Name"],
        user=told["UserName"],
        workdir=told["WorkDir"],
        command=told["Command"],
        stdout=told["STDOUT"],
        options=tuple(_submit_options(told, nodes, tasks)),
        gpus=gpus or 0,
        nodes=nodes,
        host=told["AllocNodes"] if told["AllocNodes"] != "N/A" else "",
        batch=told["BatchFlag"] != "0",
    )


def _submit_options(told: dict[str, str], nodes: int, tasks: int) -> Iterator[str]:
    yield f"--job-name={told['Name']}"
    for key, option in (("Partition", "partition"), ("Account", "account"), ("QOS", "qos")):
        if told[key] not in ("", "N/A"):
            yield f"--{option}={told[key]}"
    if nodes:
        yield f"--nodes={nodes}"
    if tasks and tasks != nodes:
        yield f"--ntasks={tasks}"
    if 1 < _parse_number(told["cpus-per-task"]) < MAX_SHORT_NUMBER:
        yield f"--cpus-per-task={told['cpus-per-task']}"
    for key, option in (("Feature", "constraint"), ("Reservation", "reservation")):
        if told[key] not in ("", "N/A"):
            yield f"--{option}={told[key]}"
    yield from _tres_options(told)
    if _TIME_PATTERN.fullmatch(told["TimeLimit"]):
        yield f"--time={told['TimeLimit']}"
    task = told["JobArrayID"].partition("_")[2]
    if task.isdigit():
        yield f"--array={task}"


def _tres_options(told: dict[str, str]) -> Iterator[str]:
    """The options that ask for `gres:gpu:8` (`gres/gpu:8` from 24.05 on, and `gpu:8` of a node in
    20.11)."""
    for key, option in (
        ("tres-per-node", "gres"),
        ("tres-per-job", "gpus"),
        ("tres-per-task", "gpus-per-task"),
    ):
        text = told[key] if told[key] != "N/A" else ""
        items = re.findall(rf"(?:^|,)(?:gres[:/]){'?' if option == 'gres' else ''}([^,]+)", text)
        if option != "gres":
            items = [item.removeprefix("gpu:") for item in items if item.startswith("gpu:")]
        if items:
            yield f"--{option}={','.join(items)}"


def _parse_number(text: str) -> int:
    return parse_count(text) if text.isdigit() else 0
