"""Notifications for tests: an ordinary one, and texts by which others would harm us."""

from typing import Any

from sentinel.core.guidance import Guidance
from sentinel.core.model import Notification, Status

HOSTILE = {
    "newlines": "job\nforged: row\r\nBcc: evil@example.org\r\n\r\nbody",
    "ansi": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J",
    "rich markup": "[red]x[/red] [link=http://evil.example]y[/link]",
    "html": "<b>x</b><script>alert(1)</script><img src=x onerror=alert(1)>\"'&",
    "bidirectional override": "\u202egpj.exe\u2066\u200b\u2028",
    "lone surrogate": "name\udcff\ud800",
    "nul": "a\0b",
    "shell": "$(touch /tmp/owned) `id` ; rm -rf ~ | & > x",
    "encoded word": "=?utf-8?q?=0D=0ABcc:_evil@example.org?=",
    "dots and From": "\n.\nQUIT\nFrom me",
    "letters of the world": "ümläut Ω 作业 ジョブ עברית 🚨",
}
FORBIDDEN = ("\x1b", "\x9b", "\0", "\x07", "\u202e", "\u2066", "\u200b", "\u2028", "\udcff")
HUGE = 2 * 2**20


def notification(**changes: Any) -> Notification:
    """A job that died at night."""
    fields: dict[str, Any] = {
        "at": "2026-09-30T03:37:05+02:00",
        "cluster": "h100-prod",
        "check": "training",
        "kind": "job",
        "subject": "tr11-176B",
        "severity": Status.CRITICAL,
        "status": Status.CRITICAL,
        "reason": "firing",
        "summary": "not running: job 4242 FAILED (exit 1)",
        "since": "2026-09-30T03:12:05+02:00",
        "key": "01J9-1",
        "alert": "01J9",
        "details": "rank 0: NCCL WARN\nrank 0: Aborted",
        "commands": ("scontrol show job 4242",),
        "labels": {"user": "alice", "node": "r12n07"},
        "values": {"exit_code": 1, "idle_seconds": 1500.0},
        "runbook": "Call https://wiki.example.org/oncall",
    }
    return Notification(**{**fields, **changes})


def hostile(text: str) -> Notification:
    """The text wherever a user, a node or a file can put one."""
    return notification(
        cluster=text,
        check=text,
        subject=text,
        summary=text,
        reason=text,
        since=text,
        key=text,
        alert=text,
        details=f"{text}\n{text}",
        commands=(text,),
        labels={text: text},
        values={text: text},
        runbook=text,
        note=text,
        guidance=Guidance(impact=text, todo=text, ask=text),
        links={"Acknowledge": "https://sentinel.example.org/a/kSbkSb/"},
    )
