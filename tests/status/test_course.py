"""How a training or a file system went: one time axis, as picture and as plain data."""

import xml.etree.ElementTree as ET
from datetime import datetime, timezone
from math import inf, nan

import msgspec
import pytest

from sentinel.alerting.silences import Ack
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Batch, Key, Sample, Status, Transition
from sentinel.status.chart_history import (
    ChartHistory,
    ChartRequest,
    clip_marks,
    read_file_system_history,
    read_training_history,
)
from sentinel.status.chart_png import build_alert_chart, render_png
from sentinel.status.detail import AlertEpisode, read_episodes
from sentinel.status.plot import (
    HIGH,
    MAX_LINE_POINTS,
    WIDTH,
    Chart,
    ChartLine,
    ChartMark,
    export_chart,
    render_svg,
    render_svg_file,
    split_points,
)
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from tests.channels.samples import notification
from tests.web.scenery import Records, stacks

NOW = START.wall / SECOND
START_TEXT = datetime.fromtimestamp(NOW, timezone.utc).isoformat()
ASKED = ChartRequest(
    check="progress", subject="llm", kind="log", first=NOW - 7200, last=NOW, checkpoints=("saves",)
)


def went(*steps: float | None, **more: list[float]) -> MemoryStore:
    """A state in which these numbers were seen a minute apart, the last one now."""
    state = MemoryStore()
    state.take_lead("x", START)
    for n, step in enumerate(steps):
        seen = {} if step is None else {"progress": (Sample("llm", "progress", step),)}
        for check, values in more.items():
            seen[check] = (Sample("llm", "age_seconds", values[n]),)
        at = shift_instant(START, -60.0 * (len(steps) - 1 - n))
        state.commit(Batch(at=at, samples=seen))
    return state


def change(
    reason: str, minutes: float, subject: str = "llm", began: float | None = None
) -> Transition:
    at = shift_instant(START, -60 * minutes)
    return Transition(
        id=f"{subject}{reason}", alert=f"a-{subject}", key=Key("c", "progress", subject), kind="log",
        reason=reason, status=Status.CRITICAL, severity=Status.CRITICAL, summary="<b>stands still",
        at=at, since=at if began is None else shift_instant(START, -60 * began),
    )  # fmt: skip


def line(past: ChartHistory, name: str) -> dict[float, float]:
    """Minutes before now to what is drawn there."""
    [found] = [one for one in past.lines if one.name == name]
    return {round((at - NOW) / 60, 2): value for at, value in found.all_points}


def test_a_training_that_stands_still_has_no_speed() -> None:
    """Ten steps a minute; five minutes after it stopped, none; the number itself stays."""
    past = read_training_history(went(*range(0, 100, 10), *[90] * 10), None, ASKED, START)
    assert line(past, "speed")[-10] == 10
    speed = line(past, "speed")
    assert {speed[minute] for minute in range(-9, 0)} == {0}, "not ever less, as if it slowed down"
    assert line(past, "speed")[0] == 0
    assert line(past, "progress")[0] == 90


def test_a_fall_of_the_number_is_a_restart_with_what_was_lost() -> None:
    """And the speed counts anew from there: nothing runs backwards."""
    past = read_training_history(went(100, 200, 300, 150, 250), None, ASKED, START)
    [mark] = past.marks
    assert (mark.kind, (mark.at - NOW) / 60) == ("restart", -1)
    assert mark.text == "went back from step 300 to 150: 150 lost"
    assert min(line(past, "speed").values()) >= 0


def test_a_checkpoint_is_marked_when_it_became_complete() -> None:
    """Where the age of the newest fell, so long before that look."""
    past = read_training_history(went(1, 2, 3, saves=[500.0, 560.0, 20.0]), None, ASKED, START)
    assert [(m.kind, m.at - NOW) for m in past.marks] == [("checkpoint", -20)]
    assert line(past, "saves") == {-2: 500, -1: 560, 0: 20}


def test_a_hang_is_a_stretch_from_where_it_stood_still_and_who_has_it_is_marked() -> None:
    """Until its end, or until it is drawn, later than it was read; another training's is not shown, one's own slowdown is."""
    state = went(1, 2)
    changes = (
        change("firing", 20, began=40), change("resolved", 10), change("firing", 5, "llm-2"),
        change("firing", 3, "llm step time"),
    )  # fmt: skip
    state.commit(Batch(at=START, transitions=changes))
    state.put_ack(Ack(alert="a-llm", at=shift_instant(START, -900), who="Ann", note="on it"))
    marks = clip_marks(
        read_training_history(state, Records(stacks()), ASKED, START).marks, NOW + 60
    )
    told = [
        (m.kind, round((m.at - NOW) / 60), m.until and round((m.until - NOW) / 60)) for m in marks
    ]
    assert told == [
        ("hang", -40, -10),
        ("ack", -15, None),
        ("action", -5, None),
        ("slowdown", -3, 1),
    ]
    assert marks[1].text == "acknowledged by Ann: on it"
    assert marks[0].href == "/alerts/a-llm"


def drawn(*lines: ChartLine, marks: tuple[ChartMark, ...] = ()) -> Chart:
    return Chart(
        title="<b>", first=NOW - 7200, now=NOW, zone=timezone.utc, lines=lines, marks=marks
    )


@pytest.mark.parametrize("odd", [nan, inf, -inf, 1e308, 5e-324, 0.0])
def test_numbers_that_are_none_break_no_picture(odd: float) -> None:
    """What cannot be drawn is left out; what is drawn is sound XML and sound JSON."""
    points = [(NOW - 600 + n, odd if n % 2 else float(n)) for n in range(100)]
    made = drawn(ChartLine(name="x", title="<i>", parts=split_points(points)))
    picture = render_svg(made)
    ET.fromstring(picture)
    assert "nan" not in picture
    assert "inf" not in picture
    assert msgspec.json.decode(msgspec.json.encode(export_chart(made)))["lines"][0]["y"][0] == 0
    assert "Too little" in render_svg(
        drawn(ChartLine(name="x", title="x", parts=split_points([(NOW, odd)])))
    )


def test_where_nothing_was_seen_no_line_is_drawn() -> None:
    """Two hours of silence part it; thinning parts nothing, and points stay bounded."""
    before = [(NOW - 90_000 + 60.0 * n, n * 1.0) for n in range(1000)]
    after = [(at + 67_200, value) for at, value in before[:300]]
    parts = split_points([*before, *after])
    assert [len(part) > 50 for part in parts] == [True, True]
    assert sum(map(len, parts)) < 2 * MAX_LINE_POINTS
    made = drawn(ChartLine(name="x", title="x", parts=parts))
    assert render_svg(made).count("<polyline") == 2
    assert export_chart(made)["lines"][0]["y"].count(None) == 1


def test_what_happened_is_text_in_the_picture() -> None:
    """Whatever a log line or a person wrote."""
    line = ChartLine(name="x", title="x", parts=split_points([(NOW - 60, 1.0), (NOW, 2.0)]))
    mark = ChartMark(at=NOW - 30, kind="hang", text='<script>"', until=NOW)
    picture = render_svg(drawn(line, marks=(mark,)))
    ET.fromstring(picture)
    assert "&lt;script&gt;" in picture
    assert "<b>" not in picture


def test_a_disk_shows_its_limits_and_the_day_on_which_it_is_full() -> None:
    """Beside now, and the history of its space."""
    parts = split_points([(NOW - 7200, 70.0), (NOW, 80.0)])
    full = (NOW + 3000, NOW + 7200, NOW + 9000)
    picture = render_svg(drawn(ChartLine(name="used", title="Space", unit="percent", parts=parts,
                             limits=[("critical", 95.0)], ahead=full)))  # fmt: skip
    assert picture.count('class="limit"') == 2
    assert ">now<" in picture
    assert ">full 15 Jan 10:00<" in picture
    assert 'class="band"' in picture


def test_a_disk_that_may_never_be_full_has_a_band_without_an_end() -> None:
    """One future in ten fills it soon, and most never do: no day is named. Nothing lies outside."""
    parts = split_points([(NOW - 7200, 70.0), (NOW, 250.0)])
    ahead = (NOW + 3000, inf, inf)
    line = ChartLine(name="used", title="/x", unit="percent", parts=parts, ahead=ahead)
    root = ET.fromstring(render_svg_file(drawn(line)))
    texts = " ".join(root.itertext())
    assert "full" not in texts
    shapes = [s for s in root.iter() if s.tag.endswith(("polyline", "polygon"))]
    assert {s.attrib["class"] for s in shapes} == {"line", "band", "mid"}
    for shape in shapes:
        for pair in shape.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HIGH


def test_a_file_system_has_its_space_and_its_alerts() -> None:
    """Read from the state by its name."""
    state = MemoryStore()
    state.take_lead("x", START)
    state.commit(Batch(at=START, samples={"progress": (Sample("llm", "used_percent", 50.0),)}))
    state.commit(Batch(at=START, transitions=(change("firing", 3),)))
    past = read_file_system_history(state, ASKED, START)
    assert line(past, "used_percent") == {0: 50.0}
    assert [m.until for m in clip_marks(past.marks, NOW)] == [NOW]


def test_an_alert_knows_its_earlier_episodes() -> None:
    """Of the same check and subject, with how long each lasted; itself and others left out."""
    state = MemoryStore()
    state.take_lead("x", START)

    def told(
        alert: str, reason: str, minutes: float, began: float, subject: str = "llm"
    ) -> Transition:
        return msgspec.structs.replace(
            change(reason, minutes, subject, began), id=alert + reason, alert=alert, summary=reason
        )

    state.commit(Batch(at=START, transitions=(
        told("a", "firing", 50, 55), told("a", "resolved", 40, 55), told("b", "firing", 30, 30),
        told("o", "firing", 20, 20, "other"), told("now", "firing", 1, 1),
    )))  # fmt: skip
    assert read_episodes(state, "progress", "llm", "now") == [
        AlertEpisode(alert="b", began=NOW - 1800, ended=None, summary="firing"),
        AlertEpisode(alert="a", began=NOW - 3300, ended=NOW - 2400, summary="firing"),
    ]


def test_a_still_shows_what_the_page_shows_and_nothing_that_tells_nothing() -> None:
    """A PNG whose width is the page's; none of a training of which only its jobs are known."""
    alert = notification(check="progress", kind="log", subject="llm loss", since=START_TEXT)
    drawn = render_png(build_alert_chart(went(*range(0, 100, 10)), alert, START))
    assert drawn[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(drawn[16:20], "big") == WIDTH * 1.5
    grows = went(*range(0, 100, 10))
    for minutes in (2, 1):
        seen = {"progress": (Sample("llm", "size_bytes", 1e3 - minutes),)}
        grows.commit(Batch(at=shift_instant(START, -60.0 * minutes), samples=seen))
    hung = msgspec.structs.replace(alert, values={"size_bytes": 1e3, "progress": 90.0})
    lines = build_alert_chart(grows, hung, START).lines
    assert [one.name for one in lines] == ["progress", "speed"], "its log has a size too"
    flat = MemoryStore()
    flat.take_lead("x", START)
    for minutes in (2, 1):
        seen = {"progress": (Sample("llm", "running", 1.0),)}
        flat.commit(Batch(at=shift_instant(START, -60.0 * minutes), samples=seen))
    assert render_png(build_alert_chart(flat, alert, START)) == b""


def test_numbers_that_are_none_are_no_reason_to_fail() -> None:
    """A loss of NaN and infinity, and a name full of markup."""
    state = went(1, 2, 3)
    for minutes, loss in ((3, nan), (2, inf), (1, 2.0)):
        seen = {"progress": (Sample("<llm&", "loss", loss), Sample("<llm&", "progress", 1.0))}
        state.commit(Batch(at=shift_instant(START, -60.0 * minutes), samples=seen))
    alert = notification(check="progress", subject="<llm&", since=START_TEXT)
    assert render_png(build_alert_chart(state, alert, START))[:4] == b"\x89PNG"
