"""`sentinel doctor --report`: nothing of the site is in it, whatever holds it; what mends sentinel is."""

import getpass
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from sentinel.config.display import show_settings
from sentinel.config.settings import Settings
from sentinel.config.shapes import (
    ListShape,
    RecordShape,
    TableShape,
    allowed_words,
    possible_shapes,
)
from sentinel.config.yamltext import yaml_text
from sentinel.core.settings import (
    ChannelCommon,
    ChannelConfig,
    CheckCommon,
    CheckConfig,
    FilePath,
    Secret,
)
from sentinel.doctor.masked_config import ConfigMask
from sentinel.doctor.public_words import PublicWords
from sentinel.wiring.app import CHANNELS, CHECKS

SECRET = "hunter2zq"


def plant_secrets(cls: Any) -> Any:
    """One of that class, with the secret wherever a text may stand; nothing judges it."""
    infos = msgspec.structs.fields(cls)
    twin = msgspec.defstruct(
        cls.__name__, [(i.name, i.type, _name_field(i)) for i in infos], kw_only=True
    )
    return twin(**{info.name: plant_value(info.type) for info in infos})


def _name_field(info: Any) -> Any:
    if info.default_factory is not NODEFAULT:
        return msgspec.field(name=info.encode_name, default_factory=info.default_factory)
    default = {} if info.default is NODEFAULT else {"default": info.default}
    return msgspec.field(name=info.encode_name, **default)


def plant_value(hint: Any) -> Any:
    for shape in possible_shapes(hint):
        if isinstance(shape, RecordShape):
            return plant_secrets(shape.cls)
        if isinstance(shape, ListShape):
            return [plant_value(shape.item)]
        if isinstance(shape, TableShape):
            return {f"key-{SECRET}": plant_value(shape.value)}
    types = get_args(hint) or (hint,)
    for text in (Secret, FilePath, str):
        if text in types:
            return text(SECRET)
    if words := allowed_words(hint):
        return words[-1]
    return re.compile(SECRET) if any("Pattern" in str(one) for one in types) else SECRET


def mask(settings: Any, checks: Any = (), channels: Any = ()) -> tuple[str, ConfigMask]:
    masker = ConfigMask({}, CHECKS, CHANNELS)
    for name, value in (("checks", checks), ("channels", channels)):
        msgspec.structs.force_setattr(settings, name, value)
    return yaml_text(masker.mask_settings(settings)), masker


@pytest.mark.parametrize("name", CHECKS.kind_names())
def test_no_text_of_a_check_is_shown(name: str) -> None:
    """Of no key, of no kind; its keys and its kind are."""
    common = msgspec.structs.replace(
        CheckCommon(kind=name), labels={SECRET: SECRET}, runbook=SECRET, cron=SECRET, cluster=SECRET
    )
    check = CheckConfig(name=SECRET, common=common, plugin=plant_secrets(CHECKS.load_kind(name)))
    shown, masker = mask(Settings(), checks=(check,))
    assert SECRET not in shown
    assert f"kind: {name}" in shown
    assert "runbook: " in shown
    assert SECRET in masker.hidden


@pytest.mark.parametrize("name", CHANNELS.kind_names())
def test_no_text_of_a_channel_is_shown(name: str) -> None:
    common = ChannelCommon(kind=name, fallback=SECRET, per_hour=20)
    plugin = plant_secrets(CHANNELS.load_kind(name))
    channel = ChannelConfig(name=SECRET, kind=name, plugin=plugin, common=common)
    shown, _ = mask(Settings(), channels=(channel,))
    assert SECRET not in shown
    assert f"kind: {name}" in shown
    assert "per_hour: 20" in shown


def test_no_text_of_any_other_section_is_shown() -> None:
    """All of them together; numbers are shown, and words that sentinel defines."""
    settings = plant_secrets(Settings)
    shown, masker = mask(settings)
    assert SECRET not in shown
    assert {"slurm", "web", "routes", "silences", "heartbeat", "remote"} <= set(
        re.findall(r"^(\w+):", shown, re.M)
    )
    assert len(masker.hidden) > 60


def test_the_secrets_were_planted() -> None:
    """Otherwise the tests above are true of everything."""
    planted = [plant_secrets(CHECKS.load_kind(name)) for name in CHECKS.kind_names()]
    assert repr(planted).count(SECRET) > 100
    assert SECRET in show_settings(Settings(cluster=SECRET))


def test_a_kind_of_a_third_party_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what its keys mean: a number may be a secret."""

    class Theirs(Struct):
        pin: int = 0
        words: tuple[str, ...] = ()

    monkeypatch.setattr(CHECKS, "kind_origin", lambda name: "acme 1.0")
    common = CheckCommon(kind="acme-secret")
    check = CheckConfig(name="a", common=common, plugin=Theirs(4711, (SECRET,)))
    shown, masker = mask(Settings(), checks=(check,))
    assert not re.search(f"acme|4711|pin|{SECRET}", shown)
    assert {"4711", SECRET, "acme-secret"} <= set(masker.hidden)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("smtp.example.org:587 refused the login of bob: 535 5.7.8 Error", "*** refused the login of *** 535 5.7.8 Error"),
        ("/scratch/alice/run-7: Permission denied", "*** Permission denied"),
        ("http://u:hunter2@10.0.0.1/x?token=abc", "***"),
        ("10.1.2.3 fe80::1 12345 4711", "***"),
        ("mallory\x1b[31m \n error", "*** error"),
        ("job 4711 FAILED with exit code 1 on node-[0-3]", "job *** FAILED with exit code 1 on ***"),
        ("Zora’s Passwört sézame", "***"),
        ("internal error: ZeroDivisionError", "internal error: ZeroDivisionError"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_text_keeps_the_words_of_sentinel_alone(text: str, shown: str) -> None:
    """No address, path, host, mail, job or person; codes and small numbers stay."""
    assert PublicWords().mask_text(text) == shown


def test_a_name_that_is_a_word_of_sentinel_too_is_hidden() -> None:
    """A user may be called Scratch, and a password be a number or a word of every day."""
    words = PublicWords(["scratch", "critical:Mass", "/home/error", "12", "call the node"])
    assert words.mask_text("Scratch critical mass, error 12 13") == "*** 13"
    assert words.mask_text("the (node)") == "the ***"


CONFIG = """\
cluster: moonbase
state: {folder}/state
checks:
  secret-project: {{kind: exec, command: [/bin/sh, -c, "echo {secret} at $HOME >&2; exit 3"], blind_after: 1}}
  disk: {{kind: fs, paths: [{folder}], labels: {{team: zebra}}}}
channels:
  chat: {{kind: webhook, url: "http://127.0.0.1:1/{secret}"}}
  mail: {{kind: email, to: [ada@example.org], from: eve@example.org, host: 127.0.0.1, port: 1,
         security: none, username: eve, password: {{env: MAIL_PASSWORD}}}}
"""
PRIVATE = [
    "moonbase",
    "secret-project",
    "zebra",
    "ada",
    "eve",
    "example.org",
    "MAIL_PASSWORD",
    "127.0.0.1",
]


def call_sentinel(folder: Path, *words: str) -> str:
    """With the file in that folder; standard output."""
    env = {**os.environ, "MAIL_PASSWORD": f"{SECRET}-mail", "HOME": str(folder / "home")}
    command = [sys.executable, "-m", "sentinel", *words, "-c", str(folder / "sentinel.yaml")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pass has run: a check could not see, and no channel took its message."""
    folder = tmp_path_factory.mktemp("wintermute")
    file = folder / "sentinel.yaml"
    file.write_text(CONFIG.format(folder=folder, secret=SECRET))
    file.chmod(0o600)
    call_sentinel(folder, "tick")
    return folder


def find_private(report: str, folder: Path) -> list[str]:
    host, user = os.uname().nodename, getpass.getuser()
    private = [*PRIVATE, SECRET, str(folder), folder.name, host]
    # "as root" is a fact, not a name.
    private += [user] if user != "root" else []
    return [w for w in private if re.search(rf"\b{re.escape(w)}\b", report) or SECRET in report]


def test_a_report_of_a_site_in_trouble(site: Path) -> None:
    """It says which kinds failed and why, and nothing of whose they are."""
    report = call_sentinel(site, "doctor", "--report")
    assert find_private(report, site) == []
    assert re.search(r"^- exec, .* ago: ", report, re.M)
    assert re.search(r"^- channel webhook, 1 attempts: .*Connection refused", report, re.M)
    assert re.search(r"^- channel email, 1 attempts: ", report, re.M)
    assert 'password: {env: "***"}' in report
    assert re.search(r"aiohttp \d+\.\d+", report)


def test_the_state_does_hold_it(site: Path) -> None:
    """The control: who may read the state sees the names."""
    assert "secret-project" in call_sentinel(site, "status")
    assert "zebra" in call_sentinel(site, "config", "show")


def test_a_report_of_a_configuration_with_errors(tmp_path: Path) -> None:
    """Its lines, and what is wrong with them, as far as sentinel's own words say it."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(f"checks: {{disk: {{kind: fs, {SECRET}: 1, every: {SECRET}}}}}\n")
    report = call_sentinel(tmp_path, "doctor", "--report")
    assert find_private(report, tmp_path) == []
    assert re.search(r"line 1: .*unknown key", report)


def test_a_state_that_cannot_be_read_is_one_of_the_errors(site: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "sentinel.db").write_text("no database" * 1000)
    file = tmp_path / "sentinel.yaml"
    file.write_text(CONFIG.format(folder=tmp_path, secret=SECRET))
    file.chmod(0o600)
    report = call_sentinel(tmp_path, "doctor", "--report")
    assert re.search(r"^- state: .*damaged", report, re.M)
    assert find_private(report, tmp_path) == []
