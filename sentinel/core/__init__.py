"""Pure: no input or output, no clock, nothing of sentinel outside this package."""
