"""The state: one contract over every store, then what only one of them can do."""
