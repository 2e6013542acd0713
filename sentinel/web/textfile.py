"""Writes metrics as a file for node_exporter's textfile collector.

https://github.com/prometheus/node_exporter#textfile-collector: the file must appear whole, so it is
written beside its place and renamed."""

from __future__ import annotations

from sentinel.proc.whole_files import replace_whole_file
from sentinel.status.types import Facts
from sentinel.web.metrics import render_metrics


def write_textfile(path: str, facts: Facts) -> None:
    """Replace the file. Raises OSError; then the old file is still there."""
    replace_whole_file(path, render_metrics(facts), 0o644)
