"""The status page as people meet it: in a real Chromium, over a real connection."""

from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from playwright.sync_api import Browser, Locator

from sentinel.core.clock import shift_instant
from sentinel.core.cluster import Node
from sentinel.core.model import Batch, Sample, Status
from sentinel.status.last_seen import NODES_KEY, NodeLook, group_nodes
from sentinel.testing import START
from tests.channels.samples import HOSTILE
from tests.lab.waiting import wait_until
from tests.web.browser import Visitor, browser, own_network
from tests.web.scenery import alert, big, night, store
from tests.web.stage import TOKEN, Stage, stage

PAGES = (
    "/",
    "/alerts",
    "/alerts/00000001",
    "/nodes",
    "/nodes/one?name=gpu00003",
    "/files",
    "/files/one?check=scratch&path=/scratch",
    "/jobs",
    "/jobs/one?check=progress&subject=llm-10b",
    "/gpus",
    "/audit",
)
TONES = (Status.CRITICAL, Status.WARNING, Status.UNKNOWN)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with own_network(), browser() as made:
        yield made


@pytest.fixture(scope="module")
def shown() -> Iterator[Stage]:
    with stage([alert(n, f"gpu{n:05}", TONES[n % 3]) for n in range(1, 4)]) as made:
        yield made


def test_an_alert_is_seen_within_two_seconds_answered_and_gone(chromium: Browser) -> None:
    """It appears on the open page, is acknowledged with the token, not without, and ends."""
    with stage([]) as s:
        v = Visitor(chromium)
        v.page.goto(s.url)
        v.page.get_by_text("live", exact=True).wait_for(timeout=5000)
        s.fire.status = Status.CRITICAL
        s.do(s.engine.run_check("late"))
        row = v.page.locator("#alerts a", has_text="late /late")
        row.wait_for(timeout=2000)  # seen; the page behind it may take a busy machine longer
        row.click()

        v.page.fill("#token", "wrong-token-of-nobody")
        v.page.locator("form[action$=ack] button").click()
        v.page.get_by_text("Not done: the token is not the right one").wait_for()
        assert s.orders() == ([], [])
        with v.page.expect_response(
            lambda r: r.request.method == "GET" and "/alerts/" in r.url
        ) as got:
            s.do(s.engine.run_check("late"))
        assert got.value.status == 200

        v.page.fill("#who", "Ann")
        v.page.fill("#token", TOKEN)
        v.page.locator("form[action$=ack] button").click()
        v.page.get_by_text("Acknowledged by Ann (the status page)").wait_for(timeout=3000)
        assert [a.who for a in s.orders()[0]] == ["Ann (the status page)"]

        s.fire.status = Status.OK
        s.do(s.engine.run_check("late"))
        v.page.get_by_text("This alert does not fire any more").wait_for(timeout=3000)
        assert [f for f in v.faults if "403" not in f] == []


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.long
def test_no_page_has_an_accessibility_fault_or_an_error_or_runs_over(
    chromium: Browser, shown: Stage, path: str, scheme: Any, width: int
) -> None:
    """axe finds nothing at all; the console is silent; nothing is asked elsewhere; no page is
    wider than its window."""
    v = Visitor(chromium, color_scheme=scheme, viewport={"width": width, "height": 900})
    answer = v.page.goto(shown.url + path)
    assert answer is not None
    assert answer.status == 200
    assert v.axe() == []
    assert v.width() <= width
    assert v.faults == []
    v.context.close()


@pytest.mark.parametrize("width", [1180, 1090, 641])
def test_no_table_is_wider_than_its_card(chromium: Browser, shown: Stage, width: int) -> None:
    """In windows around those widths at which the layout changes."""
    v = Visitor(chromium, viewport={"width": width, "height": 900})
    over = "s => s.filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText.slice(0, 40))"
    for path in PAGES:
        v.page.goto(shown.url + path)
        assert v.page.locator("section").evaluate_all(over) == [], path
    v.context.close()


SHIFT = """() => new PerformanceObserver((seen) => {
  for (const one of seen.getEntries()) if (!one.hadRecentInput) window.shift = (window.shift ?? 0) + one.value;
}).observe({type: "layout-shift", buffered: true})"""


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_jumps_while_a_page_arrives_slowly(
    chromium: Browser, shown: Stage, width: int
) -> None:
    """Scripts and what they draw come half a second after the page: room is kept free for them, and for ages that tick. The score is
    the browser's (https://web.dev/articles/cls): good is below 0.1."""
    for path in ("/", "/nodes", PAGES[6], PAGES[8]):
        v = Visitor(chromium, viewport={"width": width, "height": 900})
        v.page.add_init_script(f"({SHIFT})()")
        line = v.context.new_cdp_session(v.page)
        slow = {"offline": False, "latency": 500, "downloadThroughput": -1, "uploadThroughput": -1}
        line.send("Network.emulateNetworkConditions", slow)
        v.page.goto(shown.url + path)
        if path != "/":
            v.page.locator("#room[data-drawn], #chart canvas").first.wait_for()
        v.page.wait_for_timeout(1100)  # ages have ticked
        assert v.page.evaluate("window.shift ?? 0") < 0.03, path
        v.context.close()


def test_the_plots_are_drawn_without_scripts_too(chromium: Browser, shown: Stage) -> None:
    """History as a line, the forecast as a band; the progress of a training too."""
    page = Visitor(chromium, java_script_enabled=False).page
    page.goto(f"{shown.url}/files/one?check=scratch&path=/scratch")
    line = page.locator("svg.plot polyline.line").first
    assert len((line.get_attribute("points") or "").split()) == 60
    box = line.bounding_box()
    assert box is not None
    assert box["width"] > 20
    assert page.locator("svg.plot polygon.band").count() == 1
    page.goto(f"{shown.url}/jobs/one?check=progress&subject=llm-10b")
    assert page.locator("svg.plot polyline.line").count() == 2  # the number and its speed


def test_a_moment_of_a_training_is_told_to_the_keyboard_and_has_an_address(
    chromium: Browser, shown: Stage
) -> None:
    """One chart a number on one axis; the arrows lead from event to event; Enter opens the hour."""
    v = Visitor(chromium)
    v.page.goto(f"{shown.url}/jobs/one?check=progress&subject=llm-10b")
    v.page.locator("#chart canvas").nth(1).wait_for()
    assert v.page.locator("#course").is_hidden()
    v.page.focus("#chart")
    v.page.keyboard.press("ArrowUp")
    v.page.locator("#chart .told", has_text="stacks").wait_for()
    told = v.page.locator("#chart .told").inner_text()
    assert "07:55:00 UTC · Step 79,330 · Steps a minute 6 · stacks 4711: done" in told
    v.page.keyboard.press("Enter")
    v.page.wait_for_url("**&span=3600")
    v.page.locator("#chart canvas").nth(1).wait_for()
    assert v.faults == []


def test_without_javascript_all_is_there_and_can_be_answered(chromium: Browser) -> None:
    """The page needs no script to show, and none to acknowledge or to silence."""
    with stage([alert(1, "gpu00001")]) as s:
        v = Visitor(chromium, java_script_enabled=False)
        v.page.goto(s.url)
        for text in ("drained gpu00001", "/scratch", "gpu00007", "79,400", "undrain"):
            assert v.page.get_by_text(text).first.is_visible(), text
        v.page.click("#alerts a")
        v.page.click("summary")
        v.page.select_option("#for", "4h")
        v.page.fill("#token2", TOKEN)
        v.page.locator("form[action$=silence] button").click()
        v.page.get_by_text("Silenced until").wait_for()
        [silence] = s.orders()[1]
        assert silence.ends - silence.starts == 4 * 3600 * 10**6


def test_the_keyboard_reaches_an_alert(chromium: Browser, shown: Stage) -> None:
    """The first key leads past the menu; links come in the order in which they are read."""
    page = Visitor(chromium).page
    page.goto(shown.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/alerts/*")


def test_a_cell_of_the_grid_opens_its_node(chromium: Browser, shown: Stage) -> None:
    """Whatever is pressed is what is shown, without scripts."""
    page = Visitor(chromium, java_script_enabled=False).page
    page.goto(f"{shown.url}/nodes")
    page.locator("input[type=image]").click(position={"x": 75, "y": 6})
    page.wait_for_url("**/nodes/one?name=gpu00007")
    page.get_by_text("Not responding").first.wait_for()


def test_the_machine_room_tells_a_node_to_keyboard_and_pointer(chromium: Browser) -> None:
    """Ten thousand nodes with eight GPUs each on one canvas, switchable; the same is in a table."""
    with stage([alert(n, f"gpu{n:05}") for n in range(300)], 10_000) as s:
        v = Visitor(chromium, viewport={"width": 1280, "height": 900})
        v.page.goto(f"{s.url}/nodes")
        v.page.locator("#room[data-drawn]").wait_for()
        assert v.page.locator("#still").is_hidden()
        v.page.focus("#room canvas")
        for _ in range(4):
            v.page.keyboard.press("ArrowDown")
        told = v.page.locator("#room .told")
        for text in (
            "gpu00003",
            "drained",
            "8 GPUs",
            "job 4711 llm-10b of ann",
            "1 alert",
            "lemon",
        ):
            assert text in told.inner_text(), text
        for mode in ("job", "user", "heat", "score", "alerts"):
            v.page.select_option("#room-mode", mode)
            v.page.locator("#room .legend li").first.wait_for()
        v.page.locator("#racks summary").click()
        v.page.locator("#rack-table").get_by_text("gpu00000 to gpu00031").wait_for()
        v.page.locator("#room canvas").hover(position={"x": 6, "y": 24})
        v.page.locator("#room .told", has_text="gpu00002").wait_for()
        v.page.focus("#room canvas")
        v.page.keyboard.press("Enter")
        v.page.wait_for_url("**/nodes/one?name=gpu00002")
        assert v.faults == []


def test_odd_input_breaks_no_page(chromium: Browser) -> None:
    """A rack of 2,000 nodes, a name of 255 characters, numbers that are none; on a phone."""
    long, state = "x" * 255, store([alert(1, "x" * 255)], 40)
    state.take_lead("lab pid 1", START)
    nodes = [Node(name=name, state="IDLE") for name in (long, *(f"n{n}" for n in range(2000)))]
    look = NodeLook(
        at=START, groups=group_nodes(nodes), racks={"leaf": "n[0-1999]"}, gpus={"8": long}
    )
    odd = (inf, nan, -inf, 1e308)
    for n, value in enumerate(odd):
        seen = tuple(Sample("llm-10b", name, value) for name in ("loss", "grad_norm", "progress"))
        state.commit(Batch(at=shift_instant(START, -500.0 + n), samples={"progress": seen}))
    state.commit(Batch(at=START, memory={NODES_KEY: to_builtins(look)}))
    with stage(state=state) as s:
        v = Visitor(chromium, viewport={"width": 360, "height": 800})
        v.page.goto(f"{s.url}/nodes")
        v.page.locator("#room[data-drawn]").wait_for()
        v.page.focus("#room canvas")
        for key in ("End", "ArrowDown", "ArrowLeft"):
            v.page.keyboard.press(key)
        assert v.page.locator("#room .told a").get_attribute("href") != ""
        assert v.width() <= 360
        for path in (f"/nodes/one?name={long}", PAGES[8], "/alerts/00000001", "/"):
            v.page.goto(s.url + path)
            assert v.width() <= 360, path
        v.page.goto(s.url + PAGES[8])
        v.page.locator("#chart canvas").first.wait_for()
        assert v.faults == []


LIVE = "#live:text-is('live')"


def test_an_open_page_finds_its_way_back(chromium: Browser) -> None:
    """A proxy answers 502 while sentinel restarts: the browser itself would never ask again. What
    happened meanwhile is there at once, and nothing looks live that is not."""
    with stage([]) as s:
        page = Visitor(chromium).page
        page.goto(s.url)
        page.wait_for_selector(LIVE, timeout=5000)
        page.route("**/events", lambda route: route.fulfill(status=502))
        page.route(f"{s.url}/", lambda route: route.fulfill(status=503))
        with page.expect_response(lambda r: r.status == 502, timeout=10_000):
            s.server._site._events.close_streams()  # type: ignore[union-attr]
        page.wait_for_selector("#live:text-matches('^not live: ')", timeout=10_000)
        page.wait_for_selector("#lost:text-matches('^Not live: .* All this is as of ')")
        s.fire.status = Status.CRITICAL
        s.do(s.engine.run_check("late"))
        page.unroute("**/events")
        page.unroute(f"{s.url}/")
        page.wait_for_selector("#alerts a:text('late /late')", timeout=10_000)
        page.wait_for_selector(LIVE)
        page.wait_for_selector("#lost", state="hidden")


def test_a_page_that_is_told_nothing_does_not_look_live(chromium: Browser) -> None:
    """A connection on which nothing comes, and nobody says so, as after a laptop's sleep."""
    with stage([]) as s:
        page = Visitor(chromium).page
        page.clock.install()
        page.route("**/events", lambda _: None)
        page.goto(s.url)
        page.clock.fast_forward(60_000)
        page.wait_for_selector("#live:text-matches('^not live: ')", timeout=5000)


CURRENT = """() => [...document.querySelectorAll("main tbody tr, main meter, main svg.strip, #room")]
  .filter((e) => !e.closest(".stale") && !e.querySelector("svg.strip"))
  .filter((e) => !e.closest("#acts, #ac, #marks, #held, #list[data-what='/audit'], #list[data-what='/gpus']"))
  .map((e) => e.innerText || e.outerHTML.slice(0, 80))
  .filter((text) => !text.includes("has not run yet"))"""
"""What stands on a page as if it were so now; what was done and what is in a ledger is past."""


@pytest.mark.long
def test_nothing_that_was_seen_too_long_ago_is_shown_as_current(chromium: Browser) -> None:
    """No check ran and Slurm told nothing for an hour: on every page all of it is grey, and the API
    says why of each row. Before that all of it was current."""
    with stage([alert(n, f"gpu{n:05}") for n in range(1, 4)]) as s:
        page = Visitor(chromium).page
        page.goto(s.url)
        assert len(page.evaluate(CURRENT)) > 10
        s.clock.advance(3600)
        told = f"{s.url}/api/v1"
        wait_until(lambda: page.request.get(told).json()["nodes_trouble"], "facts are made anew")
        for path in PAGES:
            page.goto(s.url + path)
            page.wait_for_selector(LIVE)
            if path == "/nodes":
                page.locator("#room.stale[data-drawn]").wait_for()
            assert page.evaluate(CURRENT) == [], path
        for rows in ("alerts", "checks", "disks", "jobs"):
            found = page.request.get(f"{s.url}/api/v1/{rows}").json()
            assert all(row["stale"] for row in found if row.get("name") != "late"), rows


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.long
def test_while_the_service_stands_still_every_page_says_so(
    chromium: Browser, shown: Stage, path: str
) -> None:
    """A banner, with the moment of which all of it is; ages go on; it goes when the service does.
    The browser's clock is five hours off, which nothing shows."""
    v = Visitor(chromium)
    page = v.page
    page.clock.install(time=START.wall / 1e6 + 5 * 3600)
    page.goto(shown.url + path)
    page.wait_for_selector(LIVE)
    with shown.frozen():
        page.clock.fast_forward(30_000)
        page.wait_for_selector(
            "#lost:text-matches('^Not live: .* All this is as of 2027-01-15 08:00')"
        )
        for age in page.locator("time.age").all_inner_texts():
            assert not age.startswith(("4h", "5h")), path
    page.wait_for_selector(LIVE, timeout=15_000)
    assert page.locator("#lost").is_hidden()
    v.context.close()


def test_a_page_that_nobody_sees_lets_go_of_its_connection(chromium: Browser) -> None:
    """Browsers have six a server for all their windows: the seventh page would never load."""
    with stage([]) as s:
        pages = s.server._site._events._open  # type: ignore[union-attr]
        page = Visitor(chromium).page
        page.goto(s.url)
        page.wait_for_selector(LIVE, timeout=5000)
        assert len(pages) == 1
        page.evaluate("Object.defineProperty(document, 'hidden', {value: true, writable: true})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        wait_until(lambda: not pages, "the page let go", 15)
        s.fire.status = Status.CRITICAL
        s.do(s.engine.run_check("late"))
        page.evaluate(
            "document.hidden = false; document.dispatchEvent(new Event('visibilitychange'))"
        )
        page.wait_for_selector("#alerts a:text('late /late')", timeout=5000)
        wait_until(lambda: len(pages) == 1, "its connection again")  # asked for beside the page


def test_what_is_being_typed_is_not_lost_when_the_page_is_renewed(chromium: Browser) -> None:
    """Someone enters the token while alerts come and go."""
    with stage([alert(1, "gpu00001")]) as s:
        page = Visitor(chromium).page
        page.goto(f"{s.url}/alerts/00000001")
        page.get_by_text("live", exact=True).wait_for(timeout=5000)
        page.fill("#who", "half a na")
        with page.expect_request(lambda r: r.url.endswith("/alerts/00000001"), timeout=5000):
            s.do(s.engine.run_check("late"))
        page.wait_for_timeout(100)
        assert page.input_value("#who") == "half a na"


def test_what_is_selected_to_be_copied_stays_until_it_is_let_go(chromium: Browser) -> None:
    """The page is renewed around it, and it as soon as nobody holds it."""
    with stage([alert(1, "gpu00001")]) as s:
        page = Visitor(chromium).page
        page.goto(s.url)
        page.wait_for_selector(LIVE, timeout=5000)
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#alerts td.s'))")
        s.fire.status = Status.CRITICAL
        s.do(s.engine.run_check("late"))
        page.wait_for_selector("#sum :text('2 critical')", timeout=5000)
        assert page.evaluate("getSelection().toString()").strip() == "drained gpu00001"
        assert page.locator("#alerts a:text('late /late')").count() == 0
        page.evaluate("getSelection().removeAllRanges()")
        page.wait_for_selector("#alerts a:text('late /late')", timeout=5000)


def test_hostile_names_are_inert(chromium: Browser) -> None:
    """No script of theirs runs, no element of theirs is made, on any page that shows them."""
    texts = list(HOSTILE.values())
    alerts = [alert(n, t, summary=t, details=t, labels={"node": t}) for n, t in enumerate(texts)]
    with stage(alerts) as s:
        v = Visitor(chromium)
        for path in ("/", "/alerts", *(f"/alerts/{n:08x}" for n in range(len(texts)))):
            v.page.goto(s.url + path)
            assert v.page.locator("main script, main img, main b, main iframe").count() == 0
        assert v.faults == []
        v.context.close()


def test_five_hundred_alerts_are_all_there(chromium: Browser) -> None:
    """Alike ones in one row, all on their pages, and no page runs over."""
    with stage([alert(n, f"gpu{n:05}", TONES[n % 3]) for n in range(500)], 10_000) as s:
        page = Visitor(chromium, viewport={"width": 390, "height": 800}).page
        page.goto(s.url)
        page.get_by_text("All 500 alerts").click()
        page.wait_for_url("**/alerts")
        assert page.locator("#alerts tbody tr").count() == 3
        page.get_by_text("each by itself").click()
        names = set()
        for first, last in ((1, 200), (201, 400), (401, 500)):
            page.get_by_text(f"{first} to {last} of 500").wait_for()
            page.wait_for_load_state()  # rows come below the text
            names |= set(page.locator("#alerts tbody a").all_inner_texts())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            if last < 500:
                page.get_by_text("further").click()
        assert len(names) == 500


def test_the_first_screen_shows_every_training_that_stands_still(chromium: Browser) -> None:
    """Eighteen among three hundred alerts; an incident is a row that leads to its alerts."""
    with stage(night(), 500) as s:
        page = Visitor(chromium, viewport={"width": 1280, "height": 900}).page
        page.goto(s.url)
        rows = page.locator("#alerts tbody tr")
        assert ["training" in text for text in rows.all_inner_texts()] == [True] * 18 + [False] * 2
        assert seen(page.locator("#alerts tbody tr:nth-child(-n+18)"))
        page.get_by_text("and 200 more of these incidents").click()
        page.wait_for_url("**incident=*")
        assert page.get_by_text("1 to 200 of 220").count() == 1


def test_the_questions_of_a_night_are_answered_with_two_clicks(
    chromium: Browser, tmp_path: Path
) -> None:
    """At a site of 500 nodes, 3,000 GPUs and three hundred alerts: what is wrong, since when, whom it
    hurts, acknowledged with a note, which rank. Each begins on the overview, on the first screen."""
    stood = tmp_path / "job-4703-20270115T075500Z"
    stood.mkdir()
    (stood / "stacks.txt").write_text("rank 37 on gpu00007 in load_batch, 63 ranks in all_reduce\n")
    with stage(state=big(), evidence=str(tmp_path)) as s:
        v = Visitor(chromium, viewport={"width": 1280, "height": 900})
        page = v.page
        page.goto(f"{s.url}/login")
        page.fill("#who", "Ann")
        page.fill("#token", TOKEN)
        page.locator("main button").click()
        dead = page.locator("#alerts tbody tr", has_text="user3/llm")

        def asked() -> None:
            page.goto(s.url)
            v.clicks = 0

        asked()
        assert seen(dead)
        assert "job 4242 FAILED (exit 1)" in dead.inner_text()
        assert dead.locator("time.age").inner_text() == "4m"
        v.click(dead.locator("a").first)
        for text in ("user3", "2027-01-15 07:56:00 UTC"):
            assert seen(page.locator("#now dd", has_text=text)), text
        assert v.clicks == 1
        v.click(page.get_by_text("How user3/llm went"))
        page.get_by_text("rank 37 on gpu00007 in load_batch").first.wait_for()
        assert v.clicks == 2

        asked()
        v.click(dead.locator("a").first)
        v.click(page.locator("#note"))
        page.keyboard.type("on it")
        page.keyboard.press("Enter")
        page.get_by_text("Acknowledged by Ann").wait_for()
        assert [(a.who, a.note) for a in s.orders()[0]] == [("Ann (the status page)", "on it")]
        assert (v.clicks, v.faults) == (2, [])


SEEN = """all => all.length > 0 && all.every(one => {
    const box = one.getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= 900;
})"""


def seen(what: Locator) -> bool:
    """Whether all of it stands on the first screen, without scrolling. Asked in one step: a row that is
    found and then measured may have been renewed between the two."""
    return bool(what.evaluate_all(SEEN))


def test_pictures_can_be_taken(chromium: Browser, shown: Stage, tmp_path: Path) -> None:
    """What `make pictures` does."""
    page = Visitor(chromium).page
    page.goto(shown.url)
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 10_000
