"""What a service loads at its start, and whom it costs that a module does not load."""

import sys
from pathlib import Path

import pytest

from sentinel.channels.email import Email
from sentinel.channels.file import FileChannel
from sentinel.checks.exec import ExecCheck
from sentinel.config.foreign import BrokenCheck
from sentinel.config.settings import Settings
from sentinel.core.settings import ChannelCommon, ChannelConfig, CheckCommon, CheckConfig
from sentinel.wiring.needed_modules import find_needed
from sentinel.wiring.preload import preload


def configured(broken: str = "") -> Settings:
    mail = Email(to=["a@example.org"], from_="s@example.org", host="localhost")
    book = FileChannel(path="/tmp/book")
    checks = [
        CheckConfig(name="ok", common=CheckCommon(kind="exec"), plugin=ExecCheck(command=["true"]))
    ]
    if broken:
        plugin = BrokenCheck(why=broken)
        checks.append(CheckConfig(name="bad", common=CheckCommon(kind="x"), plugin=plugin))
    return Settings(
        checks=checks,
        channels=[
            ChannelConfig(
                name="mail", kind="email", plugin=mail, common=ChannelCommon(kind="email")
            ),
            ChannelConfig(name="book", kind="file", plugin=book, common=ChannelCommon(kind="file")),
        ],
    )


def test_all_is_loaded() -> None:
    """Also what is normally imported with the first message or the first look."""
    assert preload(configured()) == {}
    for name in (
        "sentinel.channels.smtp",
        "aiosmtplib",
        "sentinel.stacks.gather",
        "sentinel.web.server",
    ):
        assert name in sys.modules


def test_what_is_missing_costs_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not there is told of the channel that sends by it, and of no other."""
    for name in ("aiosmtplib", "sentinel.channels.smtp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "aiosmtplib", None)
    found = preload(configured(broken="kind 'x' does not load: cut"))
    assert found.pop("check bad") == "kind 'x' does not load: cut"
    assert [*found] == ["channel mail"]
    assert "aiosmtplib" in found["channel mail"]


def test_imports_that_the_code_can_do_without_are_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For types alone, or with something else in their place."""
    monkeypatch.syspath_prepend(str(tmp_path))
    spared = [
        "try:\n    import {}\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    import {}",
    ]
    spared += ["with suppress(ImportError):\n    import {}"]
    needed = [
        "import {}",
        "from {} import x",
        "def f():\n    import {}",
        "try:\n    import {}\nexcept OSError:\n    pass",
    ]
    for number, text in enumerate([*needed, *spared]):
        (tmp_path / f"mod{number}.py").write_text(text.format("thing") + "\n")
        expected = "thing" if text in needed else ""
        assert find_needed(f"mod{number}", {"thing"}, own="mod") == expected
