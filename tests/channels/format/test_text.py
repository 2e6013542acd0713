"""What people read: every fact is there, every foreign text is inert, at every size."""

import subprocess
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sentinel.channels.format.blocks import fit_blocks, make_chat
from sentinel.channels.format.facts import MAX_FACTS, format_fact
from sentinel.channels.format.html import render_cards_html
from sentinel.channels.format.text import (
    COMMANDS,
    FULL,
    LINES,
    LISTED,
    SUBJECT,
    SUBJECT_OF_ONE,
    last_lines,
    make_card,
    rank_cards,
    render_text,
    sort_worst_first,
    subject_line,
)
from sentinel.channels.record import make_inert
from sentinel.core.guidance import Guidance
from sentinel.core.model import ACK_ALL, Notification, Status, Value
from sentinel.core.text import visible
from tests.channels.samples import FORBIDDEN, HOSTILE, HUGE, hostile, notification

TAGS = {"html", "head", "meta", "title", "style", "body"} | {"div", "span", "p", "a"}
TAGS |= {"table", "tr", "td"}
ATTRIBUTES = {"style", "class", "lang", "charset", "name", "content", "role", "href"}


class Reader(HTMLParser):
    """The text, tags, attributes and links of a page; raises on what we never write."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)


def read(page: str) -> str:
    """The text of a well-formed page."""
    reader = Reader(page)
    assert reader.open == []
    return " ".join(reader.words)


SUBJECTS = {
    "firing": (
        {},
        "CRITICAL h100-prod training tr11-176B: not running: job 4242 FAILED (exit 1)",
    ),
    "warning": (
        {"severity": Status.WARNING},
        "WARNING h100-prod training tr11-176B: not running: job 4242 FAILED (exit 1)",
    ),
    "blind": (
        {"status": Status.UNKNOWN, "subject": "", "summary": "squeue did not answer"},
        "UNKNOWN h100-prod training: squeue did not answer (since 03:12 +02:00)",
    ),
    "worse": (
        {"reason": "worse", "summary": "96% used"},
        "CRITICAL (worse) h100-prod training tr11-176B: 96% used (since 03:12 +02:00)",
    ),
    "a repeat of another day": (
        {"reason": "repeat", "summary": "96% used", "since": "2026-09-28T03:12:05+02:00"},
        "CRITICAL (repeat) h100-prod training tr11-176B: 96% used",
    ),
    "resolved": (
        {"reason": "resolved", "status": Status.OK, "summary": "running: job 4243"},
        "RESOLVED h100-prod training tr11-176B: running: job 4243 (after 25m)",
    ),
    "gone": (
        {"reason": "gone", "summary": "its check no longer finds it"},
        "OVER h100-prod training tr11-176B: its check no longer finds it (after 25m)",
    ),
    "test": (
        {"reason": "test", "check": "test", "subject": "", "summary": "hello"},
        "TEST h100-prod test: hello (since 03:12 +02:00)",
    ),
    "a reason of the future": (
        {"reason": "wobbling", "summary": "up and down"},
        "CRITICAL (wobbling) h100-prod training tr11-176B: up and down",
    ),
    "dry run": (
        {"dry_run": True, "summary": "x", "subject": ""},
        "[dry run] CRITICAL h100-prod training: x (since 03:12 +02:00)",
    ),
    "no cluster, no times": (
        {"cluster": "", "since": "", "at": "", "summary": "x"},
        "CRITICAL training tr11-176B: x",
    ),
}


HANGS = Guidance(headline="HANGS")
SUBJECTS |= {
    "a headline": (
        {"guidance": HANGS, "summary": "stands at iteration 267 for 21 min"},
        "HANGS tr11-176B (h100-prod): stands at iteration 267 for 21 min",
    ),
    "a headline, again": (
        {"guidance": HANGS, "reason": "repeat", "summary": "no step"},
        "HANGS (repeat) tr11-176B (h100-prod): no step (since 03:12 +02:00)",
    ),
    "a headline, over": (
        {"guidance": HANGS, "reason": "resolved", "summary": "runs again"},
        "RESOLVED h100-prod training tr11-176B: runs again (after 25m)",
    ),
    "a headline, acted on": (
        {"guidance": HANGS, "reason": "action", "summary": "cancelled"},
        "ACTION h100-prod training tr11-176B: cancelled",
    ),
    "a headline that is hostile": (
        {"guidance": Guidance(headline="HANGS\r\nBcc: eve"), "cluster": "", "summary": "x"},
        "HANGS\\r\\nBcc: eve tr11-176B: x (since 03:12 +02:00)",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), SUBJECTS.values(), ids=SUBJECTS.keys())
def test_a_subject_says_how_bad_where_what_and_with_room_since_when(
    changes: dict[str, object], expected: str
) -> None:
    """In this order: a phone shows the first forty letters."""
    assert subject_line([notification(**changes)]) == expected


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("word " * 200, "word word word word word word word …"),
        (
            "not saved for 2h (limit 30m, of all); the newest is old",
            "not saved for 2h (limit 30m, of all) …",
        ),
        ("0 RPM (says the BMC, the board's own controller)", "0 RPM …"),
        ("x" * 200, "x" * 40 + "…"),
    ],
)
def test_a_long_subject_keeps_whole_clauses_within_80_characters(
    summary: str, expected: str
) -> None:
    """Phones and lists of mails show no more; an ellipsis says that the mail says more."""
    line = subject_line([notification(summary=summary)])
    assert line.removesuffix(" (since 03:12 +02:00)").endswith(f": {expected}")
    assert len(line) <= SUBJECT_OF_ONE


def test_long_names_leave_room_for_what_happened() -> None:
    """The subject is longer then, and never longer than 180 characters."""
    line = subject_line([notification(subject="n" * 80, summary="word " * 200)])
    assert line.endswith("word word word word word …")
    assert len(subject_line([notification(subject="n" * 80, check="c" * 80)])) == SUBJECT


def test_a_gpu_is_called_by_its_node_and_slot() -> None:
    """Its UUID stands among the facts, once."""
    gpu = notification(
        check="gpu",
        kind="gpu",
        subject="GPU-1b",
        summary="the GPU has fallen off the bus",
        labels={"node": "n1"},
        values={"slot": "00000000:18:00.0"},
    )
    card = make_card(gpu)
    assert card.title == "gpu n1 slot 18:00.0"
    assert dict(card.facts)["GPU"] == "GPU-1b"
    unplaced = make_card(replace(gpu, values={}, labels={}))
    assert unplaced.title == "gpu GPU-1b"
    assert "GPU" not in dict(unplaced.facts)


def test_the_subject_of_several_counts_them_and_starts_with_the_worst() -> None:
    """And names what they are about."""
    three = [
        notification(reason="resolved"),
        notification(severity=Status.WARNING, check="scratch", subject="/scratch"),
        notification(),
    ]
    assert subject_line(three) == (
        "CRITICAL 3 alerts on h100-prod: 1 critical, 1 warning, 1 resolved: "
        "training tr11-176B, scratch /scratch"
    )
    assert subject_line([notification(reason=r) for r in ("resolved", "gone")]).startswith(
        "RESOLVED 2 alerts on h100-prod: 2 resolved"
    )


def test_alerts_that_are_alike_begin_with_what_they_share_and_when() -> None:
    """Twenty deaths are one event to whoever reads them. Not where one of them differs, or is over."""
    dead = [
        notification(
            subject=f"job-{n}",
            summary=f"job {n} FAILED on node-{n}; nothing is queued",
            values={"end": "FAILED"},
            since=f"2026-09-30T03:{12 + n}:05+02:00",
        )
        for n in range(3)
    ]
    begin = "CRITICAL 3 alerts on h100-prod: 3 critical"
    assert subject_line(dead).startswith(f"{begin}, each: FAILED (03:12 to 03:14 +02:00): ")
    known = [replace(n, guidance=Guidance(headline="DIED")) for n in dead]
    assert subject_line(known).startswith("DIED 3 alerts on h100-prod")
    assert subject_line([*known, notification()]).startswith("CRITICAL 4 alerts")
    other = replace(dead[0], values={"end": "ran out of memory"})
    assert subject_line([other, *dead[1:]]).startswith(f"{begin}: training")
    assert ", each: " not in subject_line([replace(n, reason="resolved") for n in dead])


def bodies(*notifications: Notification) -> tuple[str, str]:
    """The text, and the text of the HTML."""
    return render_text(notifications), read(render_cards_html(rank_cards(notifications)))


@pytest.mark.parametrize("body", bodies(notification()), ids=["text", "html"])
def test_a_body_has_what_a_person_needs_at_night(body: str) -> None:
    """What, where, since when, facts, the log's end, commands, runbook, and how to see more."""
    for words in (
        "CRITICAL",
        "training tr11-176B",
        "not running: job 4242 FAILED (exit 1)",
        "2026-09-30 03:12:05 +02:00 (25m before this message)",
        "h100-prod",
        "exit code",
        "idle",
        "25m",
        "alice",
        "r12n07",
        "rank 0: Aborted",
        "scontrol show job 4242",
        "https://wiki.example.org/oncall",
        "sentinel explain 01J9",
        "sentinel alerts ack 01J9",
    ):
        assert words in body


def test_many_deaths_are_sorted_as_people_count_below_one_link_for_all() -> None:
    """The larger training first; a message about one has no such link."""
    deaths = [
        notification(subject=f"llm-{n}", alert=f"a{n}", key=f"k{n}", values={"gpus": 64 if n == 7 else 8},
                     links={"Acknowledge": f"https://s/{n}", ACK_ALL: "https://s/all"})
        for n in (10, 2, 7, 1)
    ]  # fmt: skip
    assert [n.subject for n in sort_worst_first(deaths)] == ["llm-7", "llm-1", "llm-2", "llm-10"]
    text, page = render_text(deaths), render_cards_html(rank_cards(deaths))
    assert text.split("\n\n")[1] == "Acknowledge all: https://s/all"
    assert text.count("https://s/all") == page.count("https://s/all") == 1
    assert ACK_ALL not in render_text([notification(links={"Acknowledge": "https://s/1"})])


def test_commands_of_sentinel_name_a_file_that_they_would_not_find() -> None:
    for body in bodies(notification(config="/w/night.yaml")):
        assert "sentinel explain 01J9 -c /w/night.yaml" in body
        assert "sentinel alerts ack 01J9 -c /w/night.yaml" in body


@pytest.mark.parametrize("reason", ["resolved", "gone"])
def test_an_end_is_brief(reason: str) -> None:
    """How long it lasted; no log, no commands, nothing to acknowledge."""
    for body in bodies(notification(reason=reason)):
        assert "25m, since 2026-09-30 03:12:05 +02:00" in body
        assert "sentinel explain 01J9" in body
        for words in ("Aborted", "scontrol", "oncall", " ack "):
            assert words not in body


def test_a_test_names_no_alert() -> None:
    """There is none to explain."""
    for body in bodies(notification(reason="test", alert="")):
        assert "TEST" in body
        assert "sentinel explain" not in body


def test_a_dry_run_is_marked() -> None:
    """In every form."""
    for body in bodies(notification(dry_run=True)):
        assert "dry run" in body.lower()
    for body in bodies(notification()):
        assert "dry run" not in body.lower()


def test_a_blind_alert_says_its_severity() -> None:
    """Its word is UNKNOWN, so the severity that routed it is a fact."""
    for body in bodies(notification(status=Status.UNKNOWN, severity=Status.WARNING)):
        assert "UNKNOWN" in body
        assert "severity" in body
        assert "warning" in body


FACTS_IN_WORDS: list[tuple[str, Value, tuple[str, str]]] = [
    ("used_percent", 96.0, ("used", "96%")),
    ("used_percent", 99.97, ("used", "99.9%")),
    ("free_bytes", 1_200_000_000_000, ("free", "1.2 TB")),
    ("idle_seconds", 95.0, ("idle", "95s")),
    ("latency_s", 0.004, ("latency", "4ms")),
    ("inodes_used_percent", 12.5, ("inodes used", "12.5%")),
    ("job_id", 1234567890, ("job id", "1234567890")),
    ("load", 0.123456789, ("load", "0.123457")),
    ("read_only", True, ("read only", "yes")),
    ("read_only", False, ("read only", "no")),
    ("expected_start", None, ("expected start", "unknown")),
    ("free_bytes", None, ("free bytes", "unknown")),
    ("free_bytes", "many", ("free bytes", "many")),
    ("free_bytes", float("nan"), ("free", "nan")),
    ("idle_seconds", float("inf"), ("idle", "inf")),
    ("_bytes", 1, (" bytes", "1")),
    ("reason", "a\nb", ("reason", "a\\nb")),
]


@pytest.mark.parametrize(("name", "value", "words"), FACTS_IN_WORDS)
def test_values_are_words(name: str, value: Value, words: tuple[str, str]) -> None:
    """The end of the name is the unit; anything else is shown as it is."""
    found = format_fact(name, value)
    assert (found[0].strip(), found[1]) == (words[0].strip(), words[1])


LOGS = [
    ("", ()),
    ("\n\n", ()),
    ("one", ("one",)),
    ("one\ntwo\n\n", ("one", "two")),
    ("\n".join("abc"), ("a", "b", "c")),
    ("\n".join("abcd"), ("…", "b", "c", "d")),
    ("a\tb", ("a       b",)),
    ("Traceback:\n  File x\n", ("Traceback:", "  File x")),
    ("a\x0cb\u2028c", ("a\\x0cb\\u2028c",)),
    ("a\x1b[0m\r\nb", ("a\\x1b[0m", "b")),
]


@pytest.mark.parametrize(("log", "lines"), LOGS)
def test_a_log_is_shown_by_its_end(log: str, lines: tuple[str, ...]) -> None:
    """An ellipsis stands for what comes before."""
    assert last_lines(log, 3) == lines


@pytest.mark.parametrize("count", [1, 2, FULL, FULL + 1, FULL + LISTED, FULL + LISTED + 1])
def test_of_many_alerts_the_later_ones_get_a_line(count: int) -> None:
    """Twenty in full, a hundred in a line each, and the number of the rest."""
    many = [notification(subject=f"job-{i:04}", summary=f"sum-{i:04}") for i in range(count)]
    for body in bodies(*many):
        assert body.count("sentinel explain") == min(count, FULL)
        assert body.count("sum-") == min(count, FULL + LISTED)
        assert ("1 more: sentinel alerts list" in body) == (count == FULL + LISTED + 1)


@pytest.mark.parametrize("count", [FULL - 2, 3 * LISTED])
def test_many_alerts_of_one_user_hide_no_other_s(count: int) -> None:
    """However bad they are: a warning of somebody else's and one of a disk have their line, in a chat too."""
    theirs: Mapping[str, Any] = {"status": Status.WARNING, "severity": Status.WARNING}
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(count)]
    many = [
        *(notification(subject=f"m/{w}", summary=f"{w} died", labels={"user": "m"}) for w in words),
        notification(subject="a/train", labels={"user": "a"}, **theirs),
        notification(subject="/scratch", labels={}, kind="fs", check="disk", **theirs),
    ]
    chat = "".join(block.text for block in fit_blocks(make_chat(many), 4000))
    for body in (*bodies(*many), chat):
        assert "train" in body
        assert "/scratch" in body
    for body in bodies(*many):
        assert body.index(words[0]) < body.index("/scratch")  # the worst first, as before
        left = len(many) - FULL - LISTED
        assert ("more: sentinel alerts list" in body) == (left > 0)
        assert left < 0 or f"and {left} more" in body


def test_megabytes_become_a_page() -> None:
    """However much a check reports, and in however many pieces."""
    huge = notification(
        summary="Ω" * HUGE,
        details="x\n" * HUGE,
        subject="y" * HUGE,
        commands=("z" * HUGE, *("z" * 900,) * 99),
        labels={f"label{i}": "v" * 999 for i in range(999)},
        runbook="r" * HUGE,
    )
    assert len(subject_line([huge])) <= SUBJECT
    assert all(len(body) < 30_000 for body in bodies(huge))
    shown = make_card(huge)
    assert (len(shown.lines), len(shown.commands), len(shown.facts)) == (
        LINES + 1,
        COMMANDS,
        MAX_FACTS,
    )


@pytest.mark.parametrize("hurt", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_inert(hurt: str) -> None:
    """No header is forged, no tag opened, nothing left that a terminal obeys."""
    about = hostile(hurt)
    assert visible(subject_line([about])) == subject_line([about])
    for body in bodies(about):
        assert not [c for c in FORBIDDEN if c in body]
    assert all(
        link.startswith(("http://", "https://"))
        for link in Reader(render_cards_html(rank_cards([about]))).links
    )


@pytest.mark.parametrize(
    ("runbook", "links"),
    [
        ("see https://w.example.org/x?a=1&b=2.", ["https://w.example.org/x?a=1&b=2"]),
        ("(http://a.example) and https://b.example/", ["http://a.example", "https://b.example/"]),
        ("javascript:alert(1)", []),
        ('https://e.example/"onclick="x', ["https://e.example/"]),
        ("data:text/html,<script>", []),
        ("<b>a</b> http://a.example <i>", ["http://a.example"]),
        ("nothing", []),
    ],
)
def test_only_web_addresses_become_links(runbook: str, links: list[str]) -> None:
    """And nothing after them."""
    assert Reader(render_cards_html(rank_cards([notification(runbook=runbook)]))).links == links


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(codec=None), max_size=300))
def test_no_text_gets_through(anything: str) -> None:
    """Whatever it is: one line of subject, a well-formed page, text without control."""
    about = hostile(anything)
    assert visible(subject_line([about])) == subject_line([about])
    assert len(subject_line([about])) <= 180
    page, plain = render_cards_html(rank_cards([about])), render_text([about])
    read(page)
    for body in (page, plain):
        body.encode()
        assert all(visible(line) == line for line in body.split("\n"))


def test_an_action_is_told_as_one() -> None:
    """It has a word and a colour of its own, and nothing that could be acknowledged."""
    done = make_card(notification(reason="action", status=Status.OK))
    failed = make_card(notification(reason="action", status=Status.WARNING))
    assert (done.word, done.tone, failed.tone) == ("ACTION", "info", "warning")
    assert done.more == ("sentinel explain 01J9",)


def test_what_has_settled_well_is_an_end() -> None:
    """Green, and nobody is asked to do anything; what has settled badly goes on."""
    good = make_card(notification(reason="settled", status=Status.OK, summary="good for a while"))
    assert (good.word, good.tone, good.ended) == ("RESOLVED (settled)", "ok", True)
    assert (good.lines, good.commands, good.more) == ((), (), ("sentinel explain 01J9",))
    bad = make_card(notification(reason="settled"))
    assert (bad.word, bad.tone, bad.ended) == ("CRITICAL (settled)", "critical", False)


def test_an_action_is_of_this_moment() -> None:
    """`node is idle again (since 03:12 +02:00)` would say when the trouble began, as if it were the end."""
    done = notification(reason="action", status=Status.OK, summary="node is idle again")
    assert subject_line([done]).endswith("node is idle again")


def test_what_somebody_has_is_not_offered_again() -> None:
    """The message that says so needs no command to say so."""
    seen = make_card(notification(reason="ack", acts=("sbatch train.sh",)))
    assert (seen.impact, seen.steps, seen.lines, seen.commands) == ("", (), (), ())
    assert seen.more == ("sentinel explain 01J9",)
    assert seen.act_groups == (), "who reads that somebody has it would submit it a second time"
    assert make_card(notification(acts=("sbatch train.sh",))).act_groups
    assert "Full history (" in render_text([notification(reason="resolved")])


def test_the_worst_stands_first() -> None:
    """In a mail about hundreds only the first are shown in full."""
    mild = notification(subject="mild", severity=Status.WARNING, status=Status.WARNING)
    many = [mild] * (FULL + 5) + [notification(subject="worst")]
    for body in (render_text(many), render_cards_html(rank_cards(many))):
        assert body.index("worst") < body.index("mild")
    assert subject_line(many).startswith("CRITICAL 26 alerts")


def test_of_many_trainings_that_stand_still_each_user_s_first_is_shown_in_full() -> None:
    """222 of mallory's come before alice's one."""
    hers = [
        notification(kind="job", subject=f"mallory/{n}", labels={"user": "mallory"})
        for n in range(222)
    ]
    mine = notification(kind="job", subject="alice/train", labels={"user": "alice"})
    shown = sort_worst_first([*hers, mine])
    assert [n.subject for n in shown[:3]] == ["alice/train", "mallory/0", "mallory/1"]


def test_of_a_digest_alike_alerts_share_a_card() -> None:
    """With their number and names; each training that stands still has a card of its own."""
    lost = [
        notification(
            check="gpus", kind="gpu", subject=f"GPU-{n}", summary=f"GPU-{n}: Xid 79 at {n}:00"
        )
        for n in range(20)
    ]
    dead = [notification(subject=f"u{n}/llm", summary="not running") for n in range(3)]
    for body in bodies(*lost, *dead):
        assert body.count("Xid 79") == 1
        assert "[and 19 more like it] GPU-0: Xid 79" in body
        assert "the others: GPU-1, GPU-2," in body
        assert [body.count(f"u{n}/llm") > 0 for n in range(3)] == [True] * 3
        assert body.index("u2/llm") < body.index("Xid 79")
    assert subject_line([*lost, *dead]).startswith("CRITICAL 23 alerts")


def test_what_people_need_first_comes_first() -> None:
    """What, who has it, how to answer, since when, what to do, then the log."""
    n = notification(
        note="acknowledged by bob",
        links={"Acknowledge": "https://s.example.org/a/t/"},
        page="https://s.example.org/alerts/01J9",
        runbook="Call bob",
        details="a log line",
    )
    body = render_text([n])
    wanted = (n.summary, "acknowledged by bob", "Acknowledge: https", "Open: https://s.example.org/alerts/01J9",
              "since ", "Call bob", n.commands[0], "a log line", "sentinel explain")  # fmt: skip
    places = [body.index(part) for part in wanted]
    assert places == sorted(places)


def test_a_command_is_told_whole_or_not_at_all(tmp_path: Path) -> None:
    """Cut, its quote stays open; a shell that gets all of them would run the next one's path."""
    owned = tmp_path / "owned"
    long = f"cd '{'x ' * 2500}' && sbatch train.sh"
    bait = f"echo '/home/mallory/;touch {owned};#'"
    told = notification(commands=(long, bait, "echo whole"))
    text = render_text([told]).partition("\nLook closer:\n")[2]
    pasted = text.partition("\nDetails:\n")[0]
    said = subprocess.run(["sh"], input=pasted, capture_output=True, text=True, check=False)
    assert not owned.exists()
    assert said.stdout.endswith("whole\n")
    assert make_card(told).commands == make_inert(told).commands == (bait, "echo whole")


def test_two_moments_are_two_rows() -> None:
    """When it began, where that is known, and when it was noticed; the same moment is said once."""
    began, later = "2026-09-30T03:12:05+02:00", "2026-09-30T03:20:00+02:00"
    both = render_text([notification(since=began, noticed=later)]).splitlines()
    assert "began      2026-09-30 03:12:05 +02:00 (25m before this message)" in both
    assert "noticed    2026-09-30 03:20:00 +02:00" in both
    once = render_text([notification(since=began, noticed=began)])
    assert "noticed    2026-09-30 03:12:05 +02:00 (25m before this message)" in once
    assert "began" not in once
    worse = render_text([notification(since=began, noticed=began, reason="worse")])
    assert "first noticed  2026-09-30 03:12:05 +02:00 (25m before this message)" in worse
    over = render_text([notification(reason="resolved", status=Status.OK, noticed=later)])
    assert "since 2026-09-30 03:12:05 +02:00" in over
    assert "noticed" not in over
