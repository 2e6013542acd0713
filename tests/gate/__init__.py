"""What decides whether a commit lands: tests that failed are heard again, and a table says why.

`outcomes.py` is the pytest plugin that writes down a run, `hearing.py` runs pytest and then the failing
tests alone, `table.py` prints the steps of `.ci/run` and the reasons of failures.
"""
