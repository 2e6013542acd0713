"""Where the configuration is looked for."""

import os
from collections.abc import Mapping

ENVIRONMENT = "SENTINEL_CONFIG"


def find(explicit: str | None, env: Mapping[str, str]) -> str | None:
    """The file to use: the one that was asked for, else the first place that has one.

    A file asked for by `-c` or `$SENTINEL_CONFIG` is returned whether it exists or not, so
    that a typing error is told and no other file is taken silently.
    """
    asked = explicit or env.get(ENVIRONMENT)
    return asked or next((path for path in places(env) if os.path.lexists(path)), None)


def places(env: Mapping[str, str]) -> list[str]:
    """The places without an explicit wish, in order (XDG Base Directory Specification 0.8)."""
    home = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    own = [os.path.join(home, "sentinel", "sentinel.yaml")] if os.path.isabs(home) else []
    return ["sentinel.yaml", *own, "/etc/sentinel/sentinel.yaml"]


def searched(env: Mapping[str, str]) -> str:
    """One sentence for the person who has no configuration yet."""
    return (
        f"no configuration found; looked for -c FILE, ${ENVIRONMENT}, "
        f"{', '.join(('./' + places(env)[0], *places(env)[1:]))}; "
        "`sentinel config init` writes one"
    )
