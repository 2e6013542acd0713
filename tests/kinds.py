"""Bases for kinds of tests that remember what was done with them: settings cannot. What a kind says."""

from typing import Any

from sentinel.plugin import Channel, Check, Finding


def _plain(base: type) -> Any:
    """A class without fields that has all hooks of a base, each as it is there by default."""
    hooks = {name: hook for name, hook in vars(base).items() if not name.startswith("_")}
    return type(f"Plain{base.__name__}", (), hooks)


PlainCheck = _plain(Check)
PlainChannel = _plain(Channel)


def looks(finding: Finding) -> tuple[str, ...]:
    """The commands of a finding that look, as a shell gets them."""
    return tuple(command.render() for command in finding.commands)
