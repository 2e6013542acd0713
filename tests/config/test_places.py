"""Where the configuration is looked for, and what there is without one."""

import os
from pathlib import Path

import pytest

from sentinel.config.default import embedded_default
from sentinel.config.places import SERVICE, find_config, hidden_config_path, searched_places
from sentinel.config.registry import KindRegistry
from sentinel.core.settings import CheckCommon

from .kinds import HERE, Disk, Screen, Watch


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that is the working directory as well."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


HERE_FIRST = bool(os.geteuid())
"""Root's working directory is never looked at; tests/cli/test_whose.py has what users see."""


def test_the_places_are_looked_at_in_their_order(home: Path) -> None:
    """-c, $SENTINEL_CONFIG, the working directory, $XDG_CONFIG_HOME, the home's .config."""
    env = {"HOME": str(home)}
    in_home = home / ".config" / "sentinel" / "sentinel.yaml"
    in_xdg = home / "xdg" / "sentinel" / "sentinel.yaml"
    for path in (in_home, in_xdg):
        path.parent.mkdir(parents=True)
        path.touch()
    assert find_config(None, env) == str(in_home)
    env["XDG_CONFIG_HOME"] = str(home / "xdg")
    assert find_config(None, env) == str(in_xdg)
    (home / "sentinel.yaml").touch()
    assert find_config(None, env) == ("./sentinel.yaml" if HERE_FIRST else str(in_xdg))
    env["SENTINEL_CONFIG"] = "from-env.yaml"
    assert find_config(None, env) == "from-env.yaml"
    assert find_config("asked.yaml", env) == "asked.yaml"


def test_nothing_found_is_none_and_a_sentence_with_all_places(home: Path) -> None:
    """With what to do about it."""
    assert find_config(None, {"HOME": str(home)}) is None
    here = "./sentinel.yaml, " if HERE_FIRST else ""
    assert searched_places({"HOME": "/h"}) == (
        f"no configuration found; looked for -c FILE, $SENTINEL_CONFIG, {here}"
        "/h/.config/sentinel/sentinel.yaml, /etc/sentinel/sentinel.yaml; "
        "`sentinel init` sets everything up, `sentinel config init` writes only the file"
    )


def test_a_file_asked_for_is_not_replaced_by_another(home: Path) -> None:
    """A typing error in -c must not start the service on ./sentinel.yaml."""
    (home / "sentinel.yaml").touch()
    assert find_config("sentinle.yaml", {}) == "sentinle.yaml"
    assert find_config(None, {"SENTINEL_CONFIG": "gone.yaml"}) == "gone.yaml"


def test_without_a_home_only_the_rest_is_looked_at(home: Path) -> None:
    """No `.config` relative to wherever one is."""
    (home / ".config" / "sentinel").mkdir(parents=True)
    (home / ".config" / "sentinel" / "sentinel.yaml").touch()
    assert find_config(None, {}) is None


def test_a_link_to_nowhere_is_found_so_that_it_is_told(home: Path) -> None:
    """Rather than silently passed over."""
    (home / "sentinel").mkdir()
    (home / "sentinel" / "sentinel.yaml").symlink_to("gone")
    found = str(home / "sentinel" / "sentinel.yaml")
    assert find_config(None, {"XDG_CONFIG_HOME": str(home)}) == found


CHECKS = KindRegistry({"fs": f"{HERE}:Disk", "slurm": f"{HERE}:Disk"}, "sentinel.test.none")
CHANNELS = KindRegistry({"console": f"{HERE}:Screen"}, "sentinel.test.none")


def test_without_a_file_the_disks_are_told_on_the_terminal() -> None:
    """Under the host's name where no Slurm names the cluster."""
    settings = embedded_default(CHECKS, CHANNELS, hostname="box")
    assert settings.cluster == "box"
    assert [(c.name, c.common, c.plugin) for c in settings.checks] == [
        ("disks", CheckCommon(kind="fs"), Disk())
    ]
    assert [(c.name, c.kind, c.plugin) for c in settings.channels] == [
        ("terminal", "console", Screen())
    ]
    assert settings.routes == ()


def test_where_there_is_slurm_its_controller_is_watched_too() -> None:
    """And Slurm's own name of the cluster is the label."""
    settings = embedded_default(CHECKS, CHANNELS, hostname="box", slurm=True)
    assert settings.cluster == ""
    assert [c.common.kind for c in settings.checks] == ["fs", "slurm"]
    assert not any(isinstance(c.plugin, Watch) for c in settings.checks)


def test_a_file_that_its_user_finds_from_anywhere_need_not_be_named(home: Path) -> None:
    env = {"HOME": str(home)}
    own = home / ".config" / "sentinel" / "sentinel.yaml"
    assert hidden_config_path(SERVICE, env) == ""
    assert hidden_config_path("", env) == ""  # the built-in default
    assert hidden_config_path("night.yaml", env) == str(home / "night.yaml")
    own.parent.mkdir(parents=True)
    own.touch()
    assert hidden_config_path(str(own), env) == ""
    assert hidden_config_path(SERVICE, env) == SERVICE  # the own one would be found first
