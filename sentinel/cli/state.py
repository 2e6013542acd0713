"""Opens the state for commands."""

import os
import sys
from collections.abc import Iterable

from sentinel.alerting.silences import Silence, window_silences
from sentinel.alerting.state import Store
from sentinel.clock import SystemClock
from sentinel.config.places import hidden_config_path
from sentinel.config.settings import Settings
from sentinel.core.errors import SentinelError, StoreError
from sentinel.core.guidance import name_config
from sentinel.core.model import Alert
from sentinel.core.text import visible
from sentinel.status.silences import select_manual_silences
from sentinel.store.errors import StateDamaged, StateUnavailable
from sentinel.store.memory import MemoryStore
from sentinel.wiring import app
from sentinel.wiring.app import UsageError


class StateMissing(SentinelError):
    """There is no state to write into."""

    exit_code = 66


def _open_store_for_command(
    settings: Settings, clock: SystemClock, writing: bool, telling: bool
) -> Store:
    if app.has_state(settings):
        return _open_existing_store(settings, clock)
    text = f"{app.describe_state_location(settings)}: no state yet; sentinel run or sentinel tick makes it"
    if writing:
        raise StateMissing(text)
    if telling:
        print(f"sentinel: {text}", file=sys.stderr)
    return MemoryStore()


def _open_existing_store(settings: Settings, clock: SystemClock) -> Store:
    """Open the store without repairing it. Only a service or a tick sets a damaged state aside,
    because it must notify people, and must not act for an hour."""
    try:
        with app.guard_state_reads(settings):
            return app.open_state(settings, clock, mending=False)[0]
    except StateDamaged as error:
        raise StoreError(f"{error}; sentinel run or tick sets it aside and begins anew") from error


class OpenState:
    """The store opened beside a running sentinel, with the clock and zone to show it by.

    Where nothing was ever written it is an empty one, and stderr says so (`telling`): whoever only
    looks must not make it, perhaps as another user. Who is `writing` gets NoState. Raises
    app.StateUnreadable or config.Hidden where somebody else's would have to be looked at. Its `settings`
    have no channels.
    """

    def __init__(self, config: str | None, *, writing: bool = False, telling: bool = True) -> None:
        self._config = config
        settings = app.find_settings(config, quiet=not telling, sending=False)
        settings = settings or app.load_builtin_settings(sending=False)
        clock = SystemClock()
        self.store = _open_store_for_command(settings, clock, writing, telling)
        self.settings, self.now, self.zone = settings, clock.now(), app.get_time_zone(settings)

    def __enter__(self) -> "OpenState":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.store.close()
        if isinstance(error, StateUnavailable):
            raise app.StateUnreadable(str(error)) from error

    def name_config(self, command: str) -> str:
        """The command, as people type it here: with the configuration, where it has to be named."""
        return name_config(command, hidden_config_path(self.settings.path, os.environ))

    def load_channel_settings(self) -> Settings:
        """The channels, for commands that show who is notified of an alert."""
        return app.find_settings(self._config, quiet=True) or app.load_builtin_settings()

    def list_manual_silences(self) -> tuple[Silence, ...]:
        """The silences in force now that somebody has written."""
        return select_manual_silences(self.store.read_orders(), self.now)

    def list_silences(self) -> tuple[Silence, ...]:
        """The silences in the state, and those in the configuration."""
        return (
            *self.list_manual_silences(),
            *window_silences(self.settings.silences, self.now, self.zone),
        )

    def list_current_alerts(self) -> list[Alert]:
        """Those that are pending or firing."""
        return [alert for alert in self.store.read_alerts() if not alert.over]

    def resolve_alert_id(self, word: str) -> str:
        """The alert's full id from an id, its beginning, or a message's key; or by name, the check's
        or the subject's (or both: `disks /scratch`, or the end of it: `sft` for `alice/sft`), where
        one alert of that name is there now. Raises UsageError."""
        now = self.list_current_alerts()
        ids = {a.id for a in now} | {t.alert for t in self.store.read_transitions(10_000)}
        fitting = {i for i in ids if word and i.startswith(word)} or ids & {word.rpartition("-")[0]}
        if len(fitting) == 1:
            return fitting.pop()
        named = select_named_alerts(now, word)
        if word and not named:
            named = [alert for alert in now if alert.key.subject.endswith(f"/{word}")]
        if len(named) == 1:
            return named[0].id
        if named:
            some = "; ".join(f"{a.id} {visible(a.key.subject)}" for a in named[:8])
            raise UsageError(f"{word!r} has {len(named)} alerts; name one: {some}")
        several = f"{len(fitting)} alerts begin with" if fitting else "no alert has the id or name"
        lists = map(self.name_config, ("sentinel alerts list", "sentinel alerts history"))
        raise UsageError(f"{several} {word!r}; see: {', '.join(lists)}")


def select_named_alerts(alerts: Iterable[Alert], word: str) -> list[Alert]:
    """Alerts that people call by this word: by check, by subject, or by both."""
    return [
        alert
        for alert in alerts
        if word
        and word in (alert.key.check, alert.key.subject, f"{alert.key.check} {alert.key.subject}")
    ]
