"""Alertmanager: the contract against a server that answers as it does, then a real one."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from aiohttp import web
from msgspec.structs import replace

from sentinel.channels.alertmanager import Alertmanager, api_alert
from sentinel.config.loader import load_config
from sentinel.core.errors import Invalid
from sentinel.core.model import Notification, Status
from sentinel.core.settings import Secret
from sentinel.core.values import Duration
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.channels.contract import SECRET, send
from tests.channels.samples import HOSTILE, hostile, notification
from tests.channels.web import ServiceContract, Web, answers, answers_json, failure
from tests.lab.alertmanager import Alertmanager as Server
from tests.lab.waiting import wait_until

NOW = datetime(2026, 9, 30, 1, 40, 0, tzinfo=timezone.utc)


def taking(known: Any = ()) -> Any:
    """Answers as Alertmanager does: a list to GET, nothing to POST."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(list(known)) if request.method == "GET" else web.Response()

    return answer


def manager(url: str, **changes: Any) -> Alertmanager:
    return Alertmanager(**{"urls": [url], **changes})


class TestContract(ServiceContract):
    """Its own errors are JSON strings or objects."""

    MOODS: ClassVar[Any] = {
        "takes": taking(),
        "refuses": answers_json(400, f"bad matcher format {SECRET}"),
        "later": answers(503, SECRET),
    }

    def channel(self, url: str, timeout: Duration) -> Alertmanager:
        headers = {"Authorization": Secret(f"Bearer {SECRET}")}
        return manager(url, headers=headers, timeout=timeout)


def test_alerts_of_one_incident_say_so_and_stay_apart() -> None:
    """As an annotation: a label would make another alert of one that joins later."""
    alone, joined = (api_alert(notification(incident=i), NOW, 3600) for i in ("01J9", "01J0"))
    assert alone["labels"] == joined["labels"]
    assert joined["annotations"]["sentinel_incident"] == "01J0"
    assert alone["annotations"]["sentinel_incident"] == "01J9"


def test_labels_are_what_routes_match_on() -> None:
    """The alert's own words, and the labels of the finding under names that Prometheus allows."""
    labels = {"node": "r12n07", "gpu-uuid": "x", "0": "y", "severity": "no", "empty": ""}
    made = api_alert(notification(labels=labels), NOW, 60)
    assert made["labels"] == {
        "alertname": "training",
        "cluster": "h100-prod",
        "kind": "job",
        "subject": "tr11-176B",
        "severity": "critical",
        "node": "r12n07",
        "gpu_uuid": "x",
        "_0": "y",
    }


def test_the_host_that_looked_is_no_label() -> None:
    """Labels are the identity there: a chain that moves to another node would open the alert anew."""
    here, there = (api_alert(notification(values={"host": name}), NOW, 60) for name in "ab")
    assert here["labels"] == there["labels"]
    assert (here["annotations"]["host"], there["annotations"]["host"]) == ("a", "b")


OK = Status.OK
TIMES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "2026-09-30T03:12:05+02:00", "2026-09-30T01:41:00+00:00"),
    ({"reason": "repeat"}, "2026-09-30T03:12:05+02:00", "2026-09-30T01:41:00+00:00"),
    (
        {"reason": "resolved", "status": OK},
        "2026-09-30T03:12:05+02:00",
        "2026-09-30T03:37:05+02:00",
    ),
    (
        {"reason": "resolved", "status": OK, "at": "2026-09-30T09:00:00+02:00"},
        "2026-09-30T03:12:05+02:00",
        "2026-09-30T01:40:00+00:00",
    ),
    ({"since": "soon"}, "2026-09-30T01:40:00+00:00", "2026-09-30T01:41:00+00:00"),
    (
        {"since": "2027-01-01T00:00:00Z"},
        "2026-09-30T01:41:00+00:00",
        "2026-09-30T01:41:00+00:00",
    ),
]


@pytest.mark.parametrize(("changes", "start", "end"), TIMES)
def test_when_it_began_and_ends(changes: dict[str, Any], start: str, end: str) -> None:
    """What fires ends when it is not repeated, what is over when it was over; never in the
    future, and never before it began."""
    made = api_alert(notification(**changes), NOW, 60)
    assert (made["startsAt"], made["endsAt"]) == (start, end)


def test_all_instances_are_told_and_one_is_enough() -> None:
    """As Prometheus does it; those that were not reached are named in the receipt."""
    with Web(taking()) as one, Web(taking()) as two:
        urls = [one.url, "http://localhost:1", two.url]
        receipt = send(Alertmanager(urls=urls), notification())
    assert len(one.bodies) == len(two.bodies) == 1
    assert receipt.refused == ("http://localhost:1",)


def test_one_instance_named_twice_is_still_one_that_failed() -> None:
    """Nobody took it."""
    with Web(answers(503)) as one:
        error = failure(Alertmanager(urls=[one.url, one.url]))
    assert error.reason == "server"


def test_what_is_acknowledged_does_not_end_by_itself() -> None:
    """It is not repeated any more, and its end is told."""
    made = api_alert(notification(reason="ack", acts=("sbatch",)), NOW, 60)["annotations"]
    assert "description" in made
    assert "acts" not in made
    ends = [api_alert(notification(reason="ack"), NOW, days * 86400)["endsAt"] for days in (1, 60)]
    assert ends == ["2026-10-30T01:40:00+00:00", "2026-11-29T01:40:00+00:00"]


def test_of_several_failures_the_one_that_may_pass_counts() -> None:
    """Trying again may reach that one."""
    with Web(answers(400)) as one:
        error = failure(Alertmanager(urls=[one.url, "http://localhost:1"]))
    assert not error.permanent


@pytest.mark.parametrize(("reason", "said"), [("resolved", "back"), ("again", "DIED")])
def test_an_end_does_not_say_what_to_do(reason: str, said: str) -> None:
    """`submit it again` under an alert that is over would be obeyed. One that a newer one replaces keeps it."""
    labels = api_alert(notification(), NOW, 60)["labels"]
    old = {
        "labels": labels,
        "startsAt": "2026-09-30T01:12:05.000Z",
        "annotations": {"summary": "DIED"},
    }
    status = OK if reason == "resolved" else Status.CRITICAL
    with Web(taking([old])) as server:
        send(manager(server.url), notification(reason=reason, status=status, summary="back"))
    assert json.loads(next(filter(None, server.bodies)))[0]["annotations"]["summary"] == said


@pytest.mark.parametrize("labels", [{"alertname": "DiskFull"}, {}, None])
def test_alerts_of_others_are_never_ended(labels: Any) -> None:
    """Even if something in between lost what was asked for: they are not ours."""
    known = [{"labels": labels, "startsAt": "2026-09-30T01:12:05.000Z"}]
    with Web(taking(known)) as server:
        send(manager(server.url), notification(reason="resolved", status=OK))
    (posted,) = json.loads(next(filter(None, server.bodies)))
    assert posted["labels"]["alertname"] == "training"


@pytest.mark.parametrize("answer", ["", "{}", "[1]", "<html>"])
def test_a_list_that_is_none_is_tried_again(answer: str) -> None:
    """A proxy in between, perhaps."""
    with Web(answers(200, answer)) as server:
        error = failure(manager(server.url), notification(reason="resolved", status=OK))
    assert (error.permanent, error.reason) == (False, "server")


BAD: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({"urls": []}, ("urls",)),
    ({"urls": ["http://a:9093", "b:9093"]}, ("urls", 1)),
    ({"expires": Duration(59)}, ("expires",)),
    ({"headers": {"Host": Secret("x")}}, ("headers", "Host")),
    ({"timeout": Duration(0)}, ("timeout",)),
]


@pytest.mark.parametrize(("fields", "path"), BAD)
def test_wrong_settings_are_refused(fields: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Each names its key."""
    with pytest.raises(Invalid) as caught:
        Alertmanager(**{"urls": ["http://localhost:9093"], **fields})
    assert caught.value.path == path


class Real(NamedTuple):
    """A real Alertmanager and what it told its receiver."""

    server: Server
    hook: Web

    def firing(self) -> dict[str, str]:
        """Severity by subject of what fires."""
        return {a["labels"]["subject"]: a["labels"]["severity"] for a in self.server.alerts()}

    def told(self, subject: str) -> list[tuple[str, str]]:
        """Status and severity of what the receiver heard of a subject, in order."""
        heard = [a for body in self.hook.bodies for a in json.loads(body)["alerts"]]
        mine = [a for a in heard if a["labels"].get("subject") == subject]
        return [(a["status"], a["labels"]["severity"]) for a in mine]


@pytest.fixture(scope="module")
def real(alertmanager: Callable[[str], Server]) -> Iterator[Real]:
    """One for all tests here, each with subjects of its own."""
    with Web(answers(200)) as hook:
        yield Real(alertmanager(hook.url), hook)


def now(**changes: Any) -> Notification:
    """An alert that began a minute ago by the clock of this machine."""
    at = datetime.now(timezone.utc).replace(microsecond=0)
    since = (at - timedelta(minutes=1)).isoformat()
    return notification(**{"at": at.isoformat(), "since": since, **changes})


def test_a_real_one_is_told_of_beginning_and_end(real: Real) -> None:
    """Its receiver hears firing, then resolved; it holds the alert no longer."""
    channel = manager(real.server.url)
    send(channel, now(subject="a"))
    assert real.firing()["a"] == "critical"
    wait_until(lambda: real.told("a") == [("firing", "critical")], "told of the firing")
    send(channel, now(subject="a", reason="resolved", status=OK))
    assert "a" not in real.firing()
    wait_until(lambda: real.told("a")[1:] == [("resolved", "critical")], "told of the end")


def test_a_real_one_holds_one_alert_per_subject(real: Real) -> None:
    """Worse takes the place of the milder one; the end ends it whatever its labels are by then."""
    channel = manager(real.server.url)
    send(channel, now(subject="b", severity=Status.WARNING, status=Status.WARNING))
    send(channel, now(subject="b", reason="worse", labels={"user": "bob"}))
    held = [a["labels"]["severity"] for a in real.server.alerts() if a["labels"]["subject"] == "b"]
    assert held == ["critical"]
    send(channel, now(subject="b", reason="resolved", status=OK, labels={}))
    assert "b" not in real.firing()


def test_a_real_one_keeps_what_is_repeated(real: Real) -> None:
    """The same alert again is the same alert, with a later end."""
    channel = manager(real.server.url, expires=Duration(60))
    send(channel, now(subject="c"))
    (before,) = [a for a in real.server.alerts() if a["labels"]["subject"] == "c"]
    later = manager(real.server.url, expires=Duration(3600))
    send(later, now(subject="c", reason="repeat"))
    (after,) = [a for a in real.server.alerts() if a["labels"]["subject"] == "c"]
    assert after["fingerprint"] == before["fingerprint"]
    assert after["endsAt"] > before["endsAt"]
    assert after["startsAt"] == before["startsAt"]


def test_a_real_one_tells_people_of_each_further_death(real: Real) -> None:
    """Alertmanager tells of an alert once, whatever its annotations say by then. So a further death is
    another alert, in place of the first. A later repeat is none."""
    channel = manager(real.server.url)
    send(channel, now(subject="d"))
    wait_until(lambda: real.told("d") == [("firing", "critical")], "told of the first death")
    send(channel, now(subject="d", reason="again", key="1-2"))
    wait_until(
        lambda: real.told("d").count(("firing", "critical")) == 2, "told of the second death"
    )
    (second,) = [a for a in real.server.alerts() if a["labels"]["subject"] == "d"]
    send(channel, now(subject="d", reason="repeat", key="1-3"))
    (kept,) = [a for a in real.server.alerts() if a["labels"]["subject"] == "d"]
    assert kept["fingerprint"] == second["fingerprint"]
    send(channel, now(subject="d", reason="resolved", status=OK))
    assert "d" not in real.firing()


def test_a_real_one_leaves_other_subjects_alone(real: Real) -> None:
    """The end of one, or of the check itself, is the end of that only."""
    channel = manager(real.server.url)
    for subject in ("d", 'd"', "d\\", ""):
        send(channel, now(check="own", subject=subject))
    send(channel, now(check="own", subject='d"', reason="resolved", status=OK))
    held = [a["labels"] for a in real.server.alerts() if a["labels"]["alertname"] == "own"]
    assert sorted(labels.get("subject", "") for labels in held) == ["", "d", "d\\"]
    send(channel, now(check="own", subject="", reason="gone", status=OK))
    held = [a["labels"] for a in real.server.alerts() if a["labels"]["alertname"] == "own"]
    assert sorted(labels.get("subject", "") for labels in held) == ["d", "d\\"]
    send(channel, now(check="own", subject="d\\", reason="gone", status=OK, labels={}))
    held = [a["labels"] for a in real.server.alerts() if a["labels"]["alertname"] == "own"]
    assert [labels["subject"] for labels in held] == ["d"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_real_one_takes_hostile_text(real: Real, text: str) -> None:
    """And ends it again."""
    channel = manager(real.server.url)
    begun = replace(hostile(text), reason="firing", subject=f"hostile {text}")
    send(channel, begun)
    held = len(real.server.alerts())
    send(channel, replace(begun, reason="gone", status=OK))
    assert len(real.server.alerts()) == held - 1


REPEATS = [
    ("expires: 25h", "routes: [{to: [am]}]", 0),
    ("expires: 24h", "routes: [{to: [am]}]", 1),
    ("expires: 24h", "", 1),
    ("expires: 2h", "routes: [{to: [am], repeat: 1h}]", 0),
    ("expires: 2h", "routes: [{to: [am], repeat: 2h}]", 1),
    ("expires: 2h", "routes: [{to: [book], repeat: 3h}, {to: [am], repeat: 1h}]", 0),
    ("expires: 2h", "routes: [{to: [book], repeat: 3h, escalate: {after: 1h, to: [am]}}]", 1),
]


@pytest.mark.parametrize(("expires", "routes", "count"), REPEATS)
def test_a_route_that_repeats_too_rarely_is_warned_of(
    tmp_path: Path, expires: str, routes: str, count: int
) -> None:
    """Alertmanager ends what it is not told again in time, and it would come and go."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(
        "checks: {disks: {kind: fs}}\n"
        f"channels:\n  am: {{kind: alertmanager, urls: [http://x:9093], {expires}}}\n"
        f"  book: {{kind: file, path: /x}}\n{routes}\n"
    )
    found = [
        w
        for w in load_config(str(file), CHECKS, CHANNELS, env={}).warnings
        if "come and go" in str(w)
    ]
    assert len(found) == count


def test_what_sentinel_did_is_no_alert() -> None:
    """Alertmanager has no place for a note; an alert of its own would end only by expiring."""
    with Web(taking()) as server:
        receipt = send(manager(server.url), notification(reason="action", status=Status.OK))
        assert server.bodies == []
    assert "nothing to send" in receipt.text
