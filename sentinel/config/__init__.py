"""The file -> typed settings, with every error at its line; the same from the command line.

    loaded = load(find(args.config, os.environ), CHECKS, CHANNELS)

Names are imported when they are first used: a one-shot with options never needs YAML.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentinel.config.default import embedded_default
    from sentinel.config.loader import Loaded, load
    from sentinel.config.options import one_shot, options_of
    from sentinel.config.places import Hidden, find, new, searched
    from sentinel.config.problems import ConfigError, Problem

__all__ = [
    "ConfigError",
    "Hidden",
    "Loaded",
    "Problem",
    "embedded_default",
    "find",
    "load",
    "new",
    "one_shot",
    "options_of",
    "searched",
]

_HOMES = {
    "ConfigError": "problems",
    "Loaded": "loader",
    "Problem": "problems",
    "embedded_default": "default",
    "Hidden": "places",
    "find": "places",
    "new": "places",
    "load": "loader",
    "one_shot": "options",
    "options_of": "options",
    "searched": "places",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
