"""The explicit list of action kinds; each is one module or package, imported when used."""

GROUP = "sentinel.actions"

KINDS = {
    "drain": "sentinel.actions.drain:Drain",
    "undrain": "sentinel.actions.undrain:Undrain",
}
