"""What the surroundings lend to a configuration: variables, home directories, secret files."""

import os
import pwd
import stat
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from sentinel.config.near_misses import did_you_mean
from sentinel.config.nodes import ScalarNode, TableEntry, TableNode
from sentinel.core.errors import Invalid
from sentinel.core.guidance import quote_command
from sentinel.core.lazy_pattern import lazy_pattern

HOWS = ("credential", "env", "file")

_VARIABLE = lazy_pattern(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\}?)")
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_SECRET = 64 * 1024


class TextReference(Struct, frozen=True):
    """The place of a text: `{env: NAME}`, `{file: PATH}` or `{credential: NAME}`."""

    how: str  # `env`, `file` or `credential`.
    name: str  # Name or path.


class ConfigSources(Struct, frozen=True):
    """The variables, and the folder that relative secret files are relative to."""

    env: Mapping[str, str]  # The variables.
    folder: str = ""  # The folder of the configuration file.


def parse_reference(table: TableNode) -> TextReference:
    """The reference that the mapping is; raises Invalid when it is none."""
    remedy = "{env: NAME}, {file: PATH} or {credential: NAME}"
    if len(table.entries) != 1:
        raise Invalid(f"expected text or one of {remedy}, got a mapping")
    entry: TableEntry = next(iter(table.entries.values()))
    if entry.key not in HOWS:
        hint = did_you_mean(entry.key, HOWS, "known")
        raise Invalid(f"a text can be kept elsewhere by {remedy}, not by '{entry.key}'{hint}")
    if not isinstance(entry.value, ScalarNode) or not entry.value.text:
        raise Invalid(f"{{{entry.key}: …}} needs a name", entry.key)
    return TextReference(entry.key, entry.value.text)


def resolve_reference(ref: TextReference, sources: ConfigSources) -> tuple[str, str]:
    """The text of a reference, without the newline at its end, and a warning or ''.

    Raises Invalid, which names the missing thing. No message contains the text.
    """
    if ref.how == "env":
        if ref.name not in sources.env:
            raise Invalid(f"the environment variable {ref.name} is not set", ref.how)
        text, warning = sources.env[ref.name], ""
    else:
        text, warning = _read_secret_file(_reference_path(ref, sources), ref.how)
    if not text.rstrip("\r\n"):
        raise Invalid(f"{ref.how} {ref.name} is empty", ref.how)
    return text.rstrip("\r\n"), warning


def expand_path(text: str, env: Mapping[str, str]) -> str:
    """The path with `~`, `~user`, `$NAME` and `${NAME}` replaced; `$$` is a dollar sign.

    Raises Invalid on an undefined variable: a path without it would be another path.
    """
    if text.startswith("~"):
        user, slash, rest = text[1:].partition("/")
        text = _home_of(user, env).replace("$", "$$") + slash + rest
    return _VARIABLE.sub(
        lambda m: "$" if m[1] == "$" else _variable_value(m[1].strip("{}"), env), text
    )


def _reference_path(ref: TextReference, sources: ConfigSources) -> str:
    if ref.how == "file":
        return os.path.join(sources.folder, expand_path(ref.name, sources.env))
    folder = sources.env.get("CREDENTIALS_DIRECTORY", "")
    if not folder:
        raise Invalid(
            f"credential {ref.name}: $CREDENTIALS_DIRECTORY is not set; "
            f"systemd sets it for a unit with LoadCredential={ref.name}:PATH",
            ref.how,
        )
    if "/" in ref.name or ref.name in (".", ".."):
        raise Invalid(f"'{ref.name}' is no name of a credential", ref.how)
    return os.path.join(folder, ref.name)


def _read_secret_file(path: str, how: str) -> tuple[str, str]:
    try:
        data, mode = read_contents(path, _LARGEST_SECRET)
        text = data.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text", how) from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror or error}", how) from None
    except ValueError:
        raise Invalid(f"{path!r} is no possible file name", how) from None
    loose = how == "file" and is_open_to_everybody(path, mode)
    return text, (
        f"{path} can be read by everybody; {quote_command('chmod', '600', path)}" if loose else ""
    )


def is_open_to_everybody(path: str, mode: int) -> bool:
    """Whether every user of this host can read a file with this mode: everybody has the right, and
    so for all folders above it. A folder that cannot be examined counts as open."""
    if not mode & stat.S_IROTH:
        return False
    folder = os.path.realpath(path)
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        with suppress(OSError):
            if not os.stat(folder).st_mode & stat.S_IXOTH:
                return False
    return True


def read_contents(path: str, most: int) -> tuple[bytes, int]:
    """The bytes and the mode of a regular file; never waits for a FIFO. Raises OSError."""
    if "\0" in path:
        raise OSError("its name holds a NUL byte")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError("it is a directory" if stat.S_ISDIR(mode) else "it is no regular file")
        return _read_bounded(descriptor, most), mode
    finally:
        os.close(descriptor)


def _read_bounded(descriptor: int, most: int) -> bytes:
    data = b""
    while chunk := os.read(descriptor, most + 1 - len(data)):
        data += chunk
    if len(data) > most:
        raise OSError(f"it is larger than {most // 1024} KiB")
    return data


def _variable_value(name: str, env: Mapping[str, str]) -> str:
    if not _NAME.fullmatch(name):
        raise Invalid(f"'${{{name}}}' names no variable")
    if name in env:
        return env[name]
    if name == "HOME":
        return _home_of("", env)
    if name == "USER":
        return _user_account("")[0]
    raise Invalid(f"${name} is not set; set it, or write $$ for a dollar sign")


def _home_of(user: str, env: Mapping[str, str]) -> str:
    return (env.get("HOME") if not user else None) or _user_account(user)[1]


def _user_account(user: str) -> tuple[str, str]:
    """Name and home of a user, the current one by default: cron sets neither USER nor, at times, HOME."""
    try:
        entry = pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())
    except (KeyError, ValueError):
        raise Invalid(f"there is no user {user or os.getuid()} on this host") from None
    return entry.pw_name, entry.pw_dir
