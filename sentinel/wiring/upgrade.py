"""Handles an upgrade under a running service: once the new version has proven itself, the service
ends for its supervisor to restart it; else it goes on."""

import os
import sys
import time

from sentinel import __version__, proc
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.long_lines import decode_lines
from sentinel.core.text import shortened, visible
from sentinel.engine.package_watch import PackageWatch
from sentinel.proc.installation import find_wrong_file, list_dist_infos, read_signature
from sentinel.proc.own_package import read_version_on_disk

PROOF_TIMEOUT_S = 60.0
"""Seconds for one command of the new version."""

_SUPERVISED_BY = ("NOTIFY_SOCKET", "INVOCATION_ID")
"""Variables that systemd sets for its units (systemd.exec(5), sd_notify(3))."""


class NewVersion(SentinelError):
    """The service ends so that it is started again in another version."""

    exit_code = 75
    """EX_TEMPFAIL of sysexits(3), as for another leader: Restart=on-failure starts it again."""


def make_package_watch(settings: Settings) -> PackageWatch | None:
    """A watch over the files of the package. None if this is not an installed package: a checkout
    changes all day, a zipapp never."""
    begun = read_signature()
    if begun is None or not list_dist_infos():
        return None
    return PackageWatch(begun, read_signature, lambda: prove_new_version(settings), time.monotonic)


def prove_new_version(settings: Settings) -> str:
    """Why the new version must not be used, in words. Empty if it may be."""
    version = visible(read_version_on_disk()) or "an unknown version"
    told = f"sentinel {version} is installed, and this service still runs {__version__}"
    if version == __version__:
        told = (
            f"other files of sentinel {version} are installed, and this service runs the old ones"
        )
    wrong = find_wrong_file()
    if wrong:
        return f"{told}: {wrong}"
    if not any(os.environ.get(name) for name in _SUPERVISED_BY):
        return f"restart sentinel: {told}, because no supervisor starts it again"
    for words in _list_proofs(settings):
        failed = _run_new_version(words)
        if failed:
            return f"{told}: sentinel {' '.join(words[:2])}: {failed}"
    return ""


def _list_proofs(settings: Settings) -> list[list[str]]:
    where = ["-c", os.path.abspath(settings.path)] if settings.path else []
    checked = [["config", "check", "--quiet", *where]] if where else []
    return [*checked, ["state", "check", *where]]


def _run_new_version(words: list[str]) -> str:
    try:
        done = proc.run([sys.executable, "-m", "sentinel", *words], limit=PROOF_TIMEOUT_S, cwd="/")
    except CannotTell as error:
        return str(error)
    said = decode_lines(done.err).strip().partition("\n")[0]
    return shortened(visible(said or f"exit code {done.code}"), 300) if done.code else ""
