"""slurmctld itself: `scontrol ping` and `scontrol show config`, asked and understood."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from sentinel.core.errors import CannotTell
from sentinel.slurm.words import decode_text

PING = ("scontrol", "ping")
CONFIG = ("scontrol", "show", "config")
VERSION_COMMAND = ("scontrol", "--version")
MUNGE = ("munge", "--no-input", "--output=/dev/null")  # makes a credential, for nobody

FIRST_HTTP = (25, 11)
"""The first slurmctld that answers HTTP on its own port: slurmctld(8), "HTTP server"."""

HTTP_LIMIT = 2.0  # seconds
HEALTH = (
    ("/readyz", "slurmctld itself says that it is ready for requests (GET /readyz)"),
    ("/livez", "slurmctld itself says that it lives, and not that it is ready (GET /livez)"),
)
"""What it is asked, and what an answer 204 means."""

FOREVER = 10**9
"""Seconds that stand for INFINITE."""

# _ping_slurmctld() in src/scontrol/scontrol.c, the same from 20.11 to 26.05.
_PING = re.compile(r"^Slurmctld\((primary|backup\d*)\) at (\S+) is (UP|DOWN)$", re.MULTILINE)
_SOCKET = re.compile(r"(?:^|,)socket=([^,]+)")
_PAIR = re.compile(r"^(\S+)\s*= (.*)$", re.MULTILINE)


class SlurmConfig(Struct, frozen=True, kw_only=True):
    """What sentinel has to know of slurm.conf, as the running slurmctld has it.

    `private` are the words of PrivateData; `accounting` whether sacct and sacctmgr answer;
    `munge_socket` where munged is asked, empty for munge's own place; `reboot_program` empty
    where none is set; `resume_timeout` and `suspend_timeout` in seconds; `log` is slurmctld's log on
    its own host; `listens`: the primary's address and port, as in a URL. `booted`: when slurmctld started, epoch seconds; `next_job_id`: what it gives
    next; `min_job_age`: seconds it remembers what is over.
    """

    cluster: str
    version: str
    slurm_user: str
    private: frozenset[str] = frozenset()
    controllers: tuple[str, ...] = ()
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


def parse_release(version: str) -> tuple[int, int]:
    """Year and month of a version such as 25.11.2; (0, 0) where it tells none."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,2})", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def read_ping(out: bytes) -> tuple[tuple[str, bool], ...]:
    """Each slurmctld's host and whether it answers, the primary first; CannotTell."""
    found = _PING.findall(decode_text(out))
    if not found or found[0][0] != "primary":
        raise CannotTell(f"scontrol ping names no slurmctld: {decode_text(out)[:80]!r}")
    return tuple((host, state == "UP") for _, host, state in found)


def read_config(out: bytes) -> SlurmConfig:
    """CannotTell when the answer lacks what every version prints."""
    pairs = {key: value.strip() for key, value in reversed(_PAIR.findall(decode_text(out)))}
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
    )


def http_probe_argv(scheme: str, listens: str, path: str) -> tuple[str, ...]:
    """The command that prints the status of slurmctld's answer, and nothing of the answer: curl(1), not
    by anybody's .curlrc or proxy."""
    quiet = ("-q", "-s", "-g", "--noproxy", "*", "-m", f"{HTTP_LIMIT:g}", "-o", "/dev/null")
    return ("curl", *quiet, "-w", "%{http_code}", f"{scheme}://{listens}{path}")


def munge_probe_argv(config: SlurmConfig | None) -> tuple[str, ...]:
    """The command that asks munged whether it answers, at the socket that Slurm uses."""
    socket = config.munge_socket if config else ""
    return (*MUNGE, f"--socket={socket}") if socket else MUNGE


def _listen_address(pairs: Mapping[str, str]) -> str:
    """`10.0.0.1:6817` of `ctl1(10.0.0.1)` and the first of SlurmctldPort's numbers; empty where
    that is not told."""
    host, _, address = pairs.get("SlurmctldHost[0]", "").rstrip(")").partition("(")
    port = pairs.get("SlurmctldPort", "").partition("-")[0]
    at = address or host
    if not (port.isascii() and port.isdigit() and re.fullmatch(r"[\w.:-]+", at, re.ASCII)):
        return ""
    return f"[{at}]:{port}" if ":" in at else f"{at}:{port}"


def _split_words(value: str) -> list[str]:
    return [word for word in value.split(",") if word not in ("", "none", "(null)")]


def parse_span_s(value: str) -> int | None:
    """Seconds of `600 sec`, `600` or INFINITE; None of anything else (GLOBAL: somebody else's)."""
    number = value.partition(" ")[0]
    if number in ("INFINITE", "UNLIMITED"):
        return FOREVER
    return int(number) if number.isascii() and number.isdigit() else None


def _numbered_hosts(pairs: dict[str, str]) -> dict[int, str]:
    found = ((re.fullmatch(r"SlurmctldHost\[(\d+)\]", key), value) for key, value in pairs.items())
    return {int(match[1]): value for match, value in found if match}
