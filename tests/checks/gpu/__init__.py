"""The `gpu` check."""
