"""A running job for tests of logs."""

from typing import Any

from sentinel.core.cluster import Job


def job(**fields: Any) -> Job:
    """Job 7, `train` of root, running on node-0; `fields` replace any of that."""
    return Job(
        **{
            "id": "7",
            "job_id": "7",
            "array_id": "7",
            "task": "",
            "name": "train",
            "user": "root",
            "partition": "p",
            "state": "RUNNING",
            "reason": "",
            "nodes": "node-0",
            "node_count": 1,
            "dependency": "",
            "submitted": 1,
            "started": 2,
            "ends": None,
            "time_limit": None,
            "workdir": "/work",
            **fields,
        }
    )
