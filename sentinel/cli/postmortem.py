"""`sentinel incidents export ID`: a page to be continued by a person, as Markdown, or as HTML with
plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from sentinel.core.values import age_text, duration_text
from sentinel.status.incidents import Story, describe_repeats

HTML_STYLE = """body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .5em;text-align:left}
pre{background:#8882;padding:.5em;overflow-x:auto}svg{width:100%;font-size:12px}
.line,.mid{fill:none;stroke:#06c}.axis{fill:none;stroke:#999}.mark{stroke:#c33}text{fill:currentColor}"""
TIMELINE_COLUMNS = ("when", "what", "", "")


def list_story_facts(story: Story) -> Iterator[tuple[str, str]]:
    """Names and values of what is known about the whole incident."""
    yield "since", f"{story['since']} ({age_text(story['for_s'])})"
    yield "state", f"{story['alerts']} alerts fire" if story["alerts"] else "over"
    for name in ("trainings", "users", "acknowledged_by"):
        if story[name]:
            yield name.replace("_", " "), ", ".join(story[name])
    if story["gpus"]:
        yield "GPUs that stand still", f"{story['gpus']:g}"
    for name in ("assigned_to", "comment"):
        if story[name]:
            yield name.replace("_", " "), story[name]
    if story["before"]:
        yield "again", describe_repeats(story)


def render_story_markdown(story: Story) -> Iterator[str]:
    """Lines of a Markdown page. Text from jobs and logs is escaped."""
    yield f"# {_escape_markdown(story['title'])}\n"
    yield from (f"- {name}: {_escape_markdown(value)}" for name, value in list_story_facts(story))
    yield "\n## What happened\n"
    yield f"| {' | '.join(TIMELINE_COLUMNS)} |\n|---|---|---|---|"
    for cells in _list_timeline_rows(story):
        yield f"| {' | '.join(map(_escape_markdown, cells))} |"
    if story["before"]:
        yield "\n## Before\n"
        yield from (f"- {_escape_markdown(line)}" for line in describe_earlier_incidents(story))
    for title, lines in _list_evidence(story):
        yield f"\n### {_escape_markdown(title)}\n"
        yield from (f"    {line}" for line in lines)
    yield "\n## Cause\n\n## What we do about it\n"


def render_story_html(story: Story, picture: str = "") -> Iterator[str]:
    """The same page as one HTML file, with the `picture` (SVG) of the values."""
    title = escape(story["title"])
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    yield f"<style>{HTML_STYLE}</style><h1>{title}</h1><ul>"
    yield from (
        f"<li>{escape(name)}: {escape(value)}</li>" for name, value in list_story_facts(story)
    )
    yield "</ul><h2>What happened</h2><table>"
    for cells in _list_timeline_rows(story):
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"
    if story["before"]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in describe_earlier_incidents(story))
        yield f"<h2>Before</h2><ul>{lines}</ul>"
    if picture:
        yield f"<h2>What was measured</h2>{picture}"
    for name, evidence in _list_evidence(story):
        yield f"<h3>{escape(name)}</h3><pre>{escape(chr(10).join(evidence))}</pre>"
    yield "<h2>Cause</h2><h2>What we do about it</h2></html>"


def describe_earlier_incidents(story: Story) -> Iterator[str]:
    """A line for each earlier incident, with what ended it."""
    for one in story["before"]:
        how = f"; ended by: {one['ended_by']}" if one["ended_by"] else ""
        length = "" if one["for_s"] is None else f" for {duration_text(one['for_s'])}"
        yield f"{one['at']}{length} ({one['incident']}): {one['summary']}{how}"


def _list_timeline_rows(story: Story) -> Iterator[tuple[str, str, str, str]]:
    for t in story["timeline"]:
        yield t["at"], t["about"], t["reason"], t["summary"]


def _list_evidence(story: Story) -> Iterator[tuple[str, Iterable[str]]]:
    for m in story["members"]:
        if m["details"]:
            yield f"{m['check']} {m['subject']}", m["details"].splitlines()


def _escape_markdown(text: str) -> str:
    """Text from jobs and logs, escaped for a Markdown table."""
    return "".join("\\" + c if c in "\\`*_{}[]<>|#" else c for c in text.replace("\n", " "))
