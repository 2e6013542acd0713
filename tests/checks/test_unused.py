"""A setting that changes nothing is refused, at its line, with the reason; where it counts it loads."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.wiring.app import CHANNELS, CHECKS

LOG = {"kind": "log", "path": "/x/log"}
OF_JOB = {"kind": "log", "job": "train"}
FS = {"kind": "fs", "paths": ["/"]}
CLEAN = {"kind": "clean", "root": "/scratch/logs", "match": "x", "older_than": "7d"}
CASES: list[tuple[dict[str, Any], str, Any, str, dict[str, Any]]] = [
    ({"kind": "checkpoint", "path": "/ckpt"}, "users", ["bob"], "name the job", {"job": "train"}),
    ({"kind": "memory"}, "users", ["bob"], "name the job", {"job": "train"}),
    (FS, "users", ["bob"], "name the job", {"job": "train"}),
    ({"kind": "fs"}, "mounted", False, "without `paths`", {"paths": ["/"]}),
    (FS, "lag", "5m", "belongs to a forecast", {"headroom": "8 checkpoints"}),
    (FS, "lag", "5m", "belongs to a forecast", {"warn": {"full_in": "3d"}}),
    (LOG, "users", ["bob"], "name the job", {"job": "train"}),
    (LOG, "startup", "5m", "name the job", {"job": "train"}),
    (LOG, "ask_nodes", False, "name the job", {"job": "train"}),
    (LOG, "floor", "5m", "`stale_after: auto`", {"stale_after": "auto"}),
    (LOG, "ceiling", "50m", "`stale_after: auto`", {"stale_after": "auto"}),
    (
        {**LOG, "progress": "growth"},
        "slower_than",
        "50%",
        "`progress`",
        {"progress": r"step (\d+)"},
    ),
    ({**LOG, "known_errors": False}, "ignore", ["x"], "no errors", {"errors": {"a": "b"}}),
    (OF_JOB, "killswitch", "/x/stop", "`on_stale: [killswitch]`", {"on_stale": ["killswitch"]}),
    (OF_JOB, "signal", "TERM", "`on_stale: [cancel]`", {"on_stale": ["cancel"]}),
    ({"kind": "job", "name": "train"}, "forget_after", "2h", "never forgotten", {"users": ["*"]}),
    ({"kind": "nodes", "each": False}, "ignore", ["maint"], "`each: false`", {"each": True}),
    ({"kind": "drained"}, "reboot_after", "2h", "`reboot: true`", {"reboot": True}),
    ({"kind": "drained"}, "limits", {"per_hour": 1}, "nothing is done", {"undrain": True}),
    (CLEAN, "limits", {"per_hour": 1}, "`remove: true`", {"remove": True}),
    ({"kind": "diag"}, "limits", {"per_hour": 1}, "`on_fail: drain`", {"on_fail": "drain"}),
    ({"kind": "diag", "level": 4}, "deepen", True, "the deepest", {"level": 3}),
    ({"kind": "diag"}, "keep", "1h", "`nodes: returned`", {"nodes": "returned"}),
    ({"kind": "diag", "nodes": "returned"}, "fresh", "1h", "every node", {"nodes": "idle"}),
    ({"kind": "diag", "nodes": "returned"}, "deepen", True, "alike", {"nodes": "idle"}),
    ({"kind": "diag", "test": "cuda"}, "level", 1, "dcgmi", {"test": "dcgmi"}),
    ({"kind": "gpu", "nodes": "all"}, "limits", {"per_hour": 1}, "`drain: true`", {"drain": True}),
    ({"kind": "gpu"}, "busy", {"power": 9}, "`dmon`", {"dmon": ["/var/log/dmon"]}),
    ({"kind": "gpu"}, "signals", False, "`nodes`", {"nodes": "all"}),
]


def loads(folder: Path, check: dict[str, Any]) -> None:
    """Raises ConfigError; one key a line, in the order given."""
    lines = [
        f"    {key}: {yaml.safe_dump(value, default_flow_style=True, width=999).strip()}"
        for key, value in check.items()
    ]
    text = "\n".join(["checks:", "  a:", *(line.removesuffix("...").rstrip() for line in lines)])
    (folder / "s.yaml").write_text(text + "\n")
    load_config(str(folder / "s.yaml"), CHECKS, CHANNELS, env={})


@pytest.mark.parametrize(
    ("check", "key", "value", "why", "needed"),
    CASES,
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_what_changes_nothing_is_refused_with_its_line_and_the_reason(
    tmp_path: Path, check: dict[str, Any], key: str, value: Any, why: str, needed: dict[str, Any]
) -> None:
    """And taken where what it belongs to is there."""
    with pytest.raises(ConfigError) as caught:
        loads(tmp_path, {**check, key: value})
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (3 + len(check), f"checks.a.{key}")
    assert problem.message.startswith("changes nothing: ")
    assert why in problem.message
    loads(tmp_path, {**check, **needed, key: value})


@pytest.mark.parametrize(
    "check",
    [
        {"kind": "gpu", "nodes": "all"},
        {**FS, "nodes": "all"},
        {"kind": "memory", "job": "llm"},
        {"kind": "network", "nodes": "all"},
        {"kind": "sensors", "nodes": "all"},
        {"kind": "host", "nodes": "all"},
        {"kind": "service", "nodes": "login1", "processes": ["sshd"]},
    ],
    ids=lambda check: check["kind"],
)
def test_nodes_of_another_cluster_are_refused(tmp_path: Path, check: dict[str, Any]) -> None:
    """There is no way to them: it would be unknown at every run."""
    text = yaml.safe_dump(
        {"clusters": {"east": {"conf": "/e"}}, "checks": {"a": {**check, "cluster": "east"}}}
    )
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(str(tmp_path / "s.yaml"), CHECKS, CHANNELS, env={})
    (problem,) = caught.value.problems
    assert problem.path == "checks.a.cluster"
    assert "the cluster at hand only: run a sentinel over there" in problem.message
