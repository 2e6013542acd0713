"""The file that `sentinel init` writes: it works as it stands and explains itself."""

import os
import re
from collections.abc import Collection, Mapping
from textwrap import wrap
from typing import Any

from msgspec import Struct

from sentinel.config.yamltext import flow_text, scalar_text, yaml_text

_HEAD = """\
# Configuration of sentinel. Check it with: sentinel config check
# Durations are written 90s, 15m, 2h, 3d; sizes 40TB (10^12) or 2TiB (2^40); shares 85%.
# Any text may be kept elsewhere: {env: NAME}, {file: PATH} or {credential: NAME} (systemd).
"""

_CLUSTER = """
# A label on every message. Default: what Slurm calls its cluster.
%scluster: %s

# Where alerts and unsent messages are kept. Default: $XDG_STATE_HOME/sentinel
%sstate: /var/lib/sentinel
"""

_CHECKS = """
checks:
  disks:                      # the name is yours
    kind: fs
    every: 1m                 # or a crontab line, e.g. cron: "*/30 8-20 * * mon-fri"
    %s
    warn: {used: 85%%, inodes_used: 85%%}
    crit: {used: 95%%, inodes_used: 95%%}
"""

_SHARED = """
  shared:                     # whether the file systems of other servers answer, and are not full
    kind: fs
    every: 5m
    paths: %s
    warn: {used: 95%%, inodes_used: 95%%}
    crit: {used: 98%%, inodes_used: 98%%}
    for: 5m
"""

_SLURM = """
  slurm:                      # whether Slurm's controller answers
    kind: slurm
    for: 2m                   # bad this long before anybody is told
"""

_JOB = """
  # training:                 # whether a training runs and another job waits behind it
  #   kind: job
  #   name: %s%s
  #   users: %s
%s  #   queued: 1               # warn when fewer wait behind the running one
  #   runbook: "Call the on-call engineer"
"""

_WHY = {
    "job": "whether it runs, and what happened if it does not",
    "log": "whether it advances: to run is not enough",
    "checkpoint": "whether new checkpoints come, and how much work is at risk",
}

STARTER_COMMENTS = frozenset(f"# {why}" for why in _WHY.values())
"""Above the checks that go with them."""

_CLUSTER_CHECKS = """
  trainings:                  # every large job of every user; each is told by its own name
    kind: job
    users: "*"
    %s

  nodes: {kind: nodes}        # nodes that cannot work, why and since when

  drained: {kind: drained}    # drained nodes that look fine again; it tells, and changes nothing
"""

_GPUS = """
  %sgpus: {kind: gpu, nodes: all}   # GPUs that are missing, failing, hot or known lemons
"""

_MAIL = """\
  # mail:
  #   kind: email
  #   to: %s
  #   from: sentinel@example.org
  #   host: smtp.example.org
  #   username: sentinel
  #   password: {file: /etc/sentinel/smtp-password}
"""

_CHANNELS = """
channels:
%s%s
# Without routes every channel hears everything. The first route that matches decides.
# routes:
#   - {match: {severity: critical}, to: [%s], repeat: 4h}
#   - {to: [%s]}
"""

_BOOK = "  # book: {kind: file, path: $HOME/sentinel-alerts.jsonl}   # one JSON object a line\n"
_CONSOLE = "  terminal: {kind: console}\n"


class StarterTraining(Struct, frozen=True, kw_only=True):
    """A job to watch. `waits`: another job of its name is queued after it. `checkpoints` is the
    folder of its checkpoints, empty if none was found. `match` is a pattern that replaces the name.
    """

    name: str  # Name of the job.
    user: str  # Its owner.
    waits: bool = False
    checkpoints: str = ""
    match: str = ""


class HostSurroundings(Struct, frozen=True, kw_only=True):
    """What is known of the host: `slurm`, whether it has a Slurm client; `local` and `shared`
    mount points; names of the user's `jobs` and of `partitions`, the likeliest first. `service`:
    it is the service's file, whose state is where everybody's look at it finds it. `trainings`
    are watched, the other `jobs` are only named. `channels`: who is told, as in the file; none:
    the terminal. `gpus`: some node has GPUs; `gpu_trouble`: why the nodes that have some could not be
    asked for them."""

    cluster: str = ""  # Name of the cluster.
    slurm: bool = False
    service: bool = False
    local: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    trainings: tuple[StarterTraining, ...] = ()
    channels: Mapping[str, Mapping[str, Any]] = {}
    gpus: bool = False
    gpu_trouble: str = ""


def starter_text(here: HostSurroundings, *, user: str = "alice") -> str:
    """The text of a new sentinel.yaml. Uncertain values are comments."""
    paths = flow_text([*here.local] or ["/scratch"])
    cluster = here.cluster
    return "".join(
        (
            _HEAD,
            _CLUSTER
            % (
                "" if cluster else "# ",
                scalar_text(cluster or "my-cluster"),
                "" if here.service else "# ",
            ),
            _CHECKS % f"# paths: {paths}   # default: all file systems on local disks",
            _SHARED % flow_text([*here.shared]) if here.shared else "",
            _SLURM if here.slurm else "",
            _cluster_checks(here),
            _training_lines(here.trainings),
            "" if here.trainings else _job_example(here, user),
            _CHANNELS % _channel_lines(here, user),
        )
    )


_TAKEN = ("disks", "shared", "slurm", "trainings", "nodes", "drained", "gpus")


def _training_lines(found: Collection[StarterTraining]) -> str:
    used, lines = {*_TAKEN}, list[str]()
    for one in found:
        for name, block in training_checks(one, used).items():
            used.add(name)
            lines += ["", f"  # {_WHY[block['kind']]}"]
            lines += [f"  {line}" for line in yaml_text({name: block}).splitlines()]
    return "".join(f"{line}\n" for line in lines)


def training_checks(one: StarterTraining, taken: Collection[str]) -> dict[str, dict[str, Any]]:
    """The checks of a training, under names that are not taken."""
    name, users = free_name(one.name, taken), {"users": [one.user]}
    job = {"match": one.match, **users} if one.match else {"job": one.name, **users}
    named = {"match": one.match} if one.match else {"name": one.name}
    queued = {"queued": 1} if one.waits else {}
    checks: dict[str, dict[str, Any]] = {
        name: {"kind": "job", **named, **users, **queued},
        f"{name}-log": {"kind": "log", **job, "stale_after": "auto"},
    }
    if one.checkpoints:
        checks[f"{name}-checkpoints"] = {"kind": "checkpoint", "path": one.checkpoints, **job}
    return checks


def free_name(text: str, taken: Collection[str]) -> str:
    """A name for a check: letters, digits, dots and dashes of the text, and one that is free."""
    base = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40] or "job"
    names = (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3)))
    ends = ("", "-log", "-checkpoints")
    return next(n for n in names if not {n + end for end in ends} & {*taken})


def _cluster_checks(here: HostSurroundings) -> str:
    """The checks for a service that watches a whole cluster."""
    if not (here.service and here.slurm):
        return ""
    text = _CLUSTER_CHECKS % ("min_gpus: 8" if here.gpus else "min_nodes: 2")
    if not here.gpus:
        return text
    text += _GPUS % ("# " if here.gpu_trouble else "")
    why = f"no node answers: {here.gpu_trouble}" if here.gpu_trouble else ""
    # What is pasted stands on a line of its own.
    lines = [line for part in why.splitlines() for line in wrap(part, 90)]
    return text + "".join(f"  #   {line}\n" for line in lines)


def _channel_lines(here: HostSurroundings, user: str) -> tuple[str, str, str, str]:
    """The channels, the example of one more, and names for the examples of routes."""
    if not here.channels:
        return _CONSOLE, _MAIL % flow_text([f"{user}@example.org"]) + _BOOK, "mail", "terminal"
    text = "".join(f"  {line}\n" for line in yaml_text(dict(here.channels)).splitlines())
    name = next(iter(here.channels))
    example = "" if "mail" in here.channels else _MAIL % flow_text([f"{user}@example.org"])
    book = "" if "book" in here.channels else _BOOK
    return text, example + book, "mail" if example else name, name


def _job_example(here: HostSurroundings, user: str) -> str:
    """Names that have jobs at this moment are candidates: which of them is a training, who knows?"""
    name = scalar_text(here.jobs[0] if here.jobs else "my-training")
    others = flow_text([*here.jobs[1:]]) if here.jobs[1:] else ""
    hint = (
        f"   # exact; you also run {others}" if others else "   # exact; or match: 'my-training-.*'"
    )
    first = here.partitions[:1]
    where = f"  #   partition: {scalar_text(first[0])}" if first else ""
    rest = f"   # only there; this cluster has {flow_text([*here.partitions])}" if first else ""
    return _JOB % (name, hint, flow_text([user]), f"{where}{rest}\n" if where else "")


def make_folder(path: str) -> None:
    """The directory and those above it that are missing, closed to all others (XDG Base Directory
    Specification 0.8). Raises OSError."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        os.mkdir(path, 0o700)


def write_new(path: str, text: str) -> None:
    """A file only its owner can read; raises FileExistsError rather than replace one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
