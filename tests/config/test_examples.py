"""The examples in config/, and what `config init` writes, work as they stand."""

import re
from pathlib import Path

import pytest
import yaml

from sentinel.config.display import show_settings
from sentinel.config.loader import SECTIONS, LoadedConfig, load_config
from sentinel.config.starter import HostSurroundings, starter_text, write_new
from sentinel.wiring.app import CHANNELS, CHECKS

EXAMPLES = Path(__file__).parents[2] / "config"
ENV = {"CHAT_URL": "https://chat.example.org/hooks/T0K3N"}


def loaded(path: Path, surroundings: Path) -> LoadedConfig:
    """The file with the variables and secret files that its head asks for."""
    secret = surroundings / ".config" / "sentinel" / "smtp-password"
    secret.parent.mkdir(parents=True, exist_ok=True)
    for file in (secret, surroundings / "smtp-password"):
        file.write_text("pass-w0rd\n")
        file.chmod(0o600)
    folders = dict.fromkeys(("HOME", "WORK", "CREDENTIALS_DIRECTORY"), str(surroundings))
    return load_config(str(path), CHECKS, CHANNELS, env={**ENV, **folders})


@pytest.mark.parametrize("name", ["minimal.yaml", "user.yaml", "admin.yaml"])
def test_an_example_loads_without_error_or_warning(tmp_path: Path, name: str) -> None:
    """With the real kinds."""
    found = loaded(EXAMPLES / name, tmp_path)
    assert found.warnings == ()
    assert found.settings.checks
    assert found.settings.channels


def test_every_example_is_tested() -> None:
    """A new one is added to the list above."""
    assert {p.name for p in EXAMPLES.glob("*.yaml")} == {"minimal.yaml", "user.yaml", "admin.yaml"}


@pytest.mark.parametrize("name", ["minimal.yaml", "user.yaml", "admin.yaml"])
def test_no_secret_of_an_example_is_shown(tmp_path: Path, name: str) -> None:
    """Only where it is kept."""
    found = loaded(EXAMPLES / name, tmp_path)
    shown = show_settings(found.settings, found.references)
    assert "pass-w0rd" not in shown
    assert "T0K3N" not in shown


@pytest.mark.parametrize("slurm", [False, True])
@pytest.mark.parametrize("cluster", ["", "h100", "on: fire"])
def test_what_init_writes_loads(tmp_path: Path, slurm: bool, cluster: str) -> None:
    """Without error or warning, whatever the host is called."""
    path = tmp_path / "sentinel.yaml"
    write_new(str(path), starter_text(HostSurroundings(cluster=cluster, slurm=slurm), user="bob"))
    found = loaded(path, tmp_path)
    assert found.warnings == ()
    assert found.settings.cluster == cluster
    assert [c.common.kind for c in found.settings.checks] == ["fs", "slurm"][: 1 + slurm]


def test_what_init_leaves_as_comments_works_too(tmp_path: Path) -> None:
    """Each line that is a comment with a key loads when it is uncommented."""
    here = HostSurroundings(
        cluster="c",
        slurm=True,
        local=("/", "/odd: name"),
        shared=("/home", "/a b"),
        jobs=("llama: 70b", "eval #2", "%d"),
        partitions=("gpu", "prepost"),
    )
    text = starter_text(here, user="bob")
    lines = text.replace(" /etc/sentinel/smtp-password", " smtp-password").splitlines()
    head = next(i for i, line in enumerate(lines) if line == "checks:")
    body = [
        line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line
        for line in lines[head:]
    ]
    prose = ("Without routes every",)
    path = tmp_path / "sentinel.yaml"
    path.write_text("\n".join(line for line in body if not line.startswith(prose)))
    settings = loaded(path, tmp_path).settings
    assert {c.name for c in settings.checks} == {"disks", "shared", "slurm", "training"}
    assert {c.name for c in settings.channels} == {"terminal", "mail", "book"}
    assert len(settings.routes) == 2
    assert settings.checks[0].plugin.paths == ["/", "/odd: name"]
    training = next(c.plugin for c in settings.checks if c.name == "training")
    assert (training.users, training.name) == (["bob"], "llama: 70b")
    assert training.partition == "gpu"
    assert 'you also run ["eval #2", "%d"]' in text
    assert settings.checks[1].plugin.paths == ["/home", "/a b"]


def test_a_command_of_the_first_file_stands_on_one_line() -> None:
    """Why the GPUs of no node were seen is wrapped; what is pasted is not."""
    trouble = f"{'no route to host ' * 9}; try it with:\nsentinel check gpu --nodes node-[0-3]"
    here = HostSurroundings(service=True, slurm=True, gpus=True, gpu_trouble=trouble)
    lines = starter_text(here).splitlines()
    assert "  #   sentinel check gpu --nodes node-[0-3]" in lines
    assert max(map(len, lines)) <= 100


def test_a_user_with_an_odd_name_breaks_nothing() -> None:
    """Texts of the host are quoted where YAML needs it."""
    text = starter_text(HostSurroundings(local=("/a b", "/[c]")), user="dom\\bob: x")
    assert yaml.safe_load(text)["channels"] == {"terminal": {"kind": "console"}}


def test_init_never_replaces_a_file_and_keeps_it_private(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask; an existing file, or a link, is left alone."""
    path = tmp_path / "sentinel.yaml"
    write_new(str(path), "a: 1\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_new(str(path), "b: 1\n")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_new(str(tmp_path / "link"), "b: 1\n")
    assert path.read_text() == "a: 1\n"


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    """The first block of docs/configuration.md, with a secret file that is there."""
    page = (EXAMPLES.parent / "docs" / "configuration.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "sentinel.yaml"
    path.write_text(text.replace("/etc/sentinel/smtp-password", "~/smtp-password"))
    assert loaded(path, tmp_path).warnings == ()


def test_the_page_names_every_section() -> None:
    """One that nobody reads of is not there."""
    page = (EXAMPLES.parent / "docs" / "configuration.md").read_text()
    table = page.partition("## Sections")[2].partition("### ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(SECTIONS)
