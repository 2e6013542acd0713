"""The file that `sentinel config init` writes: it works as it stands and explains itself."""

import os
from collections.abc import Sequence

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
# state: /var/lib/sentinel
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

_SLURM = """
  slurm:                      # whether Slurm's controller answers
    kind: slurm
    for: 2m                   # bad this long before anybody is told
"""

_JOB = """
  # training:                 # whether a training runs and another job waits behind it
  #   kind: job
  #   every: 5m
  #   name: my-training       # exact; or match: 'my-training-.*'
  #   users: %s
  #   queued: 1               # warn when fewer wait behind the running one
  #   for: 10m
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


def starter(
    *,
    cluster: str = "",
    user: str = "alice",
    file_systems: Sequence[str] = (),
    slurm: bool = False,
) -> str:
    """The text of a new sentinel.yaml; what is not known of the host stays a comment.

    `slurm`: whether there is a Slurm client here.
    """
    paths = flow([*file_systems] or ["/scratch"])
    return "".join(
        (
            _HEAD,
            _CLUSTER % ("" if cluster else "# ", scalar(cluster or "my-cluster")),
            _CHECKS % f"# paths: {paths}   # default: all file systems on local disks",
            _SLURM if slurm else "",
            _JOB % flow([user]),
            _CHANNELS % flow([f"{user}@example.org"]),
        )
    )


def write_new(path: str, text: str) -> None:
    """A file only its owner can read; raises FileExistsError rather than replace one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
