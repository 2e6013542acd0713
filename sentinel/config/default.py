"""What sentinel does when nobody has configured it: this machine, told on the terminal."""

from collections.abc import Mapping
from typing import Any

from sentinel.config.convert import SettingsConverter
from sentinel.config.kind_builder import KindBuilder
from sentinel.config.loader import SettingsAssembler
from sentinel.config.nodes import nodes_from_data
from sentinel.config.problems import ProblemCollector
from sentinel.config.registry import KindRegistries, KindRegistry
from sentinel.config.settings import Settings
from sentinel.config.sources import ConfigSources


def embedded_default(
    checks: KindRegistry, channels: KindRegistry | None, *, hostname: str = "", slurm: bool = False
) -> Settings:
    """Local file systems on the console; Slurm's controller too where `slurm` says it is there.

    `hostname` is the label on messages where there is no Slurm that names its cluster.
    """
    return settings_from_data(_default_data(hostname, slurm), checks, channels)


def settings_from_data(
    data: Mapping[str, Any], checks: KindRegistry, channels: KindRegistry | None
) -> Settings:
    """Settings from the data of a file. Raises ConfigError like the loader."""
    collector = ProblemCollector("built-in default")
    converter = SettingsConverter(collector, ConfigSources({}))
    kinds = KindBuilder(converter, collector, KindRegistries(checks, channels))
    settings = SettingsAssembler(converter, collector, kinds).assemble_settings(
        nodes_from_data(data)
    )
    collector.raise_if_errors()
    return settings


def _default_data(hostname: str, slurm: bool) -> dict[str, Any]:
    controller = {"slurm": {"kind": "slurm"}} if slurm else {}
    return {
        "cluster": "" if slurm else hostname,
        "checks": {"disks": {"kind": "fs"}, **controller},
        "channels": {"terminal": {"kind": "console"}},
    }
