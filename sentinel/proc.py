"""The one place that starts a process."""
