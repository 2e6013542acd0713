"""The script of a link: sentinel itself, and behind it what keeps the chain alive without it."""

import shlex

from sentinel.core.chain.nouns import LETTERS, Chain
from sentinel.cron.place import Place, mount_of

RESTARTS = 50
"""Times that a link without sentinel requeues itself, 43 minutes each, until it gives up."""

_LINK = """\
#!/bin/bash
# One link of sentinel's chain {name}. Written by `sentinel cron install`, and written anew by it.
# It makes sure of its successors first, then makes one pass, and ends.
{command} cron link --dir {folder}
code=$?
[ "$code" -eq 0 ] && exit 0
# Taken away in the meantime, while the file system that it lay on is there.
[ "$code" -eq 66 ] && [ ! -e {folder}/chain.json ] && mountpoint -q {mount} && exit 0
[ "${{SLURM_RESTART_COUNT:-0}}" -ge {restarts} ] && exit "$code"

# sentinel could not do its work here (a file system that is away, a broken installation, a node
# without Python). The chain must not end with that: a successor, unless one waits already.
echo "sentinel cron link ended with code $code; the chain goes on without it" >&2
turn=0
case $SLURM_JOB_NAME in {turns} esac
for wait in 5 30 120 600 1800; do
    if waiting=$(squeue -h -a -u "$(id -u)" -n "$SLURM_JOB_NAME" -t PENDING -o %A); then
        [ -n "$waiting" ] && exit "$code"
        now=$(date +%s)
        slot=$((((now - turn) / {period} + 1) * {period} + turn))
        if sbatch --job-name="$SLURM_JOB_NAME" --comment="sentinel $slot {revision}" \\
            --begin="now+$((slot - now))" --output={output}"${{SLURM_JOB_NAME##*-}}.log" \\
            {again}; then
            exit "$code"
        fi
    fi
    sleep "$wait"
done
exec scontrol requeue "$SLURM_JOB_ID"
"""

_RELAY = """\
#!/bin/bash
# One runner of sentinel's relay {name}. Written by `sentinel cron install`.
# It makes sure of its successor, which waits beside it and takes over when it ends, and looks again
# while it runs: sbatch may have failed, the successor may be held or cancelled. 66: taken away.
{command} cron link --dir {folder}
while sleep {every}; do
    {command} cron link --dir {folder}
    [ "$?" -eq 66 ] && break
done &
exec {command} run --standby{config}
"""


def link_script(chain: Chain, place: Place, submission: list[str]) -> str:
    """What sbatch is given. `submission` is the command by which a link is submitted."""
    config = f" -c {shlex.quote(chain.config)}" if chain.config else ""
    return (_RELAY if chain.mode == "relay" else _LINK).format(
        name=chain.name,
        command=shlex.join(chain.command),
        folder=shlex.quote(place.folder),
        mount=shlex.quote(chain.mount or mount_of(place.folder)),
        restarts=RESTARTS,
        turns=" ".join(f"*-{L}) turn={n * chain.every} ;;" for n, L in enumerate(LETTERS)),
        period=chain.every * chain.strands,
        every=chain.every,
        revision=chain.revision,
        config=config,
        output=shlex.quote(place.output("").removesuffix(".log").replace("%", "%%")),
        again=shlex.join(_again(submission)),
    )


def _again(submission: list[str]) -> list[str]:
    """The words of a submission that do not differ from link to link."""
    varying = ("sbatch", "--job-name=", "--comment=", "--begin=", "--parsable", "--output=")
    return [word for word in submission if not word.startswith(varying)]
