"""`sentinel gpus` as people type it, over a real state."""

import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.diag.runs import DiagRun
from sentinel.cli import diag, gpu_bundle
from sentinel.core.clock import SECOND, Instant, shift_instant
from sentinel.core.gpu_ledger import GpuEvent, GpuSighting, LedgerEntry
from sentinel.core.lemon_policy import DAY_S, LemonPolicy
from sentinel.core.model import Batch, CheckRun, Sample, Status
from sentinel.store.opening import open_sql_gpu_ledger, open_store
from tests.lab.gpus import Failure, dcgmi_json, gpus_of

SENTINEL = str(Path(sys.executable).with_name("sentinel"))
BAD, FINE = gpus_of(0)[0], gpus_of(0)[1]


def now() -> Instant:
    return Instant(wall=int(time.time()) * SECOND)


class Shell:
    """Commands with a configuration and a state of their own."""

    def __init__(self, folder: Path, cluster: str = "h100") -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.config = folder, folder / "sentinel.yaml"
        self.config.write_text(
            f"cluster: {cluster}\nstate: {folder}/state\nlemons: {{suspect: 2, lemon: 5}}\n"
            "timezone: UTC\nremote: {connect_timeout: 1s, timeout: 8s}\n"
        )

    def done(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        bare = words[:2] == ("diag", "here") or "--list" in words
        argv = [SENTINEL, *words, *([] if bare else ["-c", str(self.config)])]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def run(self, *words: str, code: int = 0) -> str:
        done = self.done(*words, code=code)
        return done.stdout + done.stderr

    def out(self, *words: str) -> str:
        return self.done(*words).stdout

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.done(*words, "--json", code=code).stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "here")
    gpus = open_sql_gpu_ledger(str(shell.folder / "state"), LemonPolicy())
    for seconds, node in ((-20 * DAY_S, "vm-1"), (-2 * DAY_S, "vm-2")):
        seen = [
            GpuSighting(uuid=g.uuid, node=node, slot=g.address, serial=g.serial)
            for g in (BAD, FINE)
        ]
        gpus.record_sightings(seen, shift_instant(now(), seconds))
    events = [
        GpuEvent(
            id="1",
            subject=BAD.uuid,
            what="xid 48",
            at=shift_instant(now(), -10 * DAY_S),
            node="vm-1",
        ),
        GpuEvent(
            id="2", subject=BAD.uuid, what="diag fail", at=shift_instant(now(), -DAY_S), node="vm-2"
        ),
        GpuEvent(
            id="3", subject=BAD.uuid, what="xid 63", at=shift_instant(now(), -DAY_S), node="vm-2"
        ),
        GpuEvent(
            id="4", subject=FINE.uuid, what="xid 13", at=shift_instant(now(), -DAY_S), node="vm-2"
        ),
    ]
    gpus.add_events(events)
    gpus.close()
    return shell


def test_all_and_the_lemons_among_them(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With node, slot and serial; a program's fault makes none."""
    rows = shell.json("gpus", "list")
    assert [(r["gpu"], r["node"], r["held"]) for r in rows] == [
        (BAD.uuid, "vm-2", "lemon"),
        (FINE.uuid, "vm-2", "good"),
    ]
    assert [r["gpu"] for r in shell.json("gpus", "lemons")] == [BAD.uuid]
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = shell.out("gpus", "list", "vm-2").splitlines()
    slots = [gpu.address.removeprefix("00000000:") for gpu in (BAD, FINE)]
    assert [line.split("\t") for line in lines] == [
        ["node", "slot", "GPU", "°C", "seen ago", "score", "rating"],
        ["vm-2", slots[0], BAD.uuid, "", "2d", "8.2", "lemon"],
        ["vm-2", slots[1], FINE.uuid, "", "2d", "", "good"],
    ]
    monkeypatch.setenv("COLUMNS", "80")
    shown = shell.out("gpus", "list", "vm-2")
    assert max(map(len, shown.splitlines())) <= 80
    assert BAD.uuid in shown
    assert shell.json("gpus", "list", "vm-1") == []


def test_a_temperature_is_the_last_that_a_check_saw_within_the_hour(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever name the check goes; an older one says nothing of now."""
    store = open_store(str(shell.folder / "state"), now()).store
    store.take_lead("test", now())
    for gpu, seconds, value in (
        (BAD.uuid, -100, 70.0), (BAD.uuid, -50, 71.4), (FINE.uuid, -4000, 60.0),
    ):  # fmt: skip
        sample = Sample(subject=gpu, name="temperature_c", value=value)
        store.commit(Batch(at=shift_instant(now(), seconds), samples={"hot": (sample,)}))
    run = CheckRun(check="hot", kind="gpu", at=now(), status=Status.OK, summary="", duration=0.1)
    store.commit(Batch(at=now(), runs=(run,)))
    store.release_lead()
    store.close()
    assert [r["temperature_c"] for r in shell.json("gpus", "list")] == [71.4, None]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "\t71\t" in shell.out("gpus", "list")


def test_of_many_gpus_on_a_terminal_those_that_are_good_are_counted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe, of named nodes and in JSON there are all."""
    gpus = open_sql_gpu_ledger(str(shell.folder / "state"), LemonPolicy())
    seen = [
        GpuSighting(
            uuid=f"GPU-{n + 4096:08x}-0000-0000-0000-000000000000",
            node=f"n{n // 8}",
            slot=str(n % 8),
        )
        for n in range(200)
    ]
    gpus.record_sightings(seen, now())
    gpus.close()
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(shell.out("gpus", "list").splitlines()) == 203
    monkeypatch.setenv("COLUMNS", "100")
    lines = shell.out("gpus", "list").splitlines()
    assert lines[-1] == "201 GPUs are rated good; to see some: sentinel gpus list NODES"
    assert [line for line in lines if "GPU-" in line] == [line for line in lines if "lemon" in line]
    assert len(shell.out("gpus", "list", "n[0-24]").splitlines()) == 201


def test_show_explains_the_sum(shell: Shell) -> None:
    """Places, events, and each term: what counts, what does not, and why."""
    shown = shell.json("gpus", "show", BAD.uuid)
    assert [s["node"] for s in shown["stays"]] == ["vm-1", "vm-2"]
    by_what = {t["what"]: t for t in shown["sum"]}
    assert by_what["xid 63"]["why"] == "diag fail counts for that day"
    assert by_what["diag fail"]["left"] == pytest.approx(6 * 0.5 ** (1 / 28), abs=0.01)
    assert shown["score"] == pytest.approx(sum(t["left"] for t in shown["sum"]), abs=0.01)
    text = shell.run("gpus", "show", BAD.serial)
    assert "lemon, score" in text
    assert "suspect from 2, lemon from 5" in text


@pytest.mark.long
def test_a_persons_word(shell: Shell) -> None:
    """Marked, cleared, and who said so; a UUID that nobody saw may be marked."""
    shell.run("gpus", "mark", FINE.uuid, "lemon", "--reason", "RMA 4711")
    shown = shell.json("gpus", "show", FINE.uuid)
    assert (shown["held"], shown["marked"], shown["reason"]) == ("lemon", True, "RMA 4711")
    assert "by hand" in shown["by"]
    for uuid in (FINE.uuid, BAD.uuid):
        shell.run("gpus", "clear", uuid, "--reason", "replaced")
    assert shell.json("gpus", "lemons") == []
    assert shell.out("gpus", "lemons") == "no lemons and no suspects\n"
    stranger = gpus_of(77)[0].uuid
    shell.run("gpus", "mark", stranger, "lemon", "--reason", "by mail")
    assert [r["gpu"] for r in shell.json("gpus", "lemons")] == [stranger]


def test_what_never_happened_is_removed(shell: Shell) -> None:
    """By its name and from a moment on; the note says who and why, and the score is another."""
    day = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() - 5 * DAY_S))
    words = ("gpus", "forget", BAD.uuid, "xid 48", "xid 63", "--since", day)
    said = shell.json(*words, "--reason", "a program's name")
    assert said == {"subject": BAD.uuid, "forgotten": 1, "gone": False}
    shown = shell.json("gpus", "show", BAD.uuid)
    whats = [(e["what"], e["count"], e["text"]) for e in shown["events"]]
    assert whats[0] == ("forgot xid 63", 1, "a program's name")
    assert {what for what, _, _ in whats[1:]} == {"xid 48", "diag fail"}
    assert "by hand" in shown["events"][0]["by"]
    text = shell.out("gpus", "forget", BAD.uuid, "xid 48", "diag fail", "--reason", "the same")
    assert text == f"{BAD.uuid}: 2 events forgotten\n"
    assert shell.out("gpus", "lemons") == "no lemons and no suspects\n"
    ledger = open_sql_gpu_ledger(str(shell.folder / "state"), LemonPolicy())
    stranger = gpus_of(77)[0].uuid
    ledger.add_events([GpuEvent(id="9", subject=stranger, what="xid 79", at=now(), node="vm-2")])
    ledger.close()
    text = shell.out("gpus", "forget", stranger, "xid 79", "--reason", "no such GPU")
    assert text.endswith("1 event forgotten; nothing else is known of it, so it is gone\n")
    assert len(shell.json("gpus", "list")) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "GPU-ffff"), "knows no GPU 'GPU-ffff'"),
        (("show", "GPU-0000"), "2 GPUs begin with"),
        (("mark", "nonsense", "lemon", "--reason", "x"), "knows no GPU"),
        (("list", "n["), "list of nodes"),
        (("import", "/nowhere"), "/nowhere: No such file"),
        (("mark", "x", "lemon"), "--reason"),
        (("forget", BAD.uuid, "xid 48"), "--reason"),
        (("forget", BAD.uuid, "--reason", "x"), "EVENT"),
        (("forget", BAD.uuid, "xid 79", "--reason", "x"), "has no such events"),
        (("forget", BAD.uuid, "xid 48", "--since", "noon", "--reason", "x"), "noon"),
    ],
)
def test_calls_that_make_no_sense(shell: Shell, words: tuple[str, ...], said: str) -> None:
    """One line, 64, nothing changed."""
    assert said in shell.run("gpus", *words, code=64)


@pytest.mark.long
def test_clusters_share_a_list(shell: Shell, tmp_path: Path) -> None:
    """Signed with a key; what was changed or is not signed is refused; own words stay."""
    key, other = tmp_path / "key", Shell(tmp_path / "other", "b200")
    key.write_text("the key that both teams have\n")
    listed = tmp_path / "list.json"
    listed.write_text(shell.out("gpus", "export", "--key-file", str(key)))
    signed = ("--key-file", str(key))
    other.run("gpus", "import", str(listed), *signed)
    (lemon,) = other.json("gpus", "lemons")
    assert (lemon["gpu"], lemon["marked"]) == (BAD.uuid, True)
    assert "list of h100" in other.json("gpus", "show", BAD.uuid)["reason"]
    other.run("gpus", "mark", BAD.uuid, "good", "--reason", "tested")
    assert "0 GPUs marked" in other.run("gpus", "import", str(listed), *signed)
    assert other.json("gpus", "lemons") == []
    listed.write_text(listed.read_text().replace(BAD.uuid, FINE.uuid))
    assert "was changed" in other.run("gpus", "import", str(listed), *signed, code=65)
    listed.write_text(shell.out("gpus", "export"))
    assert "is not signed" in other.run("gpus", "import", str(listed), *signed, code=65)
    other.run("gpus", "import", str(listed))
    listed.write_text("{}")
    assert "no list of GPUs" in other.run("gpus", "import", str(listed), code=65)
    key.write_text("short\n")
    assert "at least 16" in other.run("gpus", "export", *signed, code=64)


def test_a_bundle_for_the_vendor(shell: Shell, tmp_path: Path) -> None:
    """History and archived diagnostics of the nodes it was in; what could not be had is told."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for node in ("vm-2", "vm-9"):
        name = f"dcgmi-r2-{node}-20261120T211500Z.json"
        (archive / name).write_text(dcgmi_json("4", [Failure(gpu=0)]))
    said = shell.run("gpus", "report", BAD.uuid, "--archive", str(archive))
    path = shell.folder / f"rma-{BAD.serial}.tar.gz"
    assert path.name in said
    assert "nvidia-smi-q.txt: vm-2:" in said
    with tarfile.open(path) as bundle:
        names = {name.partition("/")[2] for name in bundle.getnames()}
        history = bundle.extractfile(f"rma-{BAD.serial}/history.json")
        assert history is not None
        assert json.load(history)["serial"] == BAD.serial
    assert names == {"history.json", "missing.txt", "diag/dcgmi-r2-vm-2-20261120T211500Z.json"}


def test_the_output_of_root_on_a_node_lies_where_only_root_may_write() -> None:
    """In /tmp a user of the node could have laid a link to what root would then overwrite or send."""
    wanted = gpu_bundle._list_bundle_commands(
        LedgerEntry(subject=BAD.uuid, first=now(), seen=now()), bug_report=True
    )
    paths = [word for argv, _ in wanted.values() for word in argv if word.startswith("/")]
    assert paths
    assert all(path.startswith("/run/") for path in paths)


def test_of_the_kernels_log_only_the_drivers_own_records_go_to_the_vendor() -> None:
    """Not what a user's program is called, and nothing else of the log."""
    ours = [
        b"[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout",
        b"[Sun Feb 23 16:24:19 2025] nvidia-nvswitch0: SXid (PCI:0000:85:00.0): 12028, Non-fatal",
        b"[Sun Feb 23 16:24:20 2025] nvidia 0000:9b:00.0: enabling device",
    ]
    others = [
        b"[Sun Feb 23 16:24:18 2025] x[7]: segfault in NVRM: Xid (PCI:0000:9b:00): 79[4+1]",
        b"                           NVRM: Xid (PCI:0000:9b:00): 79, lost",
        b"[Sun Feb 23 16:24:18 2025] CPU: 17 PID: 7 Comm: nvidia-smi Tainted: P",
    ]
    assert gpu_bundle._select_nvidia_lines(b"\n".join([*others, *ours])).splitlines() == ours


def test_a_gpu_without_a_name_is_none(tmp_path: Path) -> None:
    """`gpus mark "$GPU" lemon` in a script that has lost it, while the ledger knows one GPU."""
    shell = Shell(tmp_path / "here")
    gpus = open_sql_gpu_ledger(str(shell.folder / "state"), LemonPolicy())
    gpus.record_sightings([GpuSighting(uuid=BAD.uuid, node="vm-1", slot="0")], now())
    gpus.close()
    assert "knows no GPU ''" in shell.run("gpus", "mark", "", "lemon", "--reason", "x", code=64)
    assert shell.json("gpus", "lemons") == []
    assert shell.out("gpus", "list", "vm-7") == "no GPU was seen there\n"


def test_a_list_says_nothing_of_nodes(shell: Shell, tmp_path: Path) -> None:
    """What is no UUID of a GPU is left: another cluster's list must not condemn a node of ours."""
    listed = json.loads(shell.out("gpus", "export"))
    listed["gpus"][0]["uuid"] = "node:vm-1"
    path = tmp_path / "list.json"
    path.write_text(json.dumps(listed))
    other = Shell(tmp_path / "other")
    assert other.json("gpus", "import", str(path)) == {"marked": [], "left": ["node:vm-1"]}
    assert other.json("gpus", "lemons") == []


def test_a_key_that_is_away_holds_up_no_job(shell: Shell) -> None:
    """A prolog that ends with anything but 0 drains its node: of every job, on every node."""
    done = shell.done("gpus", "check", "--list", "/nowhere", "--key-file", "/nowhere/key")
    assert "cannot tell, so it stops nothing: /nowhere/key: " in done.stderr


def test_looking_makes_no_state(tmp_path: Path) -> None:
    """Nothing to see, and nothing made."""
    shell = Shell(tmp_path / "here")
    assert "no GPU was seen yet" in shell.run("gpus", "list")
    assert shell.json("gpus", "lemons") == []
    assert not (shell.folder / "state").exists()


def test_weights_in_the_file_are_checked(tmp_path: Path) -> None:
    """By line, like everything else in it."""
    shell = Shell(tmp_path / "here")
    shell.config.write_text("lemons: {suspect: 9, lemon: 5}\n")
    assert "sentinel.yaml:1: lemons.suspect" in shell.run("gpus", "list", code=78)


def test_the_archive_of_diagnostics(shell: Shell, tmp_path: Path) -> None:
    """The newest of each node, all of them, one in detail; exit codes as of a check."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for hour, failures in (("20", [Failure(gpu=5)]), ("21", [])):
        path = archive / f"dcgmi-r2-n0-20261120T{hour}1500Z.json"
        path.write_text(dcgmi_json("4", failures))
        Path(f"{path}.rc").write_text("226\n" if failures else "0\n")
    place = ("--archive", str(archive))
    assert [r["outcome"] for r in shell.json("diag", "list", *place)] == ["pass"]
    both = shell.json("diag", "list", "--all", *place, code=2)
    assert [r["outcome"] for r in both] == ["fail", "pass"]
    assert "3 tests passed" in shell.run("diag", "show", "n0", *place)
    shown = shell.run("diag", "show", "dcgmi-r2-n0-20261120T201500Z.json", *place, code=2)
    assert "GPU 5 serial 1650000000005: memory: Memory error" in shown
    assert "no output of n7" in shell.run("diag", "show", "n7", *place, code=64)
    assert "no output of dcgmi diag" in shell.run("diag", "list", "--archive", str(tmp_path / "no"))
    assert "is no list" in shell.run("diag", "here", "--gpus", "a b", code=64)
    assert "is no number of seconds" in shell.run("diag", "here", "--limit", "²", code=64)


def test_a_node_that_was_never_diagnosed_has_not_passed(shell: Shell, tmp_path: Path) -> None:
    """`diag list NODES && …`: 3, and which of them it is; what failed is still 2."""
    archive = tmp_path / "archive"
    archive.mkdir()
    for node, failures in (("n0", []), ("n1", [Failure(gpu=5)])):
        path = archive / f"dcgmi-r2-{node}-20261120T201500Z.json"
        path.write_text(dcgmi_json("4", failures))
        Path(f"{path}.rc").write_text("226\n" if failures else "0\n")
    place = ("--archive", str(archive))
    assert "no output" not in shell.run("diag", "list", "n0", *place)
    done = shell.done("diag", "list", "n[0,7-8]", *place, "--json", code=3)
    assert f"sentinel: no output of n[7-8] in {archive}\n" in done.stderr
    assert [r["node"] for r in json.loads(done.stdout)] == ["n0"]
    shell.run("diag", "list", "n7", *place, code=3)
    shell.run("diag", "list", "n[0-1,7]", *place, code=2)


def test_a_disk_that_does_not_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One time-out in hours of waiting must not lose the verdicts of all nodes."""
    run = DiagRun(node="n0", name="x", level=1, out="/nowhere/x.json", asked=0, limit=1)
    monkeypatch.setenv("PATH", "/nowhere")
    assert diag._find_finished_runs([run]) == []
    assert capsys.readouterr().err.startswith("sentinel: stat /nowhere: ")
