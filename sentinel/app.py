"""The only wiring."""
