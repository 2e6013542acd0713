"""The `log` kind: does a training make progress, and what else does its log say.

check.py holds the settings, run.py is one run. gather.py finds and reads files (files.py,
file_offset.py), recognition.py says who wrote them by the table in trainers.py, and scan.py finds
events in new text; progress.py remembers; cadence.py, slowdown.py and spikes.py learn what is
usual, judge.py and secondary.py decide, words.py tells. witness.py and ask.py hear nodes when a
training seems to hang, requests.py asks for what shall be done then.
"""

from sentinel.checks.log.check import Log

__all__ = ["Log"]
