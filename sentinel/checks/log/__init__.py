"""The `log` kind: does a training make progress, and what else does its log say?

check.py holds the settings, and run.py is one run. gather.py finds and reads files (files.py,
file_offset.py). recognition.py finds out who wrote them, by the table in trainers.py. scan.py finds
events in new text, and progress.py remembers them. cadence.py and slowdown.py learn what
is usual. judge.py and topics.py decide, and log_findings.py writes the findings. If a training
seems to hang, witness.py and ask.py ask its nodes, and requests.py requests actions.
"""

from sentinel.checks.log.check import Log

__all__ = ["Log"]
