"""Metrics as a file for node_exporter's textfile collector.

https://github.com/prometheus/node_exporter#textfile-collector: it must appear whole, so it is
written beside its place and renamed.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from sentinel.status.types import Facts
from sentinel.web.metrics import render_metrics


def write_textfile(path: str, facts: Facts) -> None:
    """Replace the file; raises OSError, and then the old one is still there."""
    folder = os.path.dirname(path) or "."
    handle, beside = tempfile.mkstemp(prefix=".sentinel-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(render_metrics(facts))
            os.fchmod(file.fileno(), 0o644)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
