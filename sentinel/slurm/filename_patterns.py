"""Slurm's filename patterns (sbatch(1), "filename pattern"): where a job's output goes. Pure."""

import glob
import re
from collections.abc import Callable

from sentinel.core import hostlist
from sentinel.core.cluster import Job
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.text import visible
from sentinel.user_files.whose import Whose

NO_VAL = 4294967294  # slurm.h: the array index of a job that is not in an array
_WIDEST = 10  # fname.c, MAX_WIDTH
_GLOB = frozenset("*?[")
_SYMBOL = lazy_pattern(r"%(?:%|(\d*)([AabJjNnstux]))")


def has_symbols(pattern: str) -> bool:
    """Whether a file name depends on the job, by a symbol such as `%j`."""
    return "\\" not in pattern and any(m[2] for m in _SYMBOL.finditer(pattern))


def whose_path(pattern: str, job: Job | None) -> Whose:
    """Whose rights are used to open a configured path: those of the job's user if the job decides
    the path, by a symbol or by its working directory."""
    literal = job is None or (pattern.startswith("/") and not has_symbols(pattern))
    return Whose(user=job.user if job else "", literal=literal)


def fill_symbols(pattern: str, job: Job) -> str:
    """Fill in the symbols of a configured path for a job.

    Raises CannotTell if a name that a user chose would lead to another folder. In a shell pattern
    such a name is escaped, so that it matches only itself."""
    escape = glob.escape if is_glob(pattern) else str

    def fill_one(name: str) -> str:
        if "/" in name or "\0" in name or name in (".", ".."):
            raise CannotTell(
                f"the name {visible(name)!r} would lead to another folder: it holds / or is only dots"
            )
        return escape(name)

    return _expand_path(pattern, job, fill_one)


def is_glob(path: str) -> bool:
    """Whether the last part of a path is a shell pattern."""
    return bool(_GLOB & set(path.rpartition("/")[2]))


def expand_output_path(pattern: str, job: Job) -> str:
    """The file that the batch script of the job writes to, as slurmstepd names it.

    A backslash anywhere switches all symbols off and is itself removed; a relative name is
    meant from the job's working directory. Per-node and per-task symbols name the first.
    Seen so on 22.05, where only %b (24.05 and later) is still left as it stands.
    """
    return _expand_path(pattern, job, str)


def _expand_path(pattern: str, job: Job, fill: Callable[[str], str]) -> str:
    if "\\" in pattern:
        name = re.sub(r"\\(.?)", r"\1", pattern, flags=re.DOTALL)
    else:
        name = _SYMBOL.sub(lambda m: fill(_symbol_text(m, job)) if m[2] else "%", pattern)
    return name if name.startswith("/") else f"{job.workdir.rstrip('/')}/{name}"


def job_output_path(stdout: str, job: Job) -> str:
    """The path of a job's output, from the STDOUT field of squeue.

    squeue prints the pattern as the user wrote it. Up to 23.11 it prints slurm-JOBID.out for an
    array element without a pattern, while slurmstepd writes slurm-ARRAYID_TASK.out
    (`_print_job_std_out()` in src/squeue/print.c)."""
    folder, slash, name = stdout.rpartition("/")
    if job.task.isdigit() and name == f"slurm-{job.job_id}.out":
        stdout = f"{folder}{slash}slurm-{job.array_id}_{job.task}.out"
    return expand_output_path(stdout, job)


def first_host(nodes: str) -> str:
    """The short name of the first host of a hostlist: `n[03-05,9],m1` is `n03`. A text that is not
    a hostlist is returned as it is."""
    try:
        return hostlist.get_first_name(nodes).partition(".")[0]
    except Invalid:
        return nodes


def _symbol_text(match: "re.Match[str]", job: Job) -> str:
    symbol = match[2]
    texts = {"N": first_host(job.nodes), "u": job.user, "x": job.name, "s": "batch"}
    if symbol in texts:
        return texts[symbol]
    return str(_symbol_number(symbol, job)).zfill(min(int(match[1] or 0), _WIDEST))


def _symbol_number(symbol: str, job: Job) -> int | str:
    element = job.task.isdigit()
    task = int(job.task) if element else NO_VAL
    numbers: dict[str, int | str] = {
        "A": job.array_id if element else job.job_id,
        "a": task,
        "b": task % 10,
        "J": job.job_id,
        "j": job.job_id,
    }
    return numbers.get(symbol, 0)
