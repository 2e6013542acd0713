"""What is secret in a channel's settings is nowhere in what sentinel shows of its configuration."""

import re
import traceback
from pathlib import Path

import pytest

from sentinel.channels import KINDS
from sentinel.config.display import show_settings
from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.wiring.app import CHANNELS, CHECKS

DOCS = Path(__file__).parents[2] / "docs" / "channels"
SECRET = "hunter2-hunter2"
TWILIO = f"twilio://AC{'a' * 32}:{SECRET.replace('-', '') + 'b' * 18}@15551234567/15557654321"
VALUES = {"ntfy": f"https://ntfy.sh/{SECRET}", "apprise": TWILIO}
KEPT = re.compile(r"(\w+): \{(?:file|env|credential): [^}]+\}")

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


def example(kind: str) -> str:
    """The example of the kind's page, with plain secrets in place of their references."""
    page = (DOCS / f"{kind}.md").read_text()
    (text,) = re.findall(r"```yaml\n(channels:.*?)```", page, re.S)

    def plain(match: re.Match[str]) -> str:
        url = VALUES.get(kind, f"https://hooks.example.org/{SECRET}")
        return f"{match[1]}: '{url if match[1] == 'url' else SECRET}'"

    return "checks: {disks: {kind: fs}}\n" + KEPT.sub(plain, text)


def with_key(text: str, kind: str, key: str) -> str:
    """The example with one more key of its channel."""
    flow = f"{{kind: {kind}" in text
    more = f"kind: {kind}, {key}" if flow else f"kind: {kind}\n    {key}"
    return text.replace(f"kind: {kind}", more, 1)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_secret_is_shown(kind: str, tmp_path: Path) -> None:
    """Not by config show, not by repr, not by a warning."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(example(kind))
    file.chmod(0o600)
    loaded = load_config(str(file), CHECKS, CHANNELS, env={})
    shown = [
        show_settings(loaded.settings, loaded.references),
        repr(loaded.settings),
        str(loaded.warnings),
    ]
    assert "hunter2" not in "\n".join(shown)
    if kind not in ("alertmanager", "console", "exec", "file"):
        assert "hunter2" in file.read_text()
        assert "***" in shown[0]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_secret_is_in_an_error(kind: str, tmp_path: Path) -> None:
    """Of a file that has others beside it, nor in its traceback."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(with_key(example(kind), kind, "nonsense: true"))
    with pytest.raises(ConfigError) as caught:
        load_config(str(file), CHECKS, CHANNELS, env={})
    told = [str(caught.value), *traceback.format_exception(caught.value)]
    assert "nonsense" in told[0]
    assert "hunter2" not in "\n".join(told)
