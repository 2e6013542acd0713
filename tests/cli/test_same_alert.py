"""One alert has one id and one age wherever it is shown: status, list, explain, page, mail, JSON."""

from datetime import timezone
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.alerting.notifications import NotificationPlan, make_notification
from sentinel.alerting.state_machine import announce_again
from sentinel.channels.format.text import SUBJECT_OF_ONE, make_card, subject_line
from sentinel.checks import KINDS
from sentinel.cli import alerts, status
from sentinel.cli.panels import render_alerts, render_one_alert
from sentinel.cli.placed_commands import place_commands
from sentinel.cli.screen import render_to_lines
from sentinel.core.clock import shift_instant
from sentinel.core.command_places import comment_places
from sentinel.core.guidance import name_config
from sentinel.core.model import Key
from sentinel.homes import describe_setup_place
from sentinel.status.collect import read_status_inputs
from sentinel.status.folding import fold_singly
from sentinel.status.view_model import build_facts
from sentinel.testing import START
from sentinel.web import views
from sentinel.web.render import PageRenderer
from tests.web.scenery import alert, around, store


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_face_shows_the_same_id_and_age(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen bad 3 minutes ago, but bad for two hours by its own word: a job's end, a file's age."""
    monkeypatch.delenv("COLUMNS", raising=False)  # asks for a table, as a terminal does
    key = Key("h100-prod", kind, "thing")
    one = alert(2, "thing", key=key, kind=kind, labels={}, began=shift_instant(START, -7200))
    state: Any = SimpleNamespace(now=START, zone=timezone.utc)

    inputs = read_status_inputs(store([one], 0), around({kind: kind}), START)
    facts = build_facts(inputs)
    shown = status._build_status_alert(facts.alerts[0])
    listed = alerts._build_alert_row(one, None, state)
    for row in (shown, listed):
        assert (row["id"], row["for_s"], row["subject"]) == ("00000002", 7200, "thing")

    alerts._print_alert_table([listed])
    assert "00000002\tcritical\t" in (said := capsys.readouterr().out)
    assert "\t2h\t" in said

    more = {
        **dict.fromkeys(("headline", "calm", "strip"), ""),
        **dict.fromkeys(("out", "tones", "checks", "strips"), ()),
        "sure": True,
        "pending": 0,
        "quiet": 0,
        "blind": 0,
    }
    pages, rows = PageRenderer(timezone.utc), fold_singly(facts.alerts)
    page = pages.render_page("overview.html", facts, "/", shown=rows, **more)
    assert 'href="/alerts/00000002"' in page
    assert ">2h</time>" in page

    told, transition = announce_again(one, "firing", START)
    plan = NotificationPlan(cluster="h100-prod", policies={}, channels=())
    mail = make_notification(told, transition, plan)
    assert (mail.alert, make_card(mail).age) == ("00000002", "2h")
    assert mail.since == listed["since"]
    since = f" (since {make_card(mail).clock})"
    line = subject_line([mail])
    assert line.endswith(since) or len(line + since) > SUBJECT_OF_ONE


@pytest.mark.parametrize(
    ("summary", "quiet", "told"),
    [
        ("no progress for 4m, still at 9", 240.4, "no progress for 5m, still at 9"),
        ("no progress for 4m, still at 9", None, "no progress for 4m, still at 9"),
        ("has not grown for 20m, in evaluation", 1200.0, "has not grown for 20m, in evaluation"),
        ("FAILED after running for 4m", 240.0, "FAILED after running for 4m"),
    ],
)
def test_a_hang_has_one_age_by_one_clock(summary: str, quiet: float | None, told: str) -> None:
    """It was looked at a minute ago: its row does not tell two ages. The controls: a kind that has no
    such age, a number that stands longer than its alert, and how long a job ran."""
    values: dict[str, Any] = {} if quiet is None else {"quiet_seconds": quiet}
    if "running" in summary:
        values = {}
    began, last = shift_instant(START, -300.0), shift_instant(START, -60.0)
    one = replace(alert(2, "thing", summary=summary, values=values, began=began), last=last)
    state: Any = SimpleNamespace(now=START, zone=timezone.utc)
    facts = build_facts(read_status_inputs(store([one], 0), around({}), START))
    assert (facts.alerts[0].summary, facts.alerts[0].for_s) == (told, 300)
    assert alerts._build_alert_row(one, None, state)["summary"] == told


@pytest.mark.parametrize("config", ["", "/etc/own.yaml"])
def test_every_face_says_where_and_as_whom_a_command_is_run(config: str) -> None:
    """Of a trouble of this host, and of one that has no host; with the configuration, where commands
    have to name it."""
    here = describe_setup_place()
    commands = ("findmnt /x", "sentinel nodes list")
    for values, place in (({"host": "login1"}, "on login1"), ({}, "on a login node")):
        one = alert(2, "thing", labels={}, values=values, commands=commands)
        own = "sentinel nodes list" + (f" -c {config}" if config else "")
        wanted = (f"# {place}, as yourself", "findmnt /x", f"# {here}", own)
        assert place_commands(one, named=lambda c: name_config(c, config)) == wanted

        look = read_status_inputs(store([one], 0), around({}, config=config), START)
        (fact,) = build_facts(look).alerts
        assert tuple(comment_places(views._place_commands(fact, fact.commands))) == wanted
        empty: Any = SimpleNamespace(alerts=())
        panel: Any = render_one_alert(fact, empty, timezone.utc)
        shown = [str(text) for text in panel.renderables]
        begin = shown.index("look closer:")
        assert shown[begin + 1 : begin + 5] == [f"  {line}" for line in wanted]

        told, transition = announce_again(one, "firing", START)
        plan = NotificationPlan(
            cluster="c", policies={}, channels=(), setup_place=here, config=config
        )
        card = make_card(make_notification(told, transition, plan))
        assert tuple(comment_places(card.command_groups)) == wanted


def test_a_gpu_is_listed_with_its_node(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows a UUID by heart. A pipe and JSON have it whole."""
    uuid = "GPU-5f3ab21c-0f4e-4c2a-9d1b-0123456789ab"
    one = alert(2, uuid, key=Key("c", "gpus", uuid), kind="gpu", labels={"node": "node-3"})
    state: Any = SimpleNamespace(now=START, zone=timezone.utc)
    row = alerts._build_alert_row(one, None, state)
    assert (row["subject"], row["labels"]) == (uuid, {"node": "node-3"})
    for columns, wanted in (("160", "gpus node-3 GPU-5f3ab21c "), (None, f"\tgpus {uuid}\t")):
        if columns:
            monkeypatch.setenv("COLUMNS", columns)
        else:
            monkeypatch.delenv("COLUMNS")
        alerts._print_alert_table([row])
        assert wanted in capsys.readouterr().out
    facts = build_facts(read_status_inputs(store([one], 0), around({}), START)).alerts
    lines = render_to_lines(render_alerts(fold_singly(facts), 0.0), 160, colour=False)
    assert any("gpus node-3 GPU-5f3ab21c " in line for line in lines)
