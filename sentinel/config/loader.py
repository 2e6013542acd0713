"""The file -> Settings: read, converted and checked as a whole, or every reason why not."""

import os
import stat
from collections.abc import Callable, Mapping

from msgspec import Struct

from sentinel.config.assemble import Assembler
from sentinel.config.convert import Converter
from sentinel.config.kinds import Kinds, Registries
from sentinel.config.problems import Collector, Path, Problem
from sentinel.config.reader import read
from sentinel.config.registry import Registry
from sentinel.config.settings import Settings
from sentinel.config.sources import Reference, Sources, contents
from sentinel.core import cron

_LARGEST = 4 * 1024 * 1024


class Loaded(Struct, frozen=True):
    """A configuration that can be used, and what is odd about it.

    `references` are the paths of the texts that are kept elsewhere, for `show`.
    """

    settings: Settings
    warnings: tuple[Problem, ...] = ()
    references: Mapping[Path, Reference] = {}


def load(
    path: str,
    checks: Registry,
    channels: Registry,
    check_cron: Callable[[str], object] = cron.parse,
    env: Mapping[str, str] | None = None,
    actions: Registry | None = None,
) -> Loaded:
    """Raises ConfigError with every problem at once; `env` is by default the process's own.

    `check_cron` raises Invalid for a text that is no schedule.
    """
    collector = Collector(path)
    data, mode = _bytes(path, collector)
    root = read(data, collector)
    folder = os.path.dirname(os.path.abspath(path))
    converter = Converter(collector, Sources(os.environ if env is None else env, folder))
    kinds = Kinds(converter, collector, Registries(checks, channels, actions), check_cron)
    settings = Assembler(converter, collector, kinds).settings(root, path)
    if mode & stat.S_IROTH:
        _warn_exposed(converter, collector, path)
    collector.check()
    return Loaded(settings, collector.warnings(), converter.references)


def _bytes(path: str, collector: Collector) -> tuple[bytes, int]:
    try:
        return contents(path, _LARGEST)
    except OSError as error:
        collector.refuse(0, f"the file cannot be read: {error.strerror or error}")


def _warn_exposed(converter: Converter, collector: Collector, path: str) -> None:
    for key, line in converter.exposed:
        collector.warn(
            line,
            key,
            f"a secret stands in a file that everybody can read; chmod 600 {path}, "
            "or write {file: PATH} in its place",
        )
