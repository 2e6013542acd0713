"""The page of each kind of channel: its example loads."""

import re
import tempfile
from pathlib import Path

import pytest

from sentinel.channels import KINDS
from sentinel.config.loader import load_config
from sentinel.wiring.app import CHANNELS, CHECKS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*(f"channels/{kind}.md" for kind in KINDS), "templates.md"]
SECRETS = {
    "ntfy-topic": "https://ntfy.sh/a-topic",
    "mail.html.j2": "<p>{{ summary }}</p>",
}
ENV = {"TWILIO_URL": f"twilio://AC{'a' * 32}:{'b' * 32}@15551234567/15557654321"}

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@pytest.mark.parametrize("page", PAGES)
def test_the_example_loads(page: str, tmp_path: Path) -> None:
    """As it stands, but for where its secrets are."""
    (example,) = re.findall(r"```yaml\n(channels:.*?)```", (DOCS / page).read_text(), re.S)
    for path in set(re.findall(r"\{file: ([^}]+)\}", example)):
        name = Path(path).name
        (tmp_path / name).write_text(SECRETS.get(name, "hunter2-hunter2"))
        (tmp_path / name).chmod(0o600)
        example = example.replace(f"{{file: {path}}}", f"{{file: {name}}}")
    names = re.findall(r"\{env: (\w+)\}", example)
    env = {name: ENV.get(name, "https://hooks.example.org/x") for name in names}
    file = tmp_path / "sentinel.yaml"
    file.write_text("checks: {disks: {kind: fs}}\n" + example)
    assert load_config(str(file), CHECKS, CHANNELS, env=env).warnings == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_channel_keeps_the_contract_of_all(kind: str) -> None:
    """A new one has a class in its own test file with that base (or ServiceContract's, for HTTP)."""
    text = (Path(__file__).parent / f"test_{kind}.py").read_text()
    assert re.search(r"^class \w+\(\w*Contract\):", text, re.M)


def test_a_template_is_no_secret() -> None:
    """Everybody may read its file, unlike that of a password."""
    with tempfile.TemporaryDirectory(
        dir="/tmp"
    ) as folder:  # those of pytest are their user's alone
        Path(folder).chmod(0o755)
        _check_template_warnings(Path(folder))


def _check_template_warnings(tmp_path: Path) -> None:
    for name in ("text.j2", "token"):
        (tmp_path / name).write_text("{{ summary }}" if name == "text.j2" else "x")
        (tmp_path / name).chmod(0o644)
    file = tmp_path / "sentinel.yaml"
    file.write_text(
        "checks: {disks: {kind: fs}}\n"
        "channels: {a: {kind: telegram, token: {file: token}, chat: 1,"
        " templates: {text: {file: text.j2}}}}\n"
    )
    (warning,) = load_config(str(file), CHECKS, CHANNELS, env={}).warnings
    assert warning.path == "channels.a.token"
