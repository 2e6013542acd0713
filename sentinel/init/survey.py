"""What `init` finds out about the host, its Slurm, and whose jobs run there. Changes nothing."""

from __future__ import annotations

import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from sentinel.checks.filesystems.observation import mount_table
from sentinel.clock import SystemClock
from sentinel.config.settings import Settings
from sentinel.config.starter import HostSurroundings, StarterTraining
from sentinel.core.cluster import has_processes
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import decode_lines
from sentinel.init.gpu_trial import ask_gpu_nodes
from sentinel.slurm.filename_patterns import job_output_path
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.user_files.whose import Whose
from sentinel.wiring import app, one_shot

if TYPE_CHECKING:
    from sentinel.core.cluster import Job, Node

MAX_NAMES = 8
"""How many of each kind are listed. A site that mounts every home separately has thousands."""

MAX_TRAININGS = 3
"""This many trainings are watched. The file names the others."""

LOG_TAIL_BYTES = 256 * 1024
"""How many bytes of a log are searched for the name of a checkpoint."""

MIN_LINES, MAX_WAIT_S, YOUNG_S = 50, 30, 600
"""A log with fewer lines is too young to say that none of its numbers advances: those of jobs which
started less than YOUNG_S ago are read again each second for so many seconds."""

SHARED_FS_TYPES = frozenset({
    "afs", "beegfs", "ceph", "cifs", "fuse.beegfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs",
    "fuse.juicefs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3",
    "wekafs",
})  # fmt: skip
"""Types of /proc/filesystems whose files other machines see as well."""

_FOLDER_OPTION = re.compile(
    r"--?(?:save|save[-_]dir|output[-_]dir|checkpoint[-_]dir|ckpt[-_]dir|default[-_]root[-_]dir)"
)
"""Megatron-LM's --save, transformers' --output_dir, fairseq's --save-dir, Lightning's
--default_root_dir: https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py"""

_FOLDER_VARIABLE = re.compile(r"(?:export )?(?:CHECKPOINT|CKPT|SAVE)(?:S|_PATH|_DIR)?=(\S+)")
_STEP_PATH = re.compile(
    r"(?<![\w./@%+-])(/[\w./@%+-]*?)/(?:global_?step|iter|step|epoch|checkpoint|ckpt)[-_=]?\d+",
    re.I,
)


class RunningTraining(Struct, frozen=True, kw_only=True):
    """A training that runs: its newest job, how many GPUs, its log with that log's last line, and
    as far as they are recognised who wrote it and which number advances."""

    training: StarterTraining
    job: Job
    gpus: int = 0
    log: str = ""
    last: str = ""
    trainer: str = ""
    number: str = ""
    young: bool = False  # Whether the log has too few lines to say that no number advances.


class SurveyResult(Struct, frozen=True, kw_only=True):
    """Everything that was seen; `trouble`: what could not be, in sentences."""

    here: HostSurroundings
    seen: tuple[RunningTraining, ...] = ()
    trouble: tuple[str, ...] = ()


def survey_host(
    user: str,
    *,
    job: str = "",
    service: bool = False,
    waiting: Callable[[str], None] | None = None,
) -> SurveyResult:
    """Survey the host, with a few questions to Slurm. If `job` is given, only this training is
    used. With `waiting`, which is told what for, it waits for lines of a young log."""
    trouble: list[str] = []
    theirs = _list_user_jobs(user, trouble)
    seen = () if service else tuple(_find_trainings(theirs, user, job, trouble, waiting))
    cluster, partitions, gpu_nodes = _read_cluster(trouble)
    names = Counter(j.name for j in theirs[1]) if theirs else Counter[str]()
    trainings = tuple(s.training for s in seen)
    if job and not trainings and not service:
        trainings = (StarterTraining(name=job, user=user),)
        trouble.append(f"no job {job} of {user} runs now: you get an alert until it starts")
    local, shared = _list_mount_points(shared=False), _list_mount_points(shared=True)
    more = [m for s in seen for m in _find_training_mounts(s) if m not in (*local, *shared)]
    here = HostSurroundings(
        cluster=cluster,
        slurm=app.has_slurm(),
        service=service,
        local=local,
        shared=(*shared, *dict.fromkeys(more)),
        jobs=_list_most_common(
            Counter({n: c for n, c in names.items() if n not in {t.name for t in trainings}})
        ),
        partitions=partitions,
        trainings=trainings,
        gpus=bool(gpu_nodes),
        gpu_trouble=ask_gpu_nodes(gpu_nodes) if service and gpu_nodes else "",
    )
    return SurveyResult(here=here, seen=seen, trouble=tuple(trouble))


def _list_user_jobs(user: str, trouble: list[str]) -> tuple[SlurmSnapshot, list[Job]] | None:
    """The port to Slurm that shows this user's jobs, and these; None where there is no Slurm."""
    if not app.has_slurm():
        return None
    theirs = SlurmSnapshot(
        app.make_snapshot(Settings()).client, SystemClock(), users=[user], max_age=60
    )
    try:
        # a link of a chain is no training
        own = [j for j in theirs.jobs() if j.user == user and not j.name.startswith("sentinel-")]
        return theirs, own
    except CannotTell as error:
        trouble.append(f"the jobs of {user} cannot be seen: {error}")
        return None


def _read_cluster(trouble: list[str]) -> tuple[str, tuple[str, ...], list[Node]]:
    """Its name, its partitions, and the nodes that have GPUs."""
    if not app.has_slurm():
        return "", (), []
    ours = app.make_snapshot(Settings())
    try:
        name = ours.controller().cluster
        nodes = ours.nodes()
    except CannotTell as error:
        trouble.append(f"Slurm does not answer: {error}")
        return "", (), []
    partitions = Counter(p for node in nodes for p in node.partitions)
    return name, _list_most_common(partitions), [node for node in nodes if "gpu" in node.gres]


def _find_trainings(
    theirs: tuple[SlurmSnapshot, list[Job]] | None,
    user: str,
    wanted: str,
    trouble: list[str],
    waiting: Callable[[str], None] | None,
) -> Iterator[RunningTraining]:
    """The largest jobs that run and write an output, one of each name: those with GPUs, or where
    none has any all."""
    if theirs is None:
        return
    snapshot, jobs = theirs
    gpus = _count_job_gpus(snapshot)
    running = [j for j in jobs if has_processes(j) and wanted in ("", j.name)]
    with_gpus = [j for j in running if gpus.get(j.job_id)]
    by_size = sorted(
        with_gpus or running,
        key=lambda j: (-gpus.get(j.job_id, 0), -j.node_count, j.started or 0),
    )
    first = {j.name: j for j in reversed(by_size)}
    chosen = [j for j in by_size if first[j.name] is j]
    queued = {j.name for j in jobs if j.state == "PENDING"}
    picked = chosen[:MAX_TRAININGS]
    logs = {j.job_id: _read_job_log(snapshot, j, trouble) for j in picked}
    fresh = (logs[j.job_id] for j in picked if (j.started or 0) > time.time() - YOUNG_S)
    young = {log: text for log, text in fresh if log}
    if waiting:
        young = await_progress(young, lambda log: _read_log_tail(log, user), waiting)
    for job in picked:
        log, text = logs[job.job_id]
        count, text = gpus.get(job.job_id, 0), young.get(log, text)
        yield _inspect_training(snapshot, job, count, job.name in queued, log, text)
    if left := [j.name for j in chosen[MAX_TRAININGS:]]:
        trouble.append(
            f"of {user}'s jobs only the largest are watched, not: {', '.join(left[:MAX_NAMES])}"
        )


def _count_job_gpus(snapshot: SlurmSnapshot) -> dict[str, int]:
    with suppress(CannotTell):
        return {job: count or 0 for job, count in snapshot.gpus().items()}
    return {}


def _read_job_log(snapshot: SlurmSnapshot, job: Job, trouble: list[str]) -> tuple[str, str]:
    """The path of its output, and the end of that."""
    log = ""
    try:
        end = snapshot.job_end(job.job_id)
        log = job_output_path(end.stdout, job) if end and end.stdout else ""
        return log, _read_log_tail(log, job.user) if log else ""
    except CannotTell as error:
        trouble.append(f"the log of {job.name} cannot be read: {error}")
        return log, ""


def _inspect_training(
    snapshot: SlurmSnapshot, job: Job, gpus: int, waits: bool, log: str, text: str
) -> RunningTraining:
    # the kind `log` may be missing in this installation
    from sentinel.checks.log.recognition import recognise_log

    folders, known = (
        dict.fromkeys(_find_checkpoint_folders(text, _read_batch_script(snapshot, job))),
        recognise_log(text),
    )
    found = next((folder for folder in folders if _has_checkpoints(folder)), "")
    lines = text.rstrip().splitlines()
    return RunningTraining(
        training=StarterTraining(name=job.name, user=job.user, waits=waits, checkpoints=found),
        job=job,
        gpus=gpus,
        log=log,
        last=lines[-1] if lines else "",
        trainer=known.first_trainer,
        number=known.number.name if known.number else "",
        young=len(lines) < MIN_LINES,
    )


def await_progress(
    texts: Mapping[str, str],
    read: Callable[[str], str],
    waiting: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, str]:
    """The texts of logs by their paths. All of them are waited for at the same time: each is read again
    each second until a number that advances is recognised, or it has lines enough to say that there is
    none. The wait ends after MAX_WAIT_S, if one cannot be read, or if a person presses Ctrl-C."""
    known = dict(texts)
    for second in range(MAX_WAIT_S):
        young = [log for log, text in known.items() if not _is_long_enough(text)]
        if not young:
            break
        if not second:
            waiting(
                f"waiting up to {MAX_WAIT_S}s for lines of {', '.join(young)} that show their progress"
                " (Ctrl-C goes on)"
            )
        try:
            pause(1.0)
            for log in young:
                known[log] = read(log)
        except (KeyboardInterrupt, CannotTell):
            break
    return known


def _is_long_enough(text: str) -> bool:
    from sentinel.checks.log.recognition import recognise_log

    return text.count("\n") >= MIN_LINES or bool(recognise_log(text).number)


def _read_log_tail(path: str, user: str) -> str:
    from sentinel.checks.log.files import LogFiles

    return (
        LogFiles(10.0, 10.0, {}).read_tail(path, LOG_TAIL_BYTES, Whose(user=user, owned=True)) or ""
    )


def _read_batch_script(snapshot: SlurmSnapshot, job: Job) -> str:
    """The batch script, which Slurm shows to the job's user and to administrators."""
    try:
        words = ("scontrol", "write", "batch_script", job.job_id, "-")
        return decode_lines(snapshot.client.ask_slurm(*words))
    except CannotTell:
        return ""


def _find_checkpoint_folders(log: str, script: str) -> Iterator[str]:
    """Where checkpoints may lie: before a step in a path of the log, and what the script names."""
    yield from reversed(_STEP_PATH.findall(log)[-50:])
    for line in script.splitlines():
        if match := _FOLDER_VARIABLE.match(line.strip()):
            yield from _select_absolute_paths([match[1].strip("\"'")])
        yield from _select_absolute_paths(_list_folder_options(line))


def _list_folder_options(line: str) -> Iterator[str]:
    try:
        words = shlex.split(line.rstrip("\\"), comments=True)
    except ValueError:
        return
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if _FOLDER_OPTION.fullmatch(option):
            yield value if equals else following


def _select_absolute_paths(paths: Iterable[str]) -> Iterator[str]:
    return (path.rstrip("/") for path in paths if path.startswith("/") and "$" not in path)


def _has_checkpoints(folder: str) -> bool:
    """Whether the check of that kind finds one that is complete."""
    with suppress(Exception):  # no check accepts the path, or the folder does not answer
        outcome = one_shot.run_check_once(
            one_shot.make_one_shot_check("checkpoint", {"path": [folder]}), None
        )
        return any(f.values.get("complete") for f in outcome.findings)
    return False


def _find_training_mounts(seen: RunningTraining) -> Iterator[str]:
    """The mount points of the file systems that the training writes to."""
    with suppress(CannotTell):
        table = mount_table()
        for path in (seen.log, seen.training.checkpoints, seen.job.workdir):
            mount = table.find_mount(path) if path.startswith("/") else None
            point = table.find_main_mount(mount).point if mount else "/"
            if point != "/" and point.isprintable():
                yield point


def _list_most_common(found: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _count in found.most_common(MAX_NAMES))


def _list_mount_points(*, shared: bool) -> tuple[str, ...]:
    try:
        table = mount_table()
    except CannotTell:
        return ()
    found = table.list_mounts_of_types(SHARED_FS_TYPES) if shared else table.list_local_mounts()
    return tuple(m.point for m in found if m.point.isprintable())[:MAX_NAMES]
