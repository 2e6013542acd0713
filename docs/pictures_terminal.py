"""What commands print on a terminal, as SVG."""

import os
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 90
PLACE = Path(__file__).parent / "pictures"


def draw(name: str, command: str, output: str, place: Path) -> None:
    """One SVG with the command and what it printed."""
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(output.rstrip("\n")))
        console.save_svg(str(place / f"{name}.svg"), title="sentinel")
    print(place / f"{name}.svg")
