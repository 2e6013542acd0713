"""What the configuration says about telling people."""

from collections.abc import Container, Mapping, Sequence
from datetime import timezone, tzinfo

from msgspec import Struct

from sentinel.alerting.settings import Inhibit, Route, Window
from sentinel.alerting.state_machine import Policy


class Plan(Struct, frozen=True, kw_only=True):
    """Whom to tell of what, as one configuration has it; without I/O, for the decisions.

    `personal`: the channels that tell each user of their own jobs.
    """

    cluster: str
    policies: Mapping[str, Policy]
    channels: Sequence[str]
    personal: Container[str] = ()
    routes: Sequence[Route] = ()
    inhibit: Sequence[Inhibit] = ()
    windows: Sequence[Window] = ()
    zone: tzinfo = timezone.utc
    dry_run: bool = False
