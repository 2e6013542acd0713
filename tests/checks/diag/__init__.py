"""The `diag` check."""
