"""Asks about slurmctld itself (`scontrol ping`, `scontrol show config`), and reads the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.core.lazy_pattern import lazy_pattern
from sentinel.core.long_lines import decode_lines

PING = ("scontrol", "ping")
CONFIG = ("scontrol", "show", "config")
MUNGE = ("munge", "--no-input", "--output=/dev/null")  # makes a credential that is not used

FIRST_HTTP = (25, 11)
"""The first slurmctld that answers HTTP on its own port: slurmctld(8), "HTTP server"."""

HTTP_LIMIT = 2.0  # seconds
HEALTH = (
    ("/readyz", "slurmctld itself says that it is ready for requests (GET /readyz)"),
    ("/livez", "slurmctld itself says that it lives, and not that it is ready (GET /livez)"),
)
"""The requested paths, and the meaning of the answer 204 to each."""

KILL_WAIT_S = 30
"""KillWait in seconds, where Slurm does not say it: its default."""
MESSAGES_S = 30
"""Seconds for the messages between slurmctld and the nodes."""
EPILOG_S = 600
"""Seconds that an epilog may take, if nothing limits it."""
NO_LIMIT = 65534
"""What scontrol prints for a time-out of 16 bits that is not set: NO_VAL16 of slurm/slurm.h."""

FOREVER = 10**9
"""Seconds that represent Slurm's INFINITE."""

# _ping_slurmctld() in src/scontrol/scontrol.c, the same from 20.11 to 26.05.
_PING = lazy_pattern(r"^Slurmctld\((primary|backup\d*)\) at (\S+) is (UP|DOWN)$", re.MULTILINE)
_SOCKET = lazy_pattern(r"(?:^|,)socket=([^,]+)")
_PAIR = lazy_pattern(r"^(\S+)\s*= (.*)$", re.MULTILINE)


class SlurmConfig(Struct, frozen=True, kw_only=True):
    """The settings of the running slurmctld that sentinel needs.

    `private` are the words of PrivateData. `accounting`: whether sacct and sacctmgr answer.
    `munge_socket` is the socket of munged, empty for munge's default. `reboot_program` is empty if
    none is set. `resume_timeout` and `suspend_timeout` are in seconds. `log` is slurmctld's log on
    its own host. `listens` is the primary's address and port, as in a URL. `booted` is when
    slurmctld started, in epoch seconds. `next_job_id` is the next id that it gives. `min_job_age`
    is how many seconds it remembers an ended job. `end_timeout` is how many seconds it may take to
    end a job on its nodes.
    """

    cluster: str  # ClusterName.
    version: str  # Version of slurmctld.
    slurm_user: str  # SlurmUser.
    private: frozenset[str] = frozenset()
    controllers: tuple[str, ...] = ()  # Host names of all slurmctld, the primary first.
    accounting: bool = False
    munge_socket: str = ""
    reboot_program: str = ""
    resume_timeout: int | None = None
    suspend_timeout: int | None = None
    log: str = ""
    listens: str = ""
    booted: int | None = None
    next_job_id: int | None = None
    min_job_age: int = 0
    end_timeout: int = 0


def parse_release(version: str) -> tuple[int, int]:
    """Year and month of a version such as 25.11.2; (0, 0) if the text holds none."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,2})", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def read_ping(out: bytes) -> tuple[tuple[str, bool], ...]:
    """The host of each slurmctld and whether it answers, the primary first. Raises CannotTell."""
    found = _PING.findall(decode_lines(out))
    if not found or found[0][0] != "primary":
        raise CannotTell(f"scontrol ping names no slurmctld: {decode_lines(out)[:80]!r}")
    return tuple((host, state == "UP") for _, host, state in found)


def read_config(out: bytes) -> SlurmConfig:
    """Read the answer of `scontrol show config`. Raises CannotTell if it lacks what every version
    prints."""
    pairs = {key: value.strip() for key, value in reversed(_PAIR.findall(decode_lines(out)))}
    missing = [key for key in ("ClusterName", "SlurmUser", "SLURM_VERSION") if key not in pairs]
    if missing:
        raise CannotTell(f"scontrol show config says nothing of {' and '.join(missing)}")
    return SlurmConfig(
        cluster=pairs["ClusterName"],
        version=pairs["SLURM_VERSION"],
        slurm_user=pairs["SlurmUser"].partition("(")[0],
        private=frozenset(_split_words(pairs.get("PrivateData", ""))),
        controllers=tuple(
            value.partition("(")[0] for _, value in sorted(_numbered_hosts(pairs).items())
        ),
        accounting=pairs.get("AccountingStorageType", "").endswith("slurmdbd"),
        munge_socket="".join(_SOCKET.findall(pairs.get("AuthInfo", ""))[:1]),
        reboot_program="".join(_split_words(pairs.get("RebootProgram", ""))),
        resume_timeout=parse_span_s(pairs.get("ResumeTimeout", "")),
        suspend_timeout=parse_span_s(pairs.get("SuspendTimeout", "")),
        log="".join(_split_words(pairs.get("SlurmctldLogFile", ""))[:1]),
        listens=_listen_address(pairs),
        booted=parse_span_s(pairs.get("BOOT_TIME", "")),
        next_job_id=parse_span_s(pairs.get("NEXT_JOB_ID", "")),
        min_job_age=parse_span_s(pairs.get("MinJobAge", "")) or 0,
        end_timeout=_end_timeout_s(pairs),
    )


def http_probe_argv(scheme: str, listens: str, path: str) -> tuple[str, ...]:
    """The curl(1) command that prints the HTTP status of slurmctld's answer and not its body. It
    uses no .curlrc and no proxy."""
    quiet = ("-q", "-s", "-g", "--noproxy", "*", "-m", f"{HTTP_LIMIT:g}", "-o", "/dev/null")
    return ("curl", *quiet, "-w", "%{http_code}", f"{scheme}://{listens}{path}")


def munge_probe_argv(config: SlurmConfig | None) -> tuple[str, ...]:
    """The command that asks munged whether it answers, at the socket that Slurm uses."""
    socket = config.munge_socket if config else ""
    return (*MUNGE, f"--socket={socket}") if socket else MUNGE


def _listen_address(pairs: Mapping[str, str]) -> str:
    """`10.0.0.1:6817`, from `ctl1(10.0.0.1)` and the first number of SlurmctldPort. Empty if Slurm
    does not show them."""
    host, _, address = pairs.get("SlurmctldHost[0]", "").rstrip(")").partition("(")
    port = pairs.get("SlurmctldPort", "").partition("-")[0]
    at = address or host
    if not (port.isascii() and port.isdigit() and re.fullmatch(r"[\w.:-]+", at, re.ASCII)):
        return ""
    return f"[{at}]:{port}" if ":" in at else f"{at}:{port}"


def _end_timeout_s(pairs: Mapping[str, str]) -> int:
    """Seconds from SIGTERM until a job's epilogs have ended: KillWait until SIGKILL (slurm.conf(5)),
    and the time of the epilog, if there is one."""
    kill_wait = parse_span_s(pairs.get("KillWait", ""))
    seconds = MESSAGES_S + (KILL_WAIT_S if kill_wait is None else kill_wait)
    programs = (value for key, value in pairs.items() if re.fullmatch(r"Epilog(\[\d+\])?", key))
    if not any(_split_words(value) for value in programs):
        return seconds
    limit = pairs.get("EpilogTimeout", pairs.get("PrologEpilogTimeout", ""))
    epilog = parse_span_s(limit)
    endless = epilog is None or epilog >= NO_LIMIT
    return seconds + (EPILOG_S if epilog is None or endless else epilog)


def _split_words(value: str) -> list[str]:
    return [word for word in value.split(",") if word not in ("", "none", "(null)")]


def parse_span_s(value: str) -> int | None:
    """Seconds of `600 sec`, `600` or INFINITE; None for any other text (GLOBAL: another setting
    decides)."""
    number = value.partition(" ")[0]
    if number in ("INFINITE", "UNLIMITED"):
        return FOREVER
    return int(number) if number.isascii() and number.isdigit() else None


def _numbered_hosts(pairs: dict[str, str]) -> dict[int, str]:
    found = ((re.fullmatch(r"SlurmctldHost\[(\d+)\]", key), value) for key, value in pairs.items())
    return {int(match[1]): value for match, value in found if match}
