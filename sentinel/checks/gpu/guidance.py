"""Says how urgent a problem of a GPU is, what to do first, and which commands do it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sentinel.checks.gpu.judge import Problem
from sentinel.core.guidance import (
    DRAIN_STEP,
    Guidance,
    LookingCommand,
    avoid_node,
    drain_node,
    list_drain_commands,
    look,
    quote_command,
)
from sentinel.core.model import Status, Value
from sentinel.core.shown import GPU_PREFIX
from sentinel.core.text import shortened, visible
from sentinel.gpu.advice import Advice


class Said(Struct, kw_only=True):
    """Everything that was found about one subject."""

    node: str  # Name of the node.
    problems: list[Problem]  # What is wrong.
    well: str = ""  # The text if nothing is wrong.
    values: Mapping[str, Value] = {}  # Numbers for the result, by name.
    details: list[str] = []  # Further lines.
    advice: list[str] = []  # Actions that its open Xids require.


_ADMINISTRATOR_STEPS = {
    Advice.RESET: "drain {0} and, when no job is left there, reset a GPU of it",
    Advice.REBOOT: "drain {0} and, when no job is left there, reboot it",
    Advice.DIAGNOSE: "drain {0} and, when no job is left there, run dcgmi diag there",
    Advice.REPLACE: "drain {0}, and have a GPU of it replaced once a diagnosis confirms it",
}
"""What an administrator has to do on a node without jobs."""

_TEST = (
    "test it (`sentinel diag run {0}`, which runs dcgmi diag); if that fails, have the GPU replaced"
)
_AFTER_DRAIN = {
    Advice.RESET: "reset the GPU",
    Advice.REBOOT: "reboot the node",
    Advice.DIAGNOSE: _TEST,
    Advice.REPLACE: _TEST,
}

_HEAT = re.compile(r"^(temperature|memory at) ")
_MEMORY = re.compile(r"uncorrect|double.bit|ECC", re.IGNORECASE)
_LOST = "fallen off the bus"
_XID = re.compile(r"\bS?Xid \d+")


def guide_gpu(about: Said, status: Status, text: str) -> Guidance:
    """`text`: the worst that is known of it."""
    node = about.node
    if status is Status.UNKNOWN:
        return Guidance(ask=f"look at {node}: {shortened(visible(text), 200)}")
    step = _ADMINISTRATOR_STEPS.get(_worst_advice(about), "look at {0}").format(node)
    return Guidance(
        impact=_impact(about, text),
        todo=_first_step(about, text),
        ask=f"{step}{_name_slot(about)}: {shortened(visible(text), 200)}",
    )


def _impact(about: Said, text: str) -> str:
    if _LOST in text:
        return "The job that uses this GPU is dead or hangs; others cannot use it before a reboot."
    if not about.values:
        return (
            f"A job that used this GPU has probably failed; jobs on the other GPUs of {about.node}"
            " run on. Jobs that ask for all of them do not start there, or fail."
        )
    if _HEAT.match(text):
        return (
            "The GPU and what computes on it slow down; if it gets hotter it may switch itself off."
        )
    if _MEMORY.search(text):
        return "The job that used this GPU was ended, or computes wrongly; the next one may too."
    return "Jobs on this GPU may slow down, fail or compute wrongly until it is repaired."


def _first_step(about: Said, text: str) -> str:
    keep = avoid_node(about.node, hangs=not _HEAT.match(text))
    if then := _AFTER_DRAIN.get(_worst_advice(about)):
        return f"{keep} {drain_node(then.format(quote_command(about.node)))}"
    if _HEAT.match(text):
        return f"{keep} {drain_node()} Then look at its fans and the air of the room."
    if not about.values:  # it is missing
        again = "reboot the node; if the GPU does not come back, have it replaced"
        return f"{keep} {drain_node(again)}"
    return f"{keep} Administrators: `sentinel gpus show` below shows its errors so far."


def _worst_advice(about: Said) -> Advice:
    """What its open Xids ask for: the one that takes the most."""
    return max(map(Advice, about.advice), key=lambda one: one.rank, default=Advice.IGNORE)


def ask_for_help(about: Said) -> str:
    """What an administrator has to do about its open Xids, as the end of a sentence."""
    return f"; an administrator has to {_worst_advice(about).value}" if about.advice else ""


def _name_slot(about: Said) -> str:
    slot = about.values.get("slot")
    return f" (GPU in slot {visible(str(slot))})" if slot else ""


def suggest_commands(
    subject: str, about: Said, status: Status, texts: Sequence[str]
) -> tuple[LookingCommand, ...]:
    """Commands that look, and the preview of a drain. None puts a load on a node with jobs."""
    if status is Status.OK:
        return ()
    if not subject.startswith(GPU_PREFIX):
        drains = status.bad and DRAIN_STEP in _first_step(about, texts[0])
        drain = list_drain_commands(about.node, texts[0], is_bad=drains)
        return (
            look("sentinel nodes probe --gpus {}", about.node),
            look("nvidia-smi | cat -v").on_node(about.node),
            *drain,
        )
    shown = look("sentinel gpus show {}", subject), _look_command(subject, about, texts)
    if about.values and not _HEAT.match(texts[0]) and _worst_advice(about) not in _AFTER_DRAIN:
        return shown
    fault = _name_fault(texts) if about.values else "GPU missing"
    return (*shown, *list_drain_commands(about.node, f"{fault}, {subject}", is_bad=status.bad))


def _look_command(subject: str, about: Said, texts: Sequence[str]) -> LookingCommand:
    """What shows the GPU's state. One that has fallen off the bus does not answer: only the kernel
    knows of it."""
    if not about.values:
        return look("nvidia-smi -L").on_node(about.node)
    if any(_LOST in text for text in texts):
        return look("dmesg -T | grep -i xid").on_node(about.node)
    return (
        look("nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {} | cat -v", subject)
        if _HEAT.match(texts[0])
        else look("nvidia-smi -q -i {} | cat -v", subject)
    ).on_node(about.node)


def _name_fault(texts: Sequence[str]) -> str:
    """The Xid, or the words of the worst problem."""
    found = next((match[0] for text in texts if (match := _XID.search(text))), "")
    return found or shortened(visible(texts[0]), 60)
