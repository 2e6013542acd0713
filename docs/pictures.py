"""`make pictures`: the pictures of README and docs, of a made-up cluster of 64 nodes.

What is seen is drawn by the program itself: a mail and the status page as PNG, `status` on a terminal
of 90 columns as SVG. With `--all FOLDER`, instead what each command and kind prints, to be looked at.
"""

import argparse
from pathlib import Path

from docs.pictures_page import mail, page
from docs.pictures_terminal import PLACE


def main() -> None:
    """Write the pictures, replacing the old ones."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures", description=__doc__)
    parser.add_argument(
        "--all", type=Path, metavar="FOLDER", help="draw each command and kind there"
    )
    if folder := parser.parse_args().all:
        from docs.pictures_commands import draw_all

        return draw_all(folder)
    PLACE.mkdir(exist_ok=True)
    mail(PLACE)
    page(PLACE)
    return None


if __name__ == "__main__":
    main()
