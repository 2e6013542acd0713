"""What goes into the distribution of sentinel.training, from a checkout or from its own sdist."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {
    "training.py": "sentinel/training/__init__.py",
    "py.typed": "sentinel/training/py.typed",
    "LICENSE": "sentinel/training/LICENSE",
}
"""Names in the sdist to places in the wheel."""


class TrainingBuildHook(BuildHookInterface):
    """A checkout has the files two folders up; the sdist has them beside its pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        here = Path(self.root)
        checkout = here.parents[1]
        places = {name: here / name for name in FILES}
        if not places["training.py"].exists():
            places = {name: checkout / "sentinel" / name for name in FILES}
            places["LICENSE"] = checkout / "LICENSE"
        names = {name: name for name in FILES} if self.target_name == "sdist" else FILES
        build_data["force_include"] = {str(path): names[name] for name, path in places.items()}
