"""The file that `sentinel config init` writes: it works as it stands and explains itself."""

import os

from msgspec import Struct

from sentinel.config.yamltext import flow, scalar

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

_CHANNELS = """
channels:
  terminal: {kind: console}
  # mail:
  #   kind: email
  #   to: %s
  #   from: sentinel@example.org
  #   host: smtp.example.org
  #   username: sentinel
  #   password: {file: /etc/sentinel/smtp-password}
  # book: {kind: file, path: $HOME/sentinel-alerts.jsonl}   # one JSON object a line

# Without routes every channel hears everything. The first route that matches decides.
# routes:
#   - {match: {severity: critical}, to: [mail], repeat: 4h}
#   - {to: [terminal]}
"""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What is known of the host: `slurm`, whether it has a Slurm client; `local` and `shared`
    mount points; names of the user's `jobs` and of `partitions`, the likeliest first. `service`:
    it is the service's file, whose state is where everybody's look at it finds it."""

    cluster: str = ""
    slurm: bool = False
    service: bool = False
    local: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


def starter(here: Surroundings, *, user: str = "alice") -> str:
    """The text of a new sentinel.yaml; what is not known for certain stays a comment."""
    paths = flow([*here.local] or ["/scratch"])
    cluster = here.cluster
    return "".join(
        (
            _HEAD,
            _CLUSTER
            % (
                "" if cluster else "# ",
                scalar(cluster or "my-cluster"),
                "" if here.service else "# ",
            ),
            _CHECKS % f"# paths: {paths}   # default: all file systems on local disks",
            _SHARED % flow([*here.shared]) if here.shared else "",
            _SLURM if here.slurm else "",
            _job(here, user),
            _CHANNELS % flow([f"{user}@example.org"]),
        )
    )


def _job(here: Surroundings, user: str) -> str:
    """Names that have jobs at this moment are candidates: which of them is a training, who knows?"""
    name = scalar(here.jobs[0] if here.jobs else "my-training")
    others = flow([*here.jobs[1:]]) if here.jobs[1:] else ""
    hint = (
        f"   # exact; you also run {others}" if others else "   # exact; or match: 'my-training-.*'"
    )
    first = here.partitions[:1]
    where = f"  #   partition: {scalar(first[0])}" if first else ""
    rest = f"   # only there; this cluster has {flow([*here.partitions])}" if first else ""
    return _JOB % (name, hint, flow([user]), f"{where}{rest}\n" if where else "")


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
