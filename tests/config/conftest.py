"""A configuration from text, as the loader sees it: a real file."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sentinel.config.loader import LoadedConfig, load_config
from sentinel.config.problems import ConfigError

from .kinds import CHANNELS, CHECKS

Loader = Callable[..., LoadedConfig]
Errors = Callable[..., list[str]]


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """Load the text with the test's kinds and only the variables that are given."""

    def do(
        text: str | bytes, env: Mapping[str, str] | None = None, mode: int = 0o600
    ) -> LoadedConfig:
        path = tmp_path / "sentinel.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return load_config(str(path), CHECKS, CHANNELS, env=env or {})

    return do


@pytest.fixture
def errors(tmp_path: Path, loaded: Loader) -> Errors:
    """The lines of the error, without the name of the file."""

    def do(text: str | bytes, env: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            loaded(text, env)
        lines = str(caught.value).splitlines()
        assert all(line.startswith(f"{tmp_path}/sentinel.yaml:") for line in lines)
        return [line.removeprefix(f"{tmp_path}/sentinel.yaml:") for line in lines]

    return do
