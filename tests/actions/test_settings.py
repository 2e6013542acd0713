"""The sections `actions` and `guard` of the configuration."""

from pathlib import Path

import pytest

from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.config.settings import Settings
from sentinel.core.action_limits import ActionSettings, BreakerSettings, Limits
from sentinel.core.errors import Invalid
from sentinel.core.values import Duration, Rate, Share
from sentinel.wiring.app import CHANNELS, CHECKS


def settings(folder: Path, text: str) -> Settings:
    path = folder / "sentinel.yaml"
    path.write_text(text)
    return load_config(str(path), CHECKS, CHANNELS).settings


def test_by_default_nothing_is_done(tmp_path: Path) -> None:
    """No action is on until somebody writes so; naming it is not enough."""
    assert settings(tmp_path, "").actions == {}
    assert not settings(tmp_path, "actions: {undrain: {}}").actions["undrain"].enabled


def test_every_key(tmp_path: Path) -> None:
    """As the documentation shows them."""
    found = settings(
        tmp_path,
        """
actions:
  undrain:
    enabled: true
    limits: {per_hour: 5, share: 20%, per_node: "2 in 3d", cooldown: 1h}
guard:
  maintenance: true
  breaker: {nodes: 7, share: 5%, within: 5m, cooldown: 2h}
""",
    )
    limits = Limits(per_hour=5, share=Share(20), per_node=Rate("2 in 3d"), cooldown=Duration(3600))
    assert found.actions["undrain"] == ActionSettings(enabled=True, limits=limits)
    assert found.guard.maintenance
    assert found.guard.breaker == BreakerSettings(
        nodes=7, share=Share(5), within=Duration(300), cooldown=Duration(7200)
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("actions: {undrain: {limits: {per_hour: -1}}}", "actions.undrain.limits.per_hour"),
        ("actions: {undrain: {limits: {per_hour: 1001}}}", "at most 1000"),
        ("actions: {undrain: {limits: {per_node: 3}}}", "'3' is no rate; write it like 3 in 7d"),
        ("actions: {undrain: {limits: {per_node: 0 in 7d}}}", "is no rate"),
        ("actions: {undrain: {limits: {share: 10}}}", "is no share"),
        ("actions: {undrain: {limit: {}}}", "did you mean 'limits'?"),
        ("guard: {breaker: {nodes: 0}}", "guard.breaker.nodes"),
        ("guard: {breaker: {nodes: 1001}}", "at most 1000"),
        ("guard: {breaker: {cooldown: soon}}", "is no duration"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """With the path of its key."""
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, text)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("text", "times", "window"),
    [("3 in 7d", 3, 7 * 86_400), ("1 in 90s", 1, 90), ("12 in 1d12h", 12, 129_600)],
)
def test_a_rate(text: str, times: int, window: float) -> None:
    """A number and a span; what it prints reads back as the same."""
    rate = Rate.parse(text)
    assert (rate.times, rate.window) == (times, window)
    assert Rate.parse(str(rate)) == rate


@pytest.mark.parametrize(
    "text", ["", "3", "3 in", "in 7d", "3 in 7", "0 in 7d", "-1 in 7d", "1e3 in 1d"]
)
def test_no_rate(text: str) -> None:
    """One line that shows the form."""
    with pytest.raises(Invalid, match="write it like"):
        Rate.parse(text)
