"""Judges what Slurm's commands write on stderr: which lines spoil an answer, and what lines mean.

stderr may hold remarks beside a complete answer (of slurm.conf, a wrapper of the site, ssh), and
errors although the exit code is 0. So the exit code and the marks within the answer are believed.
Exceptions are the few lines after which Slurm answers only a part of the question."""

from __future__ import annotations

from itertools import islice

from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import shortened, visible

MOST_SHOWN = 500  # characters
MAX_LINES = 100  # different ones

# Lines that come with exit code 0 when something was left out (20.11 to 26.05): a user of -u
# (_build_user_list() in src/squeue/opts.c), a column (parse_format() and parse_long_format()
# there; _invalid_field() in src/sacct/options.c), a cluster of a federation, which is told only
# where a wrapper adds -v (_load_job_thread() in src/api/job_info.c and its like for nodes).
PARTIAL = (
    lazy_pattern(r"error: Invalid user: "),
    lazy_pattern(r"error: Invalid job format specification: "),
    lazy_pattern(r"error: Invalid field requested: "),
    lazy_pattern(r"Error reading \w+ information from cluster "),
    lazy_pattern(r"^slurm_\w+ error: "),  # slurm_perror(): the whole question failed
)

_DEAD = "slurmctld cannot be reached: it is down, or the network to it is"
_SLOW = "slurmctld got the question and did not answer in time: it hangs or has too much to do"
_BROKEN_OFF = (
    "slurmctld closed the connection without an answer: it stops or has too much to do, or it is of an older version"
    " than Slurm's commands here"
)
MISFIT = "Slurm's commands here are of another version than slurmctld: PATH or command_prefix decides which"
"""Seen with squeue 22.05.8 and slurmctld 26.05.3. With a newer squeue and an older slurmctld the
message ends with `Zero Bytes`. `scontrol ping` says DOWN in both cases."""

_STANDBY = "the slurmctld that was asked is a backup in standby: the primary does not answer"
_UNPROVEN = "Slurm cannot prove who asks: munge (or the key of auth/slurm) here or there fails"
_NO_CONF = (
    "Slurm's commands find no slurm.conf that they can read on this host: set SLURM_CONF, or"
    " command_prefix"
)
_BAD_CONF = "Slurm's commands do not understand the slurm.conf here: a slip, or for another version"
_NO_PLUGIN = (
    "Slurm's commands here lack a plugin that slurm.conf names: a package is missing or broken"
)
_NO_PLACE = "slurmctld cannot keep the script of a job: the file system of its StateSaveLocation is full or fails"
_NO_NAME = "this host does not know the host that slurm.conf names: see DNS or /etc/hosts"
_BOOKS = "slurmdbd, Slurm's accounting, does not answer"
_NO_BOOKS = "Slurm has no accounting here (AccountingStorageType)"
_NO_SSH = "ssh does not reach the other host"
_NOT_LET_IN = "the other host refused the login by ssh"

OF_THIS_HOST = frozenset({_NO_CONF, _BAD_CONF, _NO_PLUGIN, _NO_SSH, _NOT_LET_IN})
"""Errors that say nothing about slurmctld, because it was never asked."""

# The first pattern that matches decides. Texts: src/common/slurm_errno.c, 20.11 to 26.05;
# src/common/conf (fetch_config), src/common/slurm_persist_conn.c, src/squeue/opts.c; ssh(1).
MEANINGS = tuple(
    (lazy_pattern(pattern), meaning)
    for pattern, meaning in (
        (r"Invalid user: (?P<what>\S+)", "there is no user {what} where Slurm is asked"),
        # A failed connection of ssh has the same words as one to slurmctld.
        (r"ssh: (connect|Could not resolve)|Could not resolve hostname|kex_exchange_identif"
         r"|Connection (closed|reset) by \S+ port", _NO_SSH),
        (r"Permission denied \(|Host key verification", _NOT_LET_IN),
        # Both parts are needed, in any order: a parse error alone may be a remark beside a complete
        # answer.
        (r"Pars(?:e|ing) error.{0,300}Unable to process conf|Unable to process conf.{0,300}Pars(?:e|ing) error", _BAD_CONF),
        (r"configuration source|fetch(_| )config|Unable to process conf"
         r"|(open|stat file|read) \S*slurm\.conf", _NO_CONF),
        (r"I/O error writing script", _NO_PLACE),
        (r"find .*plugin|shared object file", _NO_PLUGIN),
        (r"[Mm]unge|MUNGE|authentication|credential", _UNPROVEN),
        (r"supported accounting_storage|accounting storage is disabled", _NO_BOOKS),
        (r"slurmdbd|persist(ent)?[_ ]conn|PersistInit|to (the )?database|accounting_storage", _BOOKS),
        (r"standby mode", _STANDBY),
        (r"Insane message length|Incompatible versions|[Pp]rotocol.[Vv]ersion"
         r"|Header lengths are longer", MISFIT),
        (r"Zero Bytes", _BROKEN_OFF),
        (r"(?<!Connection )timed out|receive fail|send fail", _SLOW),
        (r"Unable to resolve|getaddrinfo|[Uu]nknown host|Name or service not known", _NO_NAME),
        (r"connect failure|Connection refused|Connection timed out|No route|Unable to contact"
         r"|Error connecting to slurm"
         r"|Unable to establish controller|onnection failure", _DEAD),
        (r"[Rr]ate limit|exceeded rate", "slurmctld answers this user less often: its rate limit"),
        (r"Invalid job id", "Slurm knows no such job (any more)"),
        (r"Invalid node name|Node \S+ not found", "Slurm knows no such node"),
        (r"Invalid node state", "Slurm refuses that for a node in its present state"),
        (r"Invalid partition", "Slurm knows no such partition"),
        (r"specify a reason", "Slurm wants a reason for that"),
        (r"already completing or completed", "the job is over, or ends just now"),
        (r"operation is presently disabled", "Slurm does not allow that at the moment"),
        (r"Access/permission denied|Invalid user id", "Slurm does not let this user do that"),
        (r"sudo: .{0,200}(password|terminal)", "sudo wants a password: allow the command in sudoers"),
    )
)  # fmt: skip


def describe_stderr(err: bytes) -> str:
    """All of stderr in one visible line; lines with a known meaning come first."""
    said = sorted(stderr_lines(err), key=lambda line: not complaint_meaning(line))
    return shortened("; ".join(said), MOST_SHOWN)


def stderr_lines(err: bytes) -> list[str]:
    """The lines of stderr, made visible, without blank ones."""
    said = decode_lines(err).splitlines()
    return [visible(line.strip()) for line in said if line.strip()]


def find_left_out(err: bytes) -> str:
    """The lines which say that an answer with exit code 0 is incomplete, each once; empty if there
    are none."""
    partial = (line for line in dict.fromkeys(err.splitlines()) if _is_partial(line))
    return describe_stderr(b"\n".join(islice(partial, MAX_LINES)))


def complaint_meaning(said: str) -> str:
    """The meaning of a complaint of Slurm, in plain words; empty if it is not known."""
    for pattern, words in MEANINGS:
        if match := pattern.search(said):
            return words.format(**match.groupdict())
    return ""


def word_complaint(said: str) -> str:
    """A complaint in one line: its meaning if that is known, then Slurm's own words."""
    plain = complaint_meaning(said)
    return f"{plain}: {said}" if plain else said


def failure_error(name: str, said: str, code: int) -> CannotTell:
    """The error to raise for a command that failed: its meaning first, then Slurm's own words. It
    is CannotAsk if the fault is on this host, so that nothing is known of slurmctld."""
    words = describe_failure(name, said, code)
    plain = complaint_meaning(said)
    if plain in OF_THIS_HOST:
        return CannotAsk(plain, words)
    return CannotTell(plain, words) if plain else CannotTell(words)


def describe_failure(name: str, said: str, code: int) -> str:
    """The complaint in words, with the command's name before it unless the complaint begins with
    that name."""
    said = said or _describe_exit(code)
    return said if said.startswith(f"{name}: ") else f"{name}: {said}"


def _is_partial(line: bytes) -> bool:
    text = decode_lines(line)
    return any(pattern.search(text) for pattern in PARTIAL)


def _describe_exit(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"exit code {code} without a word"
