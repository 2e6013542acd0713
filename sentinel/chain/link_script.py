"""The script of a link: sentinel itself, and behind it what keeps the chain alive without it."""

import shlex

from sentinel.chain.folder import Place, mount_of
from sentinel.chain.model import LETTERS, Chain

RESTARTS = 50
"""Times that a link without sentinel requeues itself, 43 minutes each, until it gives up."""

_HEAD = """\
#!/bin/bash
# One link of sentinel's {mode} {name}. Written by `sentinel cron install`, and written anew by it.
# Slurm starts no job whose output it cannot open, as on a file system that is away: so this does it,
# and waits for none that hangs.
log={log}"${{SLURM_JOB_NAME##*-}}.log"
timeout -k 5 20 touch "$log" 2>/dev/null && exec >"$log" 2>&1
"""

_LINK = """
# It makes sure of its successors first, then makes one pass, and ends.
timeout -k 30 {bound} {command} cron link --dir {folder}
"""

_RELAY = """
# It makes sure of its successor, which waits beside it and takes over when it ends, and looks again
# while it runs: sbatch may have failed, the successor may be held or cancelled. 66: taken away.
timeout -k 30 600 {command} cron link --dir {folder}
while sleep {every}; do
    timeout -k 30 600 {command} cron link --dir {folder}
    [ "$?" -eq 66 ] && break
done &
{command} run --standby{config} &
service=$!
trap 'kill -TERM "$service"' TERM
wait "$service"
code=$?
[ "$code" -gt 128 ] && {{ wait "$service"; code=$?; }} # the signal ended the first wait
[ "$code" -eq 0 ] && exit 0
timeout -k 30 60 {command} cron link --dir {folder}
"""

_TAIL = """\
code=$?
[ "$code" -eq 0 ] && exit 0
# Taken away in the meantime, while the file system that it lay on is there.
[ "$code" -eq 66 ] && [ ! -e {folder}/chain.json ] && mountpoint -q {mount} && exit 0
[ "${{SLURM_RESTART_COUNT:-0}}" -ge {restarts} ] && exit "$code"

# sentinel could not do its work here (a file system that is away or hangs, a broken installation, a
# node without Python). The chain must not end with that: a successor, unless one waits already, from
# this very script as Slurm keeps it on the node.
echo "sentinel ended with code $code; the chain goes on without it" >&2
turn=0
case $SLURM_JOB_NAME in {turns} esac
for wait in 5 30 120 600 1800; do
    if waiting=$(squeue -h -a -u "$(id -u)" -n "$SLURM_JOB_NAME" -t PENDING -o %A); then
        [ -n "$waiting" ] && exit "$code"
        now=$(date +%s)
        slot=$((((now - turn) / {period} + 1) * {period} + turn))
        if sbatch --job-name="$SLURM_JOB_NAME" --comment="sentinel $slot {revision}" \\
            --begin="now+$((slot - now))" \\
            {again} "$0"; then
            exit "$code"
        fi
    fi
    sleep "$wait"
done
exec scontrol requeue "$SLURM_JOB_ID"
"""


def link_script(chain: Chain, place: Place, submission: list[str]) -> str:
    """What sbatch is given. `submission` is the command by which a link is submitted."""
    config = f" -c {shlex.quote(chain.config)}" if chain.config else ""
    return (_HEAD + (_RELAY if chain.mode == "relay" else _LINK) + _TAIL).format(
        mode=chain.mode,
        name=chain.name,
        command=shlex.join(chain.command),
        folder=shlex.quote(place.folder),
        log=shlex.quote(f"{place.folder}/link-"),
        mount=shlex.quote(chain.mount or mount_of(place.folder)),
        bound=chain.time_limit - min(60, chain.time_limit // 8),
        restarts=RESTARTS,
        turns=" ".join(f"*-{L}) turn={n * chain.every} ;;" for n, L in enumerate(LETTERS)),
        period=chain.every * chain.strands,
        every=chain.every,
        revision=chain.revision,
        config=config,
        again=shlex.join(_again(submission)),
    )


def _again(submission: list[str]) -> list[str]:
    """The options of a submission that do not differ from link to link."""
    varying = ("sbatch", "--job-name=", "--comment=", "--begin=", "--parsable")
    return [word for word in submission[:-1] if not word.startswith(varying)]
