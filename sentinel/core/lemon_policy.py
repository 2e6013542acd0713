"""Settings for when a GPU or a node is a suspect, and when a GPU is a lemon.

The score itself is computed in sentinel.gpu.lemon_score."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, json

from sentinel.core.errors import Invalid
from sentinel.core.values import Duration, Rate

DAY_S = 86_400
Weight = Annotated[float, Meta(ge=0, le=1000)]
Class = Literal["good", "suspect", "lemon"]


class LemonPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a GPU is under suspicion, and when it is a lemon.

    A weight halves every `half_life`; of each day the heaviest event counts. `weights` changes
    single ones: {"xid 94": 1}. With the defaults a failed diagnosis makes a lemon for a week, and
    so do two days with Xids that ask for a diagnosis.

    A node is a suspect after so many outages in a span (`nodes`); every outage counts alike. On the
    one public trace of outages no weighted or fading sum did better on the half that it was not
    chosen on: `python -m benchmarks.real_lemons`, docs/benchmarks.md.
    """

    half_life: Duration = Duration(28 * DAY_S)
    suspect: Weight = 2.5  # From this score on it is a suspect.
    lemon: Weight = 5.0  # From this score on it is a lemon.
    weights: dict[str, Weight] = {}
    nodes: Rate = Rate("2 in 28d")

    def __post_init__(self) -> None:
        if self.half_life < 3600:
            raise Invalid("must be 1h or longer", "half_life")
        if not 0 < self.suspect <= self.lemon:
            raise Invalid(
                f"a suspect's score ({self.suspect:g}) must be above 0 and not above a lemon's "
                f"({self.lemon:g})",
                "suspect",
            )

    @property
    def counting_recipe(self) -> str:
        """A text that is equal for policies that give the same scores; thresholds do not matter."""
        return json.encode([float(self.half_life), sorted(self.weights.items())]).decode()

    def judge_score(self, score: float) -> Class:
        """Good, suspect or lemon, by the thresholds."""
        if score >= self.lemon:
            return "lemon"
        return "suspect" if score >= self.suspect else "good"


DEFAULT_POLICY = LemonPolicy()
