"""Names of time zones."""

from sentinel.config.wording import near
from sentinel.core.errors import Invalid


def timezone(name: str) -> str:
    """The name of a zone that this host knows, or an empty one; raises Invalid."""
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return name and ZoneInfo(name).key
    except (ValueError, OSError, LookupError):
        known = available_timezones()
    if not known:
        raise Invalid("this host has no time zone data; install tzdata")
    close = near(name, known)
    hint = f" (did you mean '{close}'?)" if close else "; write it like Europe/Berlin or UTC"
    raise Invalid(f"there is no time zone '{name}'{hint}")
