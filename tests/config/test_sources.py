"""Secrets and paths: what the surroundings lend, and that no secret gets out again."""

import os
import pwd
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.config.display import show_settings
from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.config.sources import ConfigSources, expand_path, resolve_reference
from sentinel.config.sources import TextReference as Kept
from sentinel.core.errors import Invalid
from sentinel.core.settings import FilePath, Secret

from .conftest import Errors, Loader
from .kinds import CHANNELS, CHECKS, Done

SECRET = "c0rrect-h0rse"


def mail(rest: str) -> str:
    """A mail channel; its settings are in line 2."""
    return f"channels:\n  m: {{kind: mail, to: [a@b], {rest}}}\n"


@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n"])
def test_a_secret_comes_from_a_variable_a_file_or_a_credential(
    tmp_path: Path, loaded: Loader, content: str
) -> None:
    """Without the newline that editors leave at the end."""
    (tmp_path / "pw").write_text(content)
    (tmp_path / "pw").chmod(0o600)
    env = {"PW": content, "HOME": str(tmp_path), "CREDENTIALS_DIRECTORY": str(tmp_path)}
    for where in (
        "{env: PW}",
        f"{{file: {tmp_path}/pw}}",
        "{file: ~/pw}",
        "{file: pw}",
        "{credential: pw}",
    ):
        found = loaded(mail(f"password: {where}"), env)
        assert found.settings.channels[0].plugin.password == Secret(SECRET)
        assert not [w for w in found.warnings if "password" in w.path]


def test_any_text_may_be_kept_elsewhere(loaded: Loader) -> None:
    """Plain texts, paths, items of lists and values of mappings too."""
    env = {"H": "host1", "CA": "/ca~$x", "TO": "x@y", "T": "Bearer 1", "DB": "postgresql://u:p@h/d"}
    text = (
        "state: {env: DB}\nchannels:\n  m: {kind: mail, to: [{env: TO}], host: {env: H}, "
        "ca_file: {env: CA}, headers: {Authorization: {env: T}}}"
    )
    settings = loaded(text, env).settings
    plugin = settings.channels[0].plugin
    assert settings.state == "postgresql://u:p@h/d"
    assert (plugin.to, plugin.host, plugin.ca_file) == (["x@y"], "host1", "/ca~$x")
    assert plugin.headers == {"Authorization": "Bearer 1"}


def test_a_key_of_a_mapping_is_no_reference_where_the_mapping_has_it(loaded: Loader) -> None:
    """`done: {file: …}` means the kind's own key; {env: …} beside it is still a text."""
    text = mail("done: {file: /x}") + "  n: {kind: mail, to: [a@b], done: {env: E}}\n"
    first, second = (c.plugin.done for c in loaded(text, {"E": "text"}).settings.channels)
    assert first == Done(file=FilePath("/x"))
    assert second == "text"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("{env: NOPE}", "password.env: the environment variable NOPE is not set"),
        ("{env: EMPTY}", "password.env: env EMPTY is empty"),
        ("{env: ''}", "password.env: {env: …} needs a name"),
        ("{env: [a]}", "password.env: {env: …} needs a name"),
        ("{file: missing}", "password.file: DIR/missing cannot be read: No such file or directory"),
        ("{file: .}", "password.file: DIR/. cannot be read: it is a directory"),
        ("{file: fifo}", "password.file: DIR/fifo cannot be read: it is no regular file"),
        ("{file: empty}", "password.file: file empty is empty"),
        ("{file: latin}", "password.file: DIR/latin is not UTF-8 text"),
        ("{file: large}", "password.file: DIR/large cannot be read: it is larger than 64 KiB"),
        ("{file: $NOPE/x}", "password: $NOPE is not set; set it, or write $$ for a dollar sign"),
        (
            "{credential: pw}",
            "password.credential: credential pw: $CREDENTIALS_DIRECTORY is not set; "
            "systemd sets it for a unit with LoadCredential=pw:PATH",
        ),
        (
            "{evn: X}",
            "password: a text can be kept elsewhere by {env: NAME}, {file: PATH} or "
            "{credential: NAME}, not by 'evn' (did you mean 'env'?)",
        ),
        (
            "{env: A, file: b}",
            "password: expected text or one of {env: NAME}, {file: PATH} or {credential: NAME}, "
            "got a mapping",
        ),
    ],
)
def test_a_secret_that_is_not_there_is_an_error_that_names_it(
    tmp_path: Path, errors: Errors, where: str, message: str
) -> None:
    """Never an empty password, never a wait for a FIFO."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"\xe9")
    (tmp_path / "large").write_bytes(b"x" * (64 * 1024 + 1))
    expected = f"2: channels.m.{message.replace('DIR/', f'{tmp_path}/')}"
    assert errors(mail(f"password: {where}"), {"EMPTY": ""}) == [expected]


@pytest.mark.parametrize("name", ["../pw", "/etc/passwd", ".."])
def test_a_credential_is_a_name_and_no_path(tmp_path: Path, name: str) -> None:
    """systemd hands over files of one directory."""
    with pytest.raises(Invalid, match="is no name of a credential"):
        resolve_reference(
            Kept("credential", name), ConfigSources({"CREDENTIALS_DIRECTORY": str(tmp_path)})
        )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that lets everybody through; those of pytest are its user's alone."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def told_of_password(config: Path, *, strict: bool) -> list[str]:
    """What is said of the password: an error where it is strict, else a warning."""
    try:
        found = load_config(str(config), CHECKS, CHANNELS, env={}, strict=strict)
    except ConfigError as error:
        assert strict
        return [line.removeprefix(f"{config}:") for line in str(error).splitlines()]
    told = [str(w) for w in found.warnings if w.path == "channels.m.password"]
    assert not (strict and told)
    return [line.removeprefix(f"{config}:") for line in told]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("mode", "folder", "is_open"),
    [
        (0o600, 0o755, False),
        (0o640, 0o755, False),
        (0o644, 0o755, True),
        (0o644, 0o711, True),
        (0o644, 0o700, False),
        (0o644, 0o750, False),
    ],
)
def test_a_secret_that_everybody_can_read_is_told_with_its_remedy(
    open_folder: Path, mode: int, folder: int, is_open: bool, strict: bool
) -> None:
    """`config check` fails, the service says so and goes on. Groups are somebody's decision, and a
    folder that lets nobody through keeps its files."""
    config = open_folder / "sentinel.yaml"
    config.write_text(mail("password: {file: keys/pw}"))
    config.chmod(0o600)
    (keys := open_folder / "keys").mkdir()
    (pw := keys / "pw").write_text(SECRET)
    pw.chmod(mode)
    keys.chmod(folder)
    told = told_of_password(config, strict=strict)
    line = f"2: channels.m.password: {pw} can be read by everybody; chmod 600 {pw}"
    assert told == ([line] if is_open else [])


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_plain_secret_in_a_file_that_everybody_can_read_is_told(
    open_folder: Path, mode: int, is_open: bool, strict: bool
) -> None:
    config = open_folder / "sentinel.yaml"
    config.write_text(mail(f"password: {SECRET}"))
    config.chmod(mode)
    line = (
        "2: channels.m.password: a secret stands in a file that everybody can read; "
        f"chmod 600 {config}, or write {{file: PATH}} in its place"
    )
    assert told_of_password(config, strict=strict) == ([line] if is_open else [])


@pytest.mark.parametrize(
    "rest",
    [
        f"password: {SECRET}, host: '{SECRET} x'",
        f"password: {{env: S}}, host: '{SECRET} x'",
        "password: {env: S}, host: {env: BAD}",
        "password: {env: S}, host: 'x y', headers: {A: {env: S}, B: 5}",
        f"passwords: x, password: [{SECRET}]",
        "password: 1234567890, port: x",
        f"tokens: {SECRET}",
        f"tokens: [{SECRET}]",
        f"tokens: {{a: [{SECRET}]}}",
        f"keys: {SECRET} x, host: 5",
        "keys: 1234567890",
        "keys: [1234567890]",
    ],
)
def test_no_error_and_no_traceback_holds_a_secret(loaded: Loader, rest: str) -> None:
    """Not even where the kind itself quotes the text it was given."""
    env = {"S": SECRET, "BAD": f"{SECRET} y"}
    with pytest.raises(ConfigError) as caught:
        loaded(mail(rest), env)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value.problems)
    assert SECRET not in told
    assert "1234567890" not in told


def test_what_is_shown_holds_references_and_no_secret(loaded: Loader) -> None:
    """Plain secrets are blotted out, also the password within a URL."""
    env = {"S": SECRET}
    text = (
        f"state: postgresql://me:{SECRET}@db/sentinel\nchannels:\n"
        f"  plain: {{kind: mail, to: [a@b], password: {SECRET}}}\n"
        "  kept: {kind: mail, to: [a@b, {env: S}], password: {env: S}, headers: {A: {env: S}}}\n"
    )
    found = loaded(text, env)
    shown = show_settings(found.settings, found.references)
    assert SECRET not in shown
    assert 'state: "postgresql://me:***@db/sentinel"' in shown
    assert 'password: "***"' in shown
    assert "password: {env: S}" in shown
    assert "to: [a@b, {env: S}]" in shown
    assert "A: {env: S}" in shown
    assert SECRET not in repr(found.settings.channels[0])


ENV = {"HOME": "/home/me", "WORK": "/work/me", "EMPTY": "", "USER": "me"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/b", "/a/b"),
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~root/x", f"{pwd.getpwnam('root').pw_dir}/x"),
        ("a~/x", "a~/x"),
        ("$WORK/x", "/work/me/x"),
        ("${WORK}x", "/work/mex"),
        ("$HOME/$USER", "/home/me/me"),
        ("/a$EMPTY/b", "/a/b"),
        ("/a$$b/$$$WORK", "/a$b/$/work/me"),
        ("/cost$5/$", "/cost$5/$"),
        ("/logs/%x-%j.out", "/logs/%x-%j.out"),
    ],
)
def test_home_and_variables_are_expanded_in_paths(text: str, path: str) -> None:
    """And nothing else is: Slurm's % patterns stay."""
    assert expand_path(text, ENV) == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$NOPE/x", "$NOPE is not set; set it, or write $$ for a dollar sign"),
        ("${NOPE}", "$NOPE is not set; set it, or write $$ for a dollar sign"),
        ("${a b}", "'${a b}' names no variable"),
        ("${}", "'${}' names no variable"),
        ("${open", "$open is not set; set it, or write $$ for a dollar sign"),
        ("~no-such-user/x", "there is no user no-such-user on this host"),
    ],
)
def test_a_path_that_would_be_another_one_is_refused(text: str, message: str) -> None:
    """`rm -rf $UNSET/` has taught that an undefined variable is not an empty one."""
    with pytest.raises(Invalid) as caught:
        expand_path(text, ENV)
    assert str(caught.value) == message


def test_home_and_user_are_known_without_variables() -> None:
    """cron and systemd do not always set them."""
    me = pwd.getpwuid(os.getuid())
    assert expand_path("~/x", {}) == f"{me.pw_dir}/x"
    assert expand_path("$HOME/$USER", {}) == f"{me.pw_dir}/{me.pw_name}"


def test_a_home_with_a_dollar_sign_is_taken_as_it_is() -> None:
    """What was expanded is not expanded again."""
    assert expand_path("~/x", {"HOME": "/home/$me"}) == "/home/$me/x"
    assert expand_path("$WORK/x", {"WORK": "/w/$HOME"}) == "/w/$HOME/x"


def test_only_paths_are_expanded(loaded: Loader) -> None:
    """A pattern or a name with a dollar sign stays as it is."""
    text = "checks: {a: {kind: watch, path: $X, progress: '^it$X', users: [$X, ~u]}}"
    plugin = loaded(text, {"X": "/x"}).settings.checks[0].plugin
    assert plugin.path == "/x"
    assert plugin.progress.pattern == "^it$X"
    assert plugin.users == ["$X", "~u"]


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        ("postgresql://me:PASS@db/s?lease=10s", "postgresql://me:***@db/s?lease=10s"),
        ("postgresql://me:a/PASS?#@db/s", "postgresql://me:***@db/s"),
        ("postgresql://:PASS@db/s", "postgresql://:***@db/s"),
        (
            "postgresql://db/s?user=me&password=PASS&sslpassword=PASS&lease=10s",
            "postgresql://db/s?user=me&password=***&sslpassword=***&lease=10s",
        ),
        ("postgresql://me@db:5432/s", "postgresql://me@db:5432/s"),
    ],
)
def test_no_password_of_the_state_is_shown(loaded: Loader, state: str, seen: str) -> None:
    """In whichever of the ways a database takes it."""
    found = loaded(f"state: '{state}'")
    assert f'state: "{seen}"' in show_settings(found.settings, found.references)
