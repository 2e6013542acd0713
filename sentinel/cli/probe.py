"""`sentinel nodes probe NODES`: ask nodes themselves how they are, one round trip each."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from sentinel.cli import common
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.nodes.model import described, word
from sentinel.nodes.probe import EVERYTHING, NodeProbe, Unread
from sentinel.wiring import actions


def add(verbs: Any) -> None:
    """Add the parser below `nodes`."""
    parser = common.verb(verbs, "probe", "ask the nodes themselves how they are", call)
    parser.add_argument("nodes", nargs="+", metavar="NODES", help="like node-[0-3],gpu08")
    parser.add_argument("--gpus", action="store_true", help="nvidia-smi -q -x too")


def call(args: argparse.Namespace) -> int:
    """0 when every node told all that was asked, else 1. A silent node is never a healthy one."""
    names = common.names(args.nodes)
    wants = EVERYTHING
    if args.gpus:
        wants = msgspec.structs.replace(wants, parts=(*wants.parts, "gpus"))
    common.say_count(names)
    remote, limit = actions.remote(common.settings_of(args))
    answers = remote.probe(names, wants, limit=limit)
    if args.json:
        print(json.dumps({n: _plain(answers[n]) for n in names}, indent=1))
    else:
        for name in names:
            print("\n".join(_lines(name, answers[name])))
    return int(not all(isinstance(a, NodeProbe) and not a.unread for a in answers.values()))


def _plain(answer: Any) -> Any:
    kind = "answered" if isinstance(answer, NodeProbe) else word(answer)
    return {"answer": kind, **msgspec.to_builtins(answer)}


def _lines(name: str, answer: Any) -> list[str]:
    if not isinstance(answer, NodeProbe):
        return [f"{name}: {described(answer)}"]
    facts = ", ".join(_facts(answer))
    return [
        f"{name}: {facts}",
        *(f"  {part}: not read ({u.kind}): {visible(u.why)}" for part, u in answer.unread.items()),
    ]


def _facts(probe: NodeProbe) -> list[str]:
    facts = []
    if not isinstance(probe.identity, Unread):
        facts.append(f"up {duration_text(probe.identity.uptime)}")
    counted: Mapping[str, Any] = {
        "processes": probe.processes,
        "in state D": probe.blocked,
        "mounts": probe.mounts,
        "GPU processes": probe.gpu_processes,
    }
    facts += [f"{len(v)} {what}" for what, v in counted.items() if isinstance(v, tuple)]
    if probe.steps and not isinstance(probe.steps, Unread):
        facts.append(f"{len({(p.job, p.step) for p in probe.steps.processes})} steps alive")
    return facts
