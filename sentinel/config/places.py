"""Finds the configuration file, and decides whether to trust it."""

import errno
import os
from collections.abc import Mapping

from sentinel import trust
from sentinel.core.errors import SentinelError
from sentinel.core.text import visible

ENVIRONMENT = "SENTINEL_CONFIG"
SERVICE = "/etc/sentinel/sentinel.yaml"


class HiddenConfig(SentinelError):
    """A configuration is there, or may be, and this user may not read it: another one in its place,
    or none, would show something else under its name."""

    exit_code = 3


def find_config(explicit: str | None, env: Mapping[str, str]) -> str | None:
    """The configuration file: the given one, or the first one found.

    A file given by `-c` or `$SENTINEL_CONFIG` is returned, whoever owns it, and even if it does not
    exist. So a typing error is reported, and no other file is used instead. A file that was found
    is used only if nobody but root and the caller can change it. Raises trust.UntrustedFile or
    Hidden, without trying further places.
    """
    return explicit or env.get(ENVIRONMENT) or next(filter(_is_usable, config_places(env)), None)


def config_places(env: Mapping[str, str]) -> list[str]:
    """The places without an explicit wish, in order (XDG Base Directory Specification 0.8).

    Never the working directory of root, who may stand anywhere.
    """
    here = ["./sentinel.yaml"] if os.geteuid() else []
    return [*here, *_own_places(env), SERVICE]


def new_config_path(env: Mapping[str, str]) -> str:
    """The path for a first configuration: for root the path of the service, for others in the home
    directory."""
    return next(iter(_own_places(env) if os.geteuid() else ()), SERVICE)


def hidden_config_path(path: str, env: Mapping[str, str]) -> str:
    """The whole path if people have to name it by -c; empty if this user finds it from anywhere."""
    found = next(filter(os.path.lexists, _own_places(env)), SERVICE)
    return "" if not path or os.path.abspath(path) == found else os.path.abspath(path)


def searched_places(env: Mapping[str, str]) -> str:
    """One sentence for the person who has no configuration yet."""
    return (
        f"no configuration found; looked for -c FILE, ${ENVIRONMENT}, {', '.join(config_places(env))}; "
        "`sentinel init` sets everything up, `sentinel config init` writes only the file"
    )


def _own_places(env: Mapping[str, str]) -> list[str]:
    home = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return [os.path.join(home, "sentinel", "sentinel.yaml")] if os.path.isabs(home) else []


def _is_usable(path: str) -> bool:
    """Whether there is one, which may be used."""
    try:
        os.lstat(path)
        wrong = trust.find_site_fault(path)
        readable = os.access(path, os.R_OK)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.lexists(path)  # a broken link is reported, not skipped
    except OSError as error:
        raise _hidden_error(path, error.errno or errno.EIO) from error
    if wrong:
        raise _distrusted_error(path, wrong)
    if not readable:
        raise _hidden_error(path, errno.EACCES)
    return True


def _hidden_error(path: str, error: int) -> HiddenConfig:
    return HiddenConfig(
        f"{visible(path)} cannot be read: {os.strerror(error)}; its administrator can: "
        f"{trust.format_sudo_command(0, '-c', path)}; one of your own goes before it: sentinel config init"
    )


def _distrusted_error(path: str, wrong: trust.TrustFault) -> trust.UntrustedFile:
    return trust.UntrustedFile(
        f"{visible(path)} is not used: {visible(wrong.path)} {wrong.why}, and what runs here must be "
        f"changed by nobody but {trust.describe_trusted_users()}; {f'{wrong.mend}, or ' if wrong.mend else ''}name the file that you mean: -c FILE"
    )
