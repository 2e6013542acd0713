"""A real, throw-away Slurm cluster on one machine, and the other real servers that tests need.

`python -m tests.lab shell` gives a shell in one; `python -m tests.lab clean` removes what a
killed test run left behind.
"""
