"""Draws ten thousand nodes, one cell each, in a few kilobytes. Pure.

A run of cells of one state in a row is one dashed stroke. SVG begins the pattern of dashes anew
with each stroke (https://www.w3.org/TR/SVG2/painting.html#StrokeDashing), so a run of n nodes is n
cells."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

CELL, GAP = 10, 2
WIDE, NARROW, FEW = 100, 40, 2000
"""Cells in a row for many nodes and for few nodes, and the number of nodes up to which they are
few."""

# Medium colours that also differ in brightness, for a white and a black background.
STATE_COLOURS = {
    "down": "#d92d20", "fail": "#d92d20", "drained": "#e8700a", "draining": "#f0a13a",
    "unknown": "#9155d9", "rebooting": "#9155d9", "maint": "#7d6bb8", "powered_down": "#6b7682",
    "completing": "#2f8f83", "blocked": "#4f86a8", "reserved": "#4f86a8", "planned": "#4f86a8",
    "allocated": "#2563c9", "mixed": "#5b93ea", "idle": "#8fa3b5",
}  # fmt: skip


def get_state_colour(state: str) -> str:
    """The colour of a state."""
    return STATE_COLOURS.get(state, "#9155d9")


def choose_grid_columns(count: int) -> int:
    """The number of cells in a row for `count` nodes."""
    return WIDE if count > FEW else NARROW


def find_cell_index(count: int, x: int, y: int) -> int | None:
    """The index of the node whose cell is at that point of the picture; None if there is no
    cell."""
    width = choose_grid_columns(count)
    column, row = x // CELL, y // CELL
    place = row * width + column
    return place if 0 <= column < width and 0 <= place < count else None


def draw_node_grid(states: Sequence[str]) -> str:
    """The cells as SVG, CELL pixels wide and high each."""
    width = choose_grid_columns(len(states))
    rows = -(-len(states) // width)
    size = f'width="{width * CELL}" height="{rows * CELL}"'
    paths = _build_stroke_paths(states, width)
    drawn = "".join(f'<path stroke="{get_state_colour(s)}" d="{d}"/>' for s, d in paths.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width * CELL} {rows * CELL}">'
        f'<g fill="none" stroke-width="{CELL - GAP}" stroke-dasharray="{CELL - GAP} {GAP}">'
        f"{drawn}</g></svg>"
    )


def draw_state_bar(states: Mapping[str, int]) -> str:
    """A bar in SVG. Its parts show how many nodes are in each state."""
    total, left, parts = sum(states.values()) or 1, 0.0, []
    for state, count in states.items():
        width = 1000 * count / total
        parts.append(
            f'<rect x="{left:.1f}" width="{width:.1f}" height="18" fill="{get_state_colour(state)}"/>'
        )
        left += width
    words = ", ".join(f"{n} {s}" for s, n in states.items())
    return (
        f'<svg class="strip" viewBox="0 0 1000 18" preserveAspectRatio="none" role="img" '
        f'aria-label="Nodes: {words}">{"".join(parts)}</svg>'
    )


def _build_stroke_paths(states: Sequence[str], width: int) -> dict[str, str]:
    paths: dict[str, str] = {}
    place = 0
    for row in range(0, len(states), width):
        for state, run in itertools.groupby(states[row : row + width]):
            length = sum(1 for _ in run)
            x, y = place % width * CELL + GAP // 2, place // width * CELL + CELL // 2
            paths[state] = f"{paths.get(state, '')}M{x} {y}h{length * CELL - GAP}"
            place += length
    return paths
