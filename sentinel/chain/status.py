"""The status of a chain, for `sentinel cron status`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import table_entry
from sentinel.chain.journal import (
    MAX_GAPS,
    ChainStanding,
    describe_first_failure,
    seconds_silent,
    sum_journal,
)
from sentinel.chain.mend import has_successors
from sentinel.chain.model import Chain, ChainLink
from sentinel.chain.proofs import describe_problems, read_proofs
from sentinel.chain.queue import ChainQueue
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.guidance import quote_command
from sentinel.core.text import visible
from sentinel.core.values import duration_text
from sentinel.slurm.client import SlurmClient

FIRST_WORD_S = 30.0
"""A job that has started writes its first entry within this many seconds."""


def chain_facts(folder: str, client: SlurmClient) -> dict[str, Any]:
    """All facts about a chain. `well` means that the next pass will start by itself. `first_pass`
    are those of `problems` that tell why there was no pass yet.

    Raises ChainNotInstalled or BadChainFolder.
    """
    place, now = ChainFolder(folder), time.time()
    chain = place.read_chain()
    done = sum_journal(chain, place.read_journal(), now)
    found: dict[str, Any] = {
        "mode": chain.mode,
        "name": chain.name,
        "every_s": chain.every,
        "dir": place.folder,
        "config": chain.config,
        "slots": _slot_facts(done),
        "gaps": [
            {"from": g.first, "to": g.last + chain.every, "slots": g.count} for g in done.gaps
        ],
    }
    proofs = read_proofs(place)
    found["proofs"] = msgspec.to_builtins(proofs)
    found.update((_queue_facts if chain.is_in_slurm else _table_facts)(chain, place, client))
    found["first_pass"] = _first_pass_problems(chain, place, found.get("links", ()), now)
    found["problems"] += [*found["first_pass"], *describe_problems(proofs)]
    silent = seconds_silent(chain, done, now)
    if silent > MAX_GAPS * chain.every:
        found["problems"].append(f"no pass for {duration_text(silent)}: nothing was watched")
        # only links wait in the queue, crontab entries do not
        found["well"] = found["well"] and chain.is_in_slurm
    return found


def first_pass_problems(folder: str, client: SlurmClient) -> list[str]:
    """Why no pass was made yet; empty if one was. Slurm is asked only if none was."""
    place, now = ChainFolder(folder), time.time()
    if sum_journal(place.read_chain(), place.read_journal(), now).ran:
        return []
    problems: list[str] = chain_facts(folder, client)["first_pass"]
    return problems


def chain_lines(facts: dict[str, Any]) -> list[str]:
    """The same facts as lines for a terminal."""
    slots, every = facts["slots"], duration_text(facts["every_s"])
    text = [f"{facts['mode']} {facts['name']}, every {every}, in {visible(facts['dir'])}"]
    text += [_link_line(link) for link in facts.get("links", ())]
    text += [f"PROBLEM: {problem}" for problem in facts["problems"]]
    last = f"last pass {_date_text(slots['last'])}" if slots["last"] else "no pass yet"
    text.append(f"{last}; passes: {slots['ran']} of {slots['slots']} ran{_slot_remarks(slots)}")
    text += [
        f"{visible(p['channel'])}: a test message left {visible(p['host'])} at {_date_text(p['at'])}: {p['text']}"
        for p in facts["proofs"]
        if p["ok"]
    ]
    for gap in facts["gaps"][-5:]:
        blind = duration_text(gap["to"] - gap["from"])
        text.append(
            f"gap: {_date_text(gap['from'])} to {_date_text(gap['to'])}, nothing ran for {blind}"
        )
    return text


def _queue_facts(chain: Chain, place: ChainFolder, client: SlurmClient) -> dict[str, Any]:
    try:
        links = ChainQueue(chain, place, client).list_links()
    except CannotTell as error:
        return {"well": False, "links": [], "problems": [f"the queue cannot be seen: {error}"]}
    problems = [
        *_lost_strands(chain, links),
        *(p for link in links if (p := _link_problem(chain, link))),
    ]
    well = has_successors(chain, links) or any(link.state == "RUNNING" for link in links)
    return {"well": well, "links": [_link_row(link) for link in links], "problems": problems}


def _first_pass_problems(
    chain: Chain, place: ChainFolder, links: Sequence[dict[str, Any]], now: float
) -> list[str]:
    """Why no pass was made yet. `cron ensure` repairs none of these."""
    entries = place.read_journal()
    done = sum_journal(chain, entries, now)
    if done.failed and (why := describe_first_failure(chain, entries, now)):
        return [f"{visible(why)}; try it here: sentinel tick"]
    if chain.mode == "chain" and not done.last_at:
        return _find_silent_job(chain, place.folder, links, now)
    return []


def _find_silent_job(
    chain: Chain, folder: str, links: Sequence[dict[str, Any]], now: float
) -> list[str]:
    """Report a first job that ended without any journal entry. It probably saw neither the folder
    nor the configuration."""
    due = chain.slot_at(now - FIRST_WORD_S)
    at_work = any(link["state"] != "PENDING" or 0 < link["slot"] <= due for link in links)
    if at_work or not links or due <= chain.installed:
        return []
    return [
        f"the job that was due {_date_text(due)} made no pass and left no word: do compute nodes see "
        f"{visible(folder)}? Try: {quote_command('srun', 'ls', '-d', folder)}; if not, put the file "
        "and its `state:` on a file system that they see"
    ]


def _lost_strands(chain: Chain, links: Sequence[ChainLink]) -> list[str]:
    """Report strands without a link. If no strand has one, the chain cannot restart by itself."""
    if not links:
        return [
            "the chain has ended: its links are gone (cancelled, or the folder was away); nothing "
            f"runs until: {chain.command_line('ensure')}"
        ]
    alive = {link.name for link in links}
    return [
        f"no link of {name} is in the queue: the next to run mends it, if that is not lost too; "
        f"at once: {chain.command_line('ensure')}"
        for name in chain.strand_names
        if name not in alive
    ]


def _table_facts(chain: Chain, place: ChainFolder, _client: SlurmClient) -> dict[str, Any]:
    try:
        present = table_entry(chain, place).entry_state()
    except SentinelError as error:
        return {"well": False, "problems": [str(error)]}
    words = {
        "no": f"the entry is not in the {chain.mode}",
        "disabled": "the entry was disabled by a scancel",
    }
    problems = (
        [f"{words[present]}; mend it with: {chain.command_line('ensure')}"]
        if present in words
        else []
    )
    return {"well": not problems, "problems": problems}


def _link_problem(chain: Chain, link: ChainLink) -> str:
    if link.is_held:
        return f"job {link.job} is held; mend it with: {chain.command_line('ensure')}"
    if link.can_never_start:
        return (
            f"job {link.job} can never start ({visible(link.reason)}): install anew with other "
            "--partition, --account, --qos or --time"
        )
    return ""


def _slot_facts(done: ChainStanding) -> dict[str, Any]:
    return {
        "slots": done.slots,
        "ran": done.ran,
        "busy": done.busy,
        "failed": done.failed,
        "repeated": done.repeated,
        "late_s": round(done.late, 1),
        "last": done.last,
    }


def _link_row(link: ChainLink) -> dict[str, Any]:
    return {
        "job": link.job,
        "name": link.name,
        "state": visible(link.state),
        "reason": visible(link.reason),
        "slot": link.slot,
    }


def _link_line(link: dict[str, Any]) -> str:
    due = f"due {_date_text(link['slot'])}" if link["slot"] else "due when it can"
    why = "" if link["reason"] == "None" else f" ({link['reason']})"
    return f"job {link['job']} {link['name']}: {link['state'].lower()}{why}, {due}"


def _slot_remarks(slots: dict[str, Any]) -> str:
    words = [f", {slots['failed']} failed"] if slots["failed"] else []
    words += [f", {slots['busy']} found another at work"] if slots["busy"] else []
    late = f", at most {duration_text(slots['late_s'])} late" if slots["late_s"] >= 1 else ""
    return "".join(words) + late


def _date_text(epoch: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch))
