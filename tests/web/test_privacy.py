"""Where a proxy says who people are: logs, paths and stacks are those of their own jobs; what Slurm hides
is not shown; administrators see all. Over a real connection, on every address."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, Key, Sample, Status
from sentinel.status import last_seen
from sentinel.status.detail import AlertChange
from sentinel.status.last_seen import CheckLook, NodeLook, PlacedJob, ShownFinding, group_nodes
from sentinel.status.privacy import Viewer
from sentinel.status.types import CheckFact, DiskFact
from sentinel.testing import START
from sentinel.web.auth import Gate
from tests.web.proof import of, program
from tests.web.scenery import KINDS, alert, nodes, store, week
from tests.web.stage import TOKEN, Stage, stage
from tests.web.test_site import ask

GATE = Gate(TOKEN, user_header="X-Remote-User", administrators=frozenset({"root"}))
PATHS = (
    "/",
    "/alerts",
    "/alerts?state=firing",
    "/alerts/0000000a",
    "/alerts/0000000b",
    "/nodes",
    "/nodes/room.json",
    "/nodes/one?name=gpu00003",
    "/jobs",
    "/jobs/one?check=progress&subject=a/llm",
    "/jobs/one?check=progress&subject=b/llm",
    "/jobs/one.json?check=progress&subject=b/llm",
    "/files/one?check=progress&path=b/llm",
    "/audit",
    *(f"/api/v1/{name}" for name in ("alerts", "incidents", "checks", "jobs", "actions", "unsent")),
    "/api/v1/jobs?format=csv",
    "/api/v1",
    "/api/v1/alerts/0000000b",
)
SECRETS = ("B-LOG-TAIL", "/home/bob/", "B-COMMAND", "rank 37", "b/llm, last 7 days", "B-NOTE")
CONTENT = {"progress": 7.0, "loss": 2.71875, "grad_norm": 31.4375}
NAMES = ("b/llm", "bob", "B-JOB")


@contextmanager
def site(private: Sequence[str] | None, evidence: str = "") -> Iterator[Stage]:
    """A training of ann's and one of bob's, each with an alert; what is bob's says so."""
    made = []
    for id_, user in ((10, "ann"), (11, "bob")):
        word, key = user[0].upper(), Key("h100-prod", "progress", f"{user[0]}/llm")
        words = f"stands still; {word}-LOG-TAIL in /home/{user}/llm.log"
        more: Any = {"details": f"{word}-LOG-TAIL\n/home/{user}/x", "labels": {"user": user}}
        cut = (f"less /home/{user}/llm.log {word}-COMMAND",)
        made.append(alert(id_, "", key=key, kind="log", summary=words, commands=cut, **more))
    state = store([*made, alert(1, "gpu00003", Status.WARNING)], 40)
    state.take_lead("lab pid 1", START)
    seen = tuple(
        ShownFinding(
            subject=f"{user[0]}/llm",
            status=Status.CRITICAL,
            summary=f"no step; {user[0].upper()}-LOG-TAIL in /home/{user}/llm.log",
            values={"progress": 7.0, "job": "4711" if user == "bob" else "4712"},
            labels={"user": user},
        )
        for user in ("ann", "bob")
    )
    work = tuple(
        PlacedJob(id=n, name=f"{u[0].upper()}-JOB", user=u, nodes="gpu00001")
        for u, n in (("ann", "4712"), ("bob", "4711"))
    )
    memory: Mapping[str, Any] = {
        last_seen.make_check_key("progress"): to_builtins(CheckLook(at=START, findings=seen)),
        last_seen.NODES_KEY: to_builtins(
            NodeLook(
                at=START,
                groups=group_nodes(nodes(40)),
                jobs={"RUNNING": 2},
                gpus={"8": "gpu[00000-00039]"},
                work=work,
                private=None if private is None else tuple(private),
            )
        ),
    }
    runs = (*week("a/llm"), *week("b/llm"))
    state.commit(Batch(at=START, memory=memory, ledger=runs))
    for back in (1200.0, 600.0, 0.0):
        samples = tuple(Sample("b/llm", name, value) for name, value in CONTENT.items())
        state.commit(Batch(at=shift_instant(START, -back), samples={"progress": samples}))
    with stage(state=state, gate=GATE, evidence=evidence) as s:
        yield s


def read(s: Stage, headers: dict[str, str]) -> dict[str, str]:
    return {path: ask(s, "GET", path, headers=headers)[1] for path in PATHS}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Slurm hides nothing; there are stacks of bob's job."""
    folder = tmp_path_factory.mktemp("evidence")
    stood = folder / "job-4711-20270115T080000Z"
    stood.mkdir()
    (stood / "stacks.txt").write_text("rank 37 B-LOG-TAIL in /home/bob/train.py\n")
    with site((), str(folder)) as s:
        yield s


@pytest.mark.parametrize(
    "headers", [of("bob"), of("root"), program()], ids=["bob", "root", "token"]
)
def test_the_owner_and_administrators_see_all_of_a_job(
    told: Stage, headers: dict[str, str]
) -> None:
    """So does a program that has the token: what the others lack is there to be seen."""
    found = "".join(read(told, headers).values())
    assert [text for text in SECRETS[:-1] if text not in found] == []


@pytest.mark.parametrize(
    "headers",
    [
        of("ann"),
        of("bob", ""),
        of("root", ""),
        of("root", "wrong"),
        of(""),
        of(" "),
        program(""),
        program("wrong"),
        {},
    ],
    ids=[
        "ann",
        "says bob",
        "says root",
        "root, wrong token",
        "no name behind the proxy",
        "a blank name",
        "no password",
        "wrong password",
        "nobody",
    ],
)
def test_of_other_peoples_jobs_neither_log_nor_path_nor_stacks(
    told: Stage, headers: dict[str, str]
) -> None:
    """On no page and in no table; a name is believed only of the proxy. That the job stands still may
    be known."""
    found = read(told, headers)
    for path, text in found.items():
        assert [secret for secret in SECRETS if secret in text] == [], path
    assert "b/llm" in found["/alerts"]
    assert "b/llm" in found["/jobs"]
    assert "Kill task failed" in found["/nodes"]
    assert ("A-LOG-TAIL" in found["/jobs"]) == (headers == of("ann"))


@pytest.mark.parametrize("private", [("jobs",), None], ids=["hidden", "not known"])
def test_what_slurm_hides_is_not_there(private: Sequence[str] | None) -> None:
    """PrivateData=jobs, or nobody knows: no name of a job or a user, on no page and in no table."""
    with site(private) as s:
        for path, text in read(s, of("ann")).items():
            asked = path.rpartition("=")[2]
            named = [n for n in (*NAMES, *SECRETS) if n in text.replace(asked, "")]
            assert named == [] or path.startswith("/files/one"), path
        assert "A-JOB" in ask(s, "GET", "/nodes/room.json", headers=of("ann"))[1]
        assert ask(s, "GET", "/alerts/0000000b", headers=of("ann"))[0] == 404
        assert ask(s, "GET", "/metrics", headers=of("ann"))[0] == 403
        assert ask(s, "GET", "/metrics", headers=of(""))[0] == 403
        assert ask(s, "GET", "/metrics", headers=program())[0] == 200
        assert "B-JOB" in ask(s, "GET", "/nodes/room.json", headers=of("root"))[1]


def test_what_another_clusters_slurm_hides_is_not_known_so_it_is_not_there() -> None:
    """Only the own one's PrivateData is asked for."""
    with site(()) as s:
        whole = s.do(s.server._site._live.get_facts())  # type: ignore[union-attr]
    there = tuple(
        replace(c, elsewhere="east" if c.name == "progress" else "") for c in whole.checks
    )
    ann = Viewer("ann", all=False)
    assert {j.subject for j in ann.filter_facts(whole).jobs} == {"a/llm", "b/llm", "llm-10b"}
    seen = ann.filter_facts(replace(whole, checks=there))
    assert {j.subject for j in seen.jobs} == {"a/llm", "llm-10b"}
    assert [a.id for a in seen.alerts if a.check == "progress"] == ["0000000a"]


def test_nodes_that_slurm_hides_are_not_there() -> None:
    """PrivateData=nodes."""
    with site(("nodes",)) as s:
        for path, text in read(s, of("ann")).items():
            if not path.startswith("/nodes/one"):
                assert "gpu0000" not in text.replace("gpu00001", ""), path
        assert "Kill task failed" not in ask(s, "GET", PATHS[7], headers=of("ann"))[1]
        assert "gpu00003" in ask(s, "GET", "/nodes", headers=of("root"))[1]


def test_whoever_is_no_administrator_answers_for_own_jobs_only(told: Stage) -> None:
    """By the page, to many, and by the API; the proxy's user needs no token of their own."""
    his, hers = "/alerts/0000000b/ack", "/alerts/0000000a/ack"
    assert ask(told, "POST", his, headers=of("ann"), data={})[0] == 403
    both = {"alert": "0000000a 0000000b", "deed": "ack"}
    assert ask(told, "POST", "/alerts", headers=of("ann"), data=both)[0] == 403
    api = {**of("ann"), "Content-Type": "application/json"}
    assert ask(told, "POST", f"/api/v1{his}", headers=api, data="{}")[0] == 403
    assert ask(told, "POST", hers, headers=of("ann", ""), data={})[0] == 403
    assert told.orders()[0] == []
    assert ask(told, "POST", hers, headers=of("ann"), data={})[0] == 303
    assert ask(told, "POST", his, headers=of("root"), data={"note": "B-NOTE"})[0] == 303
    assert sorted(a.who for a in told.orders()[0]) == [
        "ann (the status page)",
        "root (the status page)",
    ]
    seen = json.loads(ask(told, "GET", "/api/v1/alerts", headers=of("ann"))[1])
    assert {a["id"]: a["ack_note"] for a in seen}["0000000b"] == ""


def test_quotas_of_other_people_are_not_there() -> None:
    """How much somebody may use and uses: to that user and to administrators. What belongs to a group
    or to nobody is everybody's."""
    rows = [
        "/home user:ann",
        "/home user:bob",
        "/x command:bob",
        "/x command:user:bob",
        "/home group:ml",
    ]
    with site(()) as s:
        whole = s.do(s.server._site._live.get_facts())  # type: ignore[union-attr]
    quota = CheckFact(name="allot", kind="quota", panel="disks", summary="/home user:bob: 99% used")
    full = [
        replace(whole.alerts[0], id=f"q{n}", check="allot", subject=row, labels={}, summary="99%")
        for n, row in enumerate(rows)
    ]
    disks = [DiskFact(check="allot", path=r, status=Status.OK, summary="", seen=0.0) for r in rows]
    facts = replace(
        whole, checks=(*whole.checks, quota), alerts=tuple(full), disks=tuple(disks), incidents=()
    )
    past = [
        AlertChange(
            at=0.0,
            check="allot",
            subject=a.subject,
            alert=a.id,
            status=Status.OK,
            reason="gone",
            summary="",
        )
        for a in full
    ]
    for name, kept in (("ann", [rows[0], rows[4]]), ("bob", rows[1:]), ("", rows[4:])):
        viewer = Viewer(name, all=False)
        seen = viewer.filter_facts(facts)
        assert [d.path for d in seen.disks] == kept
        assert [a.subject for a in seen.alerts] == kept
        assert [c.summary for c in seen.checks if c.name == "allot"] == [""]
        assert [t.subject for t in viewer.filter_changes(facts, past)] == kept
    assert len(Viewer().filter_facts(facts).disks) == len(rows)


def test_who_fills_a_file_system_is_told_as_far_as_quotas_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page of a file system lists the quotas on it: to a person their own and those of groups."""
    monkeypatch.setitem(KINDS, "allot", "quota")
    rows = [f"/scratch {whose}" for whose in ("user:ann", "user:bob", "group:ml")]
    seen = {
        name: tuple(
            ShownFinding(subject=one, status=Status.OK, summary="", values={"used_bytes": 5e12})
            for one in subjects
        )
        for name, subjects in (("scratch", ["/scratch"]), ("allot", rows))
    }
    memory: Mapping[str, Any] = {
        last_seen.make_check_key(name): to_builtins(CheckLook(at=START, findings=found))
        for name, found in seen.items()
    }
    state = store([])
    state.take_lead("lab pid 1", START)
    state.commit(Batch(at=START, memory=memory))
    with stage(state=state, gate=GATE) as s:
        # Who sees all of it comes first: what was read for root is not shown to ann.
        for headers, kept in ((of("root"), rows), (of("ann"), [rows[0], rows[2]]), ({}, rows[2:])):
            page = ask(s, "GET", "/files/one?check=scratch&path=/scratch", headers=headers)[1]
            assert [row for row in rows if row in page] == kept
