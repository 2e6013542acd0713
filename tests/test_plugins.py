"""The package of docs/plugins.md, built, installed and used as it stands on the page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "plugins.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's package is installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in _files().items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (source / "sentinel_site" / "__init__.py").touch()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, timeout=100)
    return target


def _files() -> dict[str, str]:
    """The code blocks, by the file names in the headings above them."""
    blocks = re.findall(
        r"^## (?:[^\n]*: )?(\S+\.(?:py|toml))\n+```\w+\n(.*?)^```", PAGE.read_text(), re.M | re.S
    )
    return {name if name.endswith(".toml") else f"sentinel_site/{name}": b for name, b in blocks}


def _sentinel(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *argv],
        env={**os.environ, "PYTHONPATH": str(site), "HOME": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_check_on_the_page_has_at_most_forty_lines() -> None:
    """A complete kind fits on a screen."""
    assert len(_files()["sentinel_site/queue_age.py"].splitlines()) <= 40


def test_the_check_on_the_page_needs_no_package(tmp_path: Path) -> None:
    """As the page says: a file in a directory, and its options on the command line."""
    (tmp_path / "queue_age.py").write_text(_files()["sentinel_site/queue_age.py"])
    config = tmp_path / "sentinel.yaml"
    config.write_text(f"checks_from: [{tmp_path}]\n")
    words = ["queue_age", "-c", str(config), "--partition", "p", "--warn"]
    assert "'soon' is no duration" in _sentinel(tmp_path, "check", *words, "soon").stderr


def test_the_test_on_the_page_passes(tmp_path: Path) -> None:
    """As the page says, beside the directory of the checks."""
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "queue_age.py").write_text(_files()["sentinel_site/queue_age.py"])
    [text] = re.findall(r"^### A test of it\n+```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (tmp_path / "test_queue_age.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_queue_age.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "checks"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_foreign_kinds_are_listed_with_their_origin(site: Path) -> None:
    """One line each, and the distribution they come from."""
    rows = {r["kind"]: r for r in json.loads(_sentinel(site, "plugins", "--json").stdout)}
    assert rows["queue-age"]["from"] == "sentinel-site 1.0"
    assert rows["queue-age"]["description"].startswith("How long the oldest pending job")
    assert rows["spool"]["what"] == "channel"
    assert rows["fs"]["from"] == "sentinel"


def test_a_foreign_check_takes_options_and_a_foreign_channel_delivers(
    site: Path, tmp_path: Path
) -> None:
    """As built-in ones do: options, errors in words, configuration, outbox."""
    wrong = _sentinel(site, "check", "queue-age", "--partition", "p", "--warn", "soon")
    assert wrong.returncode == 64
    assert "'soon' is no duration" in wrong.stderr
    told = _sentinel(site, "check", "queue-age", "--help").stdout
    assert "--warn               A warning from this age on. (a duration like 15m" in told
    spool = tmp_path / "spool"
    spool.mkdir()
    config = tmp_path / "sentinel.yaml"
    config.write_text(
        f"cluster: lab\nstate: {tmp_path}/state\n"
        "checks: {ages: {kind: exec, command: [/bin/false]}}\n"
        f"channels: {{out: {{kind: spool, directory: {spool}}}}}\n"
    )
    tick = _sentinel(site, "tick", "-c", str(config))
    assert tick.returncode == 0, tick.stderr
    assert [p.read_text().split()[:2] for p in spool.iterdir()] == [["warning", "ages"]]


def test_a_foreign_kind_in_the_file_is_checked_like_any_other(site: Path, tmp_path: Path) -> None:
    """Unknown keys with the nearest right one, at file and line."""
    config = tmp_path / "sentinel.yaml"
    config.write_text("checks:\n  ages:\n    kind: queue-age\n    partiton: prod\n")
    done = _sentinel(site, "config", "check", "-c", str(config))
    assert done.returncode == 2
    assert (
        f"{config}:4: checks.ages.partiton: unknown key (did you mean 'partition'?)"
        in done.stdout + done.stderr
    )


def test_a_kind_that_does_not_load_is_named_and_the_rest_works(site: Path, tmp_path: Path) -> None:
    """A broken plugin of somebody else's must not take sentinel down."""
    broken = site / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[sentinel.checks]\nbroken = no_such_module:Kind\n")
    try:
        rows = {r["kind"]: r for r in json.loads(_sentinel(site, "plugins", "--json").stdout)}
        assert "does not load" in rows["broken"]["description"]
        used = _sentinel(site, "check", "broken")
        assert used.returncode == 64
        assert "kind 'broken' from broken 1.0 does not load" in used.stderr
        assert _sentinel(site, "check", "fs", "--path", "/").returncode in (0, 1, 2)
    finally:
        for path in broken.iterdir():
            path.unlink()
        broken.rmdir()


def test_a_foreign_channel_that_fails_keeps_its_message_and_no_other(
    tmp_path: Path,
) -> None:
    """Raising anything, not loading, or raising where it is only asked what it is like: what it was
    given waits, with the reason, and the others deliver."""
    hooks = {
        "raising": "async def send(self, notifications):\n        raise RuntimeError('no luck')",
        "asked": "async def send(self, notifications): ...\n"
        "    @property\n    def personal(self):\n        return 1 / 0",
        "absent": "async def send(self): ...",
    }
    for name, hook in hooks.items():
        text = f"from sentinel.plugin import Channel\n\n\nclass Kind(Channel, frozen=True):\n    {hook}\n"
        (tmp_path / f"{name}.py").write_text(text)
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[sentinel.channels]\n{name} = {name}:Kind\n")
    config = tmp_path / "sentinel.yaml"
    channels = ", ".join(f"{name}: {{kind: {name}}}" for name in hooks)
    config.write_text(
        f"cluster: lab\nstate: {tmp_path}/state\n"
        "checks: {ages: {kind: exec, command: [/bin/false]}}\n"
        f"channels: {{{channels}, out: {{kind: file, path: {tmp_path}/out}}}}\n"
    )
    tick = _sentinel(tmp_path, "tick", "-c", str(config))
    assert tick.returncode == 0, tick.stderr
    assert json.loads((tmp_path / "out").read_text().splitlines()[0])["check"] == "ages"
    rows = json.loads(_sentinel(tmp_path, "status", "--json", "-c", str(config)).stdout)["unsent"]
    why = {row["channel"]: row["error"] for row in rows}
    assert "no luck" in why["raising"]
    assert "`personal`" in why["asked"]
    assert "takes 1 positional argument but 2 were given" in why["absent"]
