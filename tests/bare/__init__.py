"""Every command on machines that have next to nothing: `python -m tests.bare` (as root)."""
