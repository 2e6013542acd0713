"""What sentinel does when nobody has configured it: this machine, told on the terminal."""

from collections.abc import Mapping
from typing import Any

from sentinel.config.convert import Converter
from sentinel.config.loader import Assembler, Kinds
from sentinel.config.nodes import plain
from sentinel.config.problems import Collector
from sentinel.config.registry import Registries, Registry
from sentinel.config.settings import Settings
from sentinel.config.sources import Sources


def embedded_default(
    checks: Registry, channels: Registry | None, *, hostname: str = "", slurm: bool = False
) -> Settings:
    """Local file systems on the console; Slurm's controller too where `slurm` says it is there.

    `hostname` is the label on messages where there is no Slurm that names its cluster.
    """
    return from_data(_data(hostname, slurm), checks, channels)


def from_data(data: Mapping[str, Any], checks: Registry, channels: Registry | None) -> Settings:
    """Settings from what a file would hold; raises ConfigError as the loader does."""
    collector = Collector("built-in default")
    converter = Converter(collector, Sources({}))
    kinds = Kinds(converter, collector, Registries(checks, channels))
    settings = Assembler(converter, collector, kinds).settings(plain(data))
    collector.check()
    return settings


def _data(hostname: str, slurm: bool) -> dict[str, Any]:
    controller = {"slurm": {"kind": "slurm"}} if slurm else {}
    return {
        "cluster": "" if slurm else hostname,
        "checks": {"disks": {"kind": "fs"}, **controller},
        "channels": {"terminal": {"kind": "console"}},
    }
