"""Installs, mends and removes a chain.

It also reads how long a partition lets a job run. Slurm accepts a job that asks for more time, and
lets it wait for ever (slurm.conf(5), EnforcePartLimits).

The script of a link calls sentinel. After that, it contains what keeps the chain alive when
sentinel itself is missing.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from zipfile import is_zipfile

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain.folder import ChainFolder, ChainNotInstalled, mount_point
from sentinel.chain.mend import SubmitLink
from sentinel.chain.model import STRAND_LETTERS, Chain, ChainMode
from sentinel.chain.queue import ChainQueue, SubmissionRefused
from sentinel.chain.timers import CronTable, SystemdTimer
from sentinel.core.digests import sha256
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_document
from sentinel.core.values import duration_text
from sentinel.homes import find_user_folder
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.complaints import describe_stderr
from sentinel.slurm.words import make_nonce, parse_time_limit

RESTARTS = 50
"""How often a link without sentinel requeues itself, at 43 minutes each, before it gives up."""

_SCRIPT_HEAD = """\
#!/bin/bash
# One link of sentinel's {mode} {name}. Written by `sentinel cron install`, and written anew by it.
# Slurm starts no job whose output it cannot open, as on a file system that is away: so this does it,
# and waits for none that hangs.
log={log}"${{SLURM_JOB_NAME##*-}}.log"
timeout -k 5 20 touch "$log" 2>/dev/null && exec >"$log" 2>&1
"""

_LINK_SCRIPT = """
# It makes sure of its successors first, then makes one pass, and ends.
timeout -k 30 {bound} {command} cron link --dir {folder}{config}
"""

_RELAY_SCRIPT = """
# It makes sure of its successor, which waits beside it and takes over when it ends, and looks again
# while it runs: sbatch may have failed, the successor may be held or cancelled. 66: taken away.
timeout -k 30 600 {command} cron link --dir {folder}{config}
while sleep {every}; do
    timeout -k 30 600 {command} cron link --dir {folder}{config}
    [ "$?" -eq 66 ] && break
done &
{command} run --standby{config} &
service=$!
trap 'kill -TERM "$service"' TERM
wait "$service"
code=$?
[ "$code" -gt 128 ] && {{ wait "$service"; code=$?; }} # the signal ended the first wait
[ "$code" -eq 0 ] && exit 0
timeout -k 30 60 {command} cron link --dir {folder}{config}
"""

_SCRIPT_TAIL = """\
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
        # What the job is for stands in the folder before it is submitted, as sentinel does it.
        printf '\\n{{"name":"%s","slot":%s,"revision":"{revision}","at":%s}}\\n' \\
            "$SLURM_JOB_NAME" "$slot" "$now" | timeout -k 5 20 tee -a {marks} >/dev/null
        if sbatch --job-name="$SLURM_JOB_NAME" --begin="now+$((slot - now))" \\
            {again} "$0"; then
            exit "$code"
        fi
    fi
    sleep "$wait"
done
exec scontrol requeue "$SLURM_JOB_ID"
"""


def link_script(chain: Chain, place: ChainFolder, submission: list[str]) -> str:
    """The script that sbatch gets. `submission` is the command that submits a link."""
    config = f" -c {shlex.quote(chain.config)}" if chain.config else ""
    return (
        _SCRIPT_HEAD + (_RELAY_SCRIPT if chain.mode == "relay" else _LINK_SCRIPT) + _SCRIPT_TAIL
    ).format(
        mode=chain.mode,
        name=chain.name,
        command=shlex.join(chain.command),
        folder=shlex.quote(place.folder),
        log=shlex.quote(f"{place.folder}/link-"),
        marks=shlex.quote(place.marks_path),
        mount=shlex.quote(chain.mount or mount_point(place.folder)),
        bound=chain.time_limit - min(60, chain.time_limit // 8),
        restarts=RESTARTS,
        turns=" ".join(f"*-{L}) turn={n * chain.every} ;;" for n, L in enumerate(STRAND_LETTERS)),
        period=chain.every * chain.strands,
        every=chain.every,
        revision=chain.revision,
        config=config,
        again=shlex.join(_repeated_options(submission)),
    )


def _repeated_options(submission: list[str]) -> list[str]:
    """The sbatch options that all links have in common."""
    varying = ("sbatch", "--job-name=", "--begin=", "--parsable")
    return [word for word in submission[:-1] if not word.startswith(varying)]


def longest_partition(client: SlurmClient, options: Sequence[str]) -> tuple[str, int] | None:
    """The partition that sbatch would choose with these options, and its time limit in seconds.

    The limit is None if there is none or it is not known. Raises CannotTell.
    """
    mark = make_nonce()
    out = client.ask_slurm("sinfo", "-h", "-a", "-o", f"%P{mark}%l{mark}")
    words = [decode_document(word).strip("\n") for word in out.split(mark.encode())]
    limits = dict(zip(words[::2], words[1::2], strict=False))
    named = [word.partition("=")[2] for word in options if word.startswith("--partition=")]
    wanted = named[-1] if named else next((p[:-1] for p in limits if p.endswith("*")), "")
    limit = limits.get(wanted, limits.get(f"{wanted}*", ""))
    try:
        known = parse_time_limit(limit.encode())
    except ValueError as error:
        raise CannotTell(f"sinfo: {error}") from error
    return (wanted, known) if known else None


LINK_TIME_S = 7200.0
RELAY_TIME_S = 86400.0
LINK_MEMORY = "--mem=500M"


class BadInstallRequest(SentinelError):
    """The request cannot be fulfilled."""

    exit_code = 64


class InstallRequest(Struct, frozen=True, kw_only=True):
    """The request to `install_chain`. Times are in seconds. `owner` is the state. It makes job
    names unique."""

    mode: ChainMode
    every: float
    time_limit: float | None
    strands: int
    config: str
    options: tuple[str, ...]
    delivers: bool
    owner: str


def plan_chain(wish: InstallRequest, folder: str, client: SlurmClient) -> Chain:
    """The chain for this request, within the limits of the partition. Raises BadInstallRequest."""
    if any(word.startswith(("--clusters", "-M")) for word in wish.options):
        raise BadInstallRequest(
            "--sbatch=--clusters: links look after each other on one cluster only"
        )
    usual = RELAY_TIME_S if wish.mode == "relay" else LINK_TIME_S
    allowed = _partition_limit(wish, client)
    if allowed and wish.time_limit and wish.time_limit > allowed[1]:
        raise BadInstallRequest(
            f"--time {duration_text(wish.time_limit)} is more than partition {allowed[0]} allows "
            f"({duration_text(allowed[1])}): such a job would wait for ever"
        )
    usual = min(usual, allowed[1]) if allowed else usual
    try:
        chain = Chain(
            name=f"sentinel-{_short_digest(wish.owner)}",
            every=int(wish.every),
            command=own_command(),
            mode=wish.mode,
            config=wish.config,
            strands=1 if wish.mode == "relay" else wish.strands,
            time_limit=int(wish.time_limit or usual),
            options=(LINK_MEMORY, *wish.options),
            delivers=wish.delivers,
            mount=mount_point(folder),
        )
    except SentinelError as error:
        raise BadInstallRequest(str(error)) from error
    return replace(chain, revision=_short_digest(repr(chain)))


def _partition_limit(wish: InstallRequest, client: SlurmClient) -> tuple[str, int] | None:
    if wish.mode not in ("chain", "relay"):
        return None
    try:
        return longest_partition(client, wish.options)
    except CannotTell:
        return None  # the trial submission gives the reason


def install_chain(chain: Chain, folder: str, client: SlurmClient, *, show_only: bool) -> list[str]:
    """Install a chain, and replace an older one. Returns lines that say what was done, or would be
    done."""
    place = ChainFolder(folder)
    if show_only:
        return _describe_install(chain, place, client)
    if not chain.is_in_slurm:
        return _install_entry(chain, place, client)
    try_submission(chain, folder, client)
    _leave_other_mode(chain, place, client)
    chain = replace(chain, installed=int(time.time()))
    with place.lock_install():
        place.install_files(chain, _chain_script(chain, place, client))
        done = _begin_chain(chain, place, client)
    return [*done, f"installed in {place.folder}; look at it with: {chain.command_line('status')}"]


def ensure_chain(folder: str, client: SlurmClient) -> list[str]:
    """Repair the chain. Returns lines that say what was done; empty if nothing was needed."""
    place = ChainFolder(folder)
    chain = place.read_chain()
    if not chain.is_in_slurm:
        return _ensure_entry(chain, place)
    with place.lock_install() as alone:
        if not alone:
            return []
        whole, done = ChainQueue(chain, place, client).mend_chain(
            os.environ.get("SLURM_JOB_ID", "")
        )
    if not whole:
        raise SubmissionRefused(
            f"a link waits that can never start; see: {chain.command_line('status')}"
        )
    return done


def remove_chain(folder: str, client: SlurmClient) -> list[str]:
    """Remove entries, files and jobs. The jobs go last, so that a running link cannot start the
    chain again."""
    place = ChainFolder(folder)
    try:
        chain = place.read_chain()
    except ChainNotInstalled as error:
        return [str(error)]
    if not chain.is_in_slurm:
        table_entry(chain, place).remove_entry()
        place.remove_files()
        return [f"{chain.mode}: the entry of {chain.name} is taken away"]
    queue = ChainQueue(chain, place, client)
    queue.list_links()  # raises if Slurm does not answer: then nothing is removed
    place.remove_files()
    jobs = queue.cancel_all()
    return [f"cancelled {', '.join(jobs) or 'no job: none was left'}; {place.folder} is taken away"]


def own_command() -> tuple[str, ...]:
    """The command that calls this installation of sentinel from elsewhere.

    A zipapp is called with the Python that it fits, because the first `python3` of another host may
    be another version.
    """
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == "__main__.py":
        return (sys.executable, "-m", "sentinel")
    return (sys.executable, program) if is_zipfile(program) else (program,)


def _describe_install(chain: Chain, place: ChainFolder, client: SlurmClient) -> list[str]:
    if not chain.is_in_slurm:
        return [table_entry(chain, place).block_text().rstrip("\n")]
    queue, now = ChainQueue(chain, place, client), time.time()
    slots = [
        SubmitLink(name, chain.next_slot(n, now) if chain.mode == "chain" else int(now))
        for n, name in enumerate(chain.strand_names)
    ]
    return [
        f"# {place.script_path}",
        _chain_script(chain, place, client).rstrip("\n"),
        "# submitted as",
        *(shlex.join(queue.submission_argv(step)) for step in slots),
    ]


def try_submission(chain: Chain, folder: str, client: SlurmClient) -> None:
    """Submit a link on trial before anything is changed. Raises SubmissionRefused.

    sbatch(1), --test-only: Slurm checks account, partition and limits, and submits nothing.
    """
    words = ChainQueue(chain, ChainFolder(folder), client).submission_argv(
        SubmitLink(chain.strand_names[0], 0)
    )
    try:
        done = client.run_command(words[0], "--test-only", *words[2:-1], "--wrap=true")
    except CannotTell as error:
        raise SubmissionRefused(str(error)) from error
    said = describe_stderr(done.err)
    if done.code:
        raise SubmissionRefused(
            f"Slurm refused a job of the chain: {said or f'exit code {done.code}'}"
        )


def _chain_script(chain: Chain, place: ChainFolder, client: SlurmClient) -> str:
    again = ChainQueue(chain, place, client).submission_argv(SubmitLink(chain.strand_names[0], 0))
    return link_script(chain, place, again)


def _leave_other_mode(chain: Chain, place: ChainFolder, client: SlurmClient) -> None:
    """Remove the entry of the other mode, or cancel the jobs of the old chain. If both modes ran,
    everything would run twice."""
    try:
        before = place.read_chain()
    except SentinelError:
        return
    if before.mode == chain.mode:
        return
    if not before.is_in_slurm:
        table_entry(before, place).remove_entry()
    elif not chain.is_in_slurm:
        ChainQueue(before, place, client).cancel_all()


def _install_entry(chain: Chain, place: ChainFolder, client: SlurmClient) -> list[str]:
    # first: if the new mode is unavailable, the old one must go on
    table_entry(chain, place).install_entry()
    _leave_other_mode(chain, place, client)
    place.install_files(replace(chain, installed=int(time.time())), "")
    return [
        f"{chain.mode}: every {duration_text(chain.every)}; look at it with: {chain.command_line('status')}"
    ]


def _begin_chain(chain: Chain, place: ChainFolder, client: SlurmClient) -> list[str]:
    try:
        return ChainQueue(chain, place, client).mend_chain()[1] or ["all links wait already"]
    except CannotTell as error:
        raise SubmissionRefused(
            f"{error}; then begin with: {chain.command_line('ensure')}"
        ) from error


def _ensure_entry(chain: Chain, place: ChainFolder) -> list[str]:
    found = table_entry(chain, place)
    if found.entry_state() == "yes":
        return []
    found.install_entry()
    return [f"{chain.mode}: the entry was missing or disabled and is there again"]


def table_entry(chain: Chain, place: ChainFolder) -> CronTable | SystemdTimer:
    """The entry that starts sentinel: a user's timer of systemd, or a table of cron or scrontab.

    Call it only for a mode that has such an entry.
    """
    if chain.mode == "systemd":
        return SystemdTimer(chain, place, user_unit_dir())
    return CronTable(chain.mode, chain, place)


def user_unit_dir() -> str:
    """The directory in which systemd looks for a user's own units (systemd.unit(5))."""
    return os.path.join(find_user_folder("XDG_CONFIG_HOME", "~/.config"), "systemd", "user")


def _short_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:6]
