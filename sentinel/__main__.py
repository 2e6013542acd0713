"""`python -m sentinel`."""

from sentinel.cli import run_process

run_process()
