"""Rules of pointers: what anything names stays, and where one cannot be followed nothing goes.

The forms are those that trainers write; see the table in docs/clean.md.
"""

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sentinel.checks.clean.check import CleanCheck
from sentinel.clean.gone_marks import LOOKED
from sentinel.clean.mentions import MAX_NAME_BYTES, mentions_in_text
from sentinel.clean.pointers import named_by
from sentinel.clean.rules import RetentionRules
from sentinel.clean.steps import removable_steps
from sentinel.clean.trackers import MAX_POINTER_BYTES, STATE_LONGEST, UnclearPointer
from sentinel.clean.tree import CheckpointRoot, RemovalRefused
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Status
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration
from sentinel.testing import context
from tests.clean.test_held import NOBODY, owned, shared
from tests.clean.test_races import raced, set_aside
from tests.clean.world import RULES, WHOLE, asked, checkpoint, mounted, names, renewed, soon
from tests.lab.flipping import flipping
from tests.lab.fuse import Fuse

__all__ = ["shared"]

NOW = Instant(wall=1_800_000_000_000_000, boot="a", mono=10**12)
TRACKER = "latest_checkpointed_iteration.txt"
STATE = "trainer_state.json"
BEST = '{{\n  "best_metric": 0.5,\n  "best_model_checkpoint": {},\n  "epoch": 1.0\n}}\n'


def may_go(root: Path, rules: RetentionRules = RULES) -> list[str]:
    told, complaint = asked("list", root, rules)
    assert told is not None, complaint
    return [e["name"] for e in told["going"]]


def refused(root: Path, rules: RetentionRules = RULES, **how: tuple[str, ...]) -> str:
    """The complaint, where neither a list nor a removal came of it."""
    renewed(root)
    before = names(root)
    told, complaint = asked("list", root, rules, **how)
    assert told is None
    told, again = asked("remove", root, rules, names=("step1", "step2", "step3"), **how)
    assert (told, names(root)) == (None, before)
    assert again == complaint
    last: str = complaint.rpartition("\n")[2]
    assert "; nothing is removed until it can be followed" in last
    return last


def test_what_may_go_is_weighed_by_its_blocks(root: Path) -> None:
    """Directories count as well; a byte takes a whole block."""
    told, complaint = asked("list", root, RULES)
    assert told, complaint
    for entry in told["going"]:
        folder = root / entry["name"]
        blocks = sum(os.lstat(path).st_blocks for path in (folder, *folder.rglob("*")))
        assert entry["bytes"] == 512 * blocks > 0


def test_without_pointers_three_may_go(root: Path) -> None:
    """What all others here are compared with."""
    assert may_go(root) == ["step1", "step2", "step3"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("latest", "step2"),
        ("latest", "step2\n"),
        ("latest", "step2/"),
        ("latest", "./step2"),
        ("latest", "step2/weights"),
        ("latest", "step4/../step2"),
        ("latest", "ROOT/step2"),
        ("latest", "ROOT/step2/inner/more"),
        ("latest", "BESIDE/alias/step2"),
        ("latest", "s3://bucket/run/step2"),
        ("latest", "gs://bucket/run/step%32/?generation=7#top"),
        ("latest", "/where/the/job/ran/step2"),
        ("latest.json", '{"path": "step2", "loss": 0.1}'),
        ("latest_step.json", '{"step": 2, "lr": 1e-5, "ok": true}'),
        ("latest.yaml", "run: a\nfrom: step2\n"),
        ("latest.log", "step2"),
        ("latest_universal", "step2"),
        ("Latest", "step2"),
        (".latest", "step2"),
        (TRACKER, "2"),
        (TRACKER, "0000002\n"),
        (STATE, BEST.format('"ROOT/step2"')),
        (STATE, BEST.format('"./step2"')),
        (STATE, BEST.format('"ROOT/step2/inner"')),
        (STATE, BEST.format('"some/where/else/step2/"')),
        (TRACKER, f"{'step2':<{MAX_POINTER_BYTES}}"),
    ],
)
def test_what_a_tracker_names_stays(root: Path, name: str, text: str) -> None:
    """In whatever way it says so: after a rollback it names an old one on purpose."""
    (root.parent / "alias").symlink_to(root)
    (root / name).write_text(text.replace("ROOT", str(root)).replace("BESIDE", str(root.parent)))
    assert may_go(root) == ["step1", "step3"]


@pytest.mark.parametrize(
    ("name", "leads"),
    [
        ("latest", "step2"),
        ("anything", "./step2/"),
        ("last.ckpt", "step2/weights"),
        ("absolute", "ROOT/step2"),
        ("aliased", "AWAY/alias/step2"),
        ("chained", "AWAY/chain"),
        ("latest", "AWAY/tracker"),
        (".hidden", "step2"),
    ],
)
def test_what_a_link_leads_to_stays(root: Path, name: str, leads: str) -> None:
    """Over other links, over another name of the directory, into it, and to a tracker."""
    beside = root.parent
    away = beside / "away"
    away.mkdir()
    (away / "alias").symlink_to(root)
    (away / "chain").symlink_to("alias/step2")
    (away / "tracker").write_text("step2\n")
    (root / name).symlink_to(leads.replace("ROOT", str(root)).replace("AWAY", str(away)))
    assert may_go(root) == ["step1", "step3"]


@pytest.mark.root
def test_a_link_to_a_file_too_long_for_a_tracker_names_only_what_it_leads_to(root: Path) -> None:
    """And however often it is looked at, no file stays open."""
    (root.parent / "far").mkdir()
    (root.parent / "far" / "long").write_text(f"{'step2':<{2 * MAX_POINTER_BYTES}}")
    (root / "latest").symlink_to("../far/long")
    assert may_go(root) == ["step1", "step2", "step3"]
    before = len(os.listdir("/proc/self/fd"))
    assert [named_by(str(root / "latest"), str(root)).text.names for _ in range(3)] == [
        {"far", "long"}
    ] * 3
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.root
@pytest.mark.parametrize(
    ("of", "then"), [("", "step2"), ("step2", "weights"), ("step2/inner", "more")]
)
def test_a_bind_mount_is_another_name_of_the_same(root: Path, of: str, then: str) -> None:
    """Of the root, of a checkpoint, of what lies in one: no text tells that."""
    alias = root.parent / "bound"
    alias.mkdir()
    with mounted(alias, "--bind", str(root / of)):
        (root / "latest").write_text(str(alias / then))
        assert may_go(root) == ["step1", "step3"]
        (root / "latest").unlink()
        (root / "best").symlink_to(alias / then)
        assert may_go(root) == ["step1", "step3"]


@pytest.mark.parametrize("form", ["iter_{:07d}", "global_step_{}", "epoch=1-step={}"])
def test_a_number_names_whatever_has_it(tmp_path: Path, form: str) -> None:
    """With and without a group in `match` (Megatron-LM, verl)."""
    root = tmp_path / "ckpt"
    for number in range(121, 126):
        checkpoint(root, number).rename(root / form.format(number))
    (root / TRACKER).write_text("122")
    for match in (form.partition("{")[0] + r"\d+", form.partition("{")[0] + r"(\d+)"):
        left = may_go(root, RetentionRules(match, complete=WHOLE))
        assert left == [form.format(121), form.format(123)]


def test_release_is_a_name(root: Path) -> None:
    """Megatron-LM's word for a converted model."""
    (root / "step2").rename(root / "release")
    (root / TRACKER).write_text("release\n")
    renewed(root)
    assert may_go(root, RetentionRules(r"release|step\d", complete=WHOLE)) == ["step1", "step3"]


def test_what_takes_the_place_of_a_tracker_meanwhile_is_not_opened(root: Path) -> None:
    """A link to /dev/watchdog would reboot the host."""
    tracker = root.parent / "tracker"
    tracker.write_text("step-1")
    with flipping(root / "latest", tracker) as opened:
        for _ in range(200):
            with suppress(UnclearPointer):
                CheckpointRoot(str(root)).find_steps(RULES)
        assert not opened


def test_a_tracker_deep_in_one_run_keeps_what_it_names_of_another(root: Path) -> None:
    """A run that went on from a checkpoint of an earlier one names it from its own folders."""
    deep = root / "step5/run/checkpoints"
    deep.mkdir(parents=True)
    (deep / "latest").write_text(f"{root}/step1/weights")
    assert may_go(root) == ["step2", "step3"]


def test_a_pointer_beside_the_root_counts(root: Path) -> None:
    """`run/latest` leads to `run/ckpt/step2`; what else lies there is nobody's business."""
    (root.parent / "current").symlink_to("ckpt/step2")
    (root.parent / "dangling").symlink_to("nowhere")
    os.mkfifo(root.parent / "latest_fifo")
    (root.parent / "latest").write_text("ckpt/step1/weights")
    assert may_go(root) == ["step3"]


def test_pointers_elsewhere_count_when_they_are_named(root: Path, tmp_path: Path) -> None:
    """A link, a tracker that counts from the root, one that counts from where it lies; one that
    is not there stops everything."""
    away = tmp_path / "a" / "way"
    away.mkdir(parents=True)
    (away / "link").symlink_to(root / "step1")
    (away / "root").symlink_to(root)
    (away / "named").write_text("step2")
    (away / "latest").write_text("root/step3")
    found = {"link": ["step2", "step3"], "named": ["step1", "step3"], "latest": ["step1", "step2"]}
    for name, left in found.items():
        assert (
            may_go(root, RetentionRules(r"step(\d+)", complete=WHOLE, pointers=[str(away / name)]))
            == left
        )
    gone = str(away / "gone")
    assert refused(root, RetentionRules(r"step(\d+)", complete=WHOLE, pointers=[gone])).startswith(
        f"{gone}: "
    )


@pytest.mark.parametrize("name", ["last_checkpoint", "checkpoint", "resume.yaml", "BEST"])
@pytest.mark.parametrize(
    "text",
    ["step1", 'model_checkpoint_path: "step1"\n', "{from: /work/a/step1/weights, to: step77}"],
)
def test_what_a_small_file_mentions_stays(root: Path, name: str, text: str) -> None:
    """In whatever form; what it mentions need not be there."""
    (root / name).write_text(text)
    assert may_go(root) == ["step2", "step3"]


@pytest.mark.parametrize("unit", ["a_1-b.", "1."])
def test_a_word_longer_than_any_name_counts_by_its_beginning(unit: str) -> None:
    """Every beginning of a long one was kept: 64 KiB of it took seconds, and as much memory as its square."""
    found = mentions_in_text(unit * 20_000, ())
    assert len(found.names | found.prefixes) <= 2 * MAX_NAME_BYTES
    assert found.covers_name((unit * 100)[:MAX_NAME_BYTES])


def test_a_number_of_20_000_digits_is_no_error() -> None:
    """Python refuses to read one of more than 4,300."""
    assert mentions_in_text("7" * 20_000, ()).numbers == {int("7" * MAX_NAME_BYTES)}


def test_what_is_no_text_mentions_nothing(root: Path) -> None:
    """A checkpoint itself, a directory, a FIFO: none of them is read, and none stops anything."""
    (root / "last_checkpoint").write_bytes(b"step1 \0" * MAX_POINTER_BYTES)
    (root / "checkpoint").mkdir()
    os.mkfifo(root / "current")
    assert may_go(root) == ["step1", "step2", "step3"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bestModel.txt", b"step1"),
        ("lowest_val_loss.json", b'{"step": 1, "loss": 2.5}'),
        ("best_f1.txt", b"step1"),
        ("checkpoints.json", b'{"kept": ["/work/a/step1"]}'),
        ("min_loss.txt", b"1"),
        ("last_ckpt.txt", b"iteration 1"),
        ("best.txt", b"ckpt-1"),
        ("resume.toml", b'path = "step1"'),
        ("current_step", b"step=1, loss=0.3"),
        ("best_model_path.txt", b"https://h/run/step1.tar?sig=a%2Fb"),
        ("optimal.txt", b"the best is step1"),
    ],
)
def test_a_file_in_other_words_keeps_what_it_mentions(
    root: Path, name: str, content: bytes
) -> None:
    """By name, by number, in JSON, behind a URL."""
    (root / name).write_bytes(content)
    assert may_go(root) == ["step2", "step3"]


WEIGHTS = b"\x93" + b"\0" * 2 * MAX_POINTER_BYTES


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latest.safetensors", (40).to_bytes(8, "little") + b'{"a": 1}' + b" " * 60),
        ("latest.bin", b"\x80\x02" + WEIGHTS),
        ("latest.h5", WEIGHTS),
        ("best.onnx", WEIGHTS),
        ("latest.log", b"epoch 1\nepoch 2\n"),
        ("latest.log", b"x\n" * MAX_POINTER_BYTES),
        ("latest_metrics.jsonl", b'{"step": 1}\n{"step": 2}\n'),
        ("latest_metrics.json", b'{"loss": 1.5}'),
        ("latest.lock", b""),
        (".gitkeep", b""),
    ],
)
def test_what_is_recognised_as_no_pointer_stops_nothing(
    root: Path, name: str, content: bytes
) -> None:
    """Weights, logs, JSON and flags."""
    (root / name).write_bytes(content)
    assert may_go(root) == ["step1", "step2", "step3"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("best_step.txt", b""),
        ("best_step.pkl", b"\x80\x04K\x01."),
        ("last_checkpoint", b"\0\1\2"),
        ("latest_hparams.yaml", b"lr: 0.1"),
    ],
)
def test_what_is_named_like_a_pointer_and_not_understood_stops_everything(
    root: Path, name: str, content: bytes
) -> None:
    """It may name any of them. The message says how to name it as none."""
    (root / name).write_bytes(content)
    assert refused(root).endswith(f"if it points to no checkpoint, write `ignore: [{name}]`")
    assert may_go(root, RetentionRules(r"step(\d+)", complete=WHOLE, ignore=[name])) == [
        "step1", "step2", "step3",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["mnt/run/step2/w", "old/step_2", "gone/2", "step2\nstep9"])
@pytest.mark.parametrize("link", [False, True])
def test_the_advice_to_ignore_a_pointer_removes_nothing_that_it_names(
    root: Path, text: str, link: bool
) -> None:
    """It cannot be followed from here, and yet says a name or a number."""
    if link:
        (root / "latest").symlink_to(text)
    else:
        (root / "latest").write_text(text)
    ignoring = RetentionRules(r"step(\d+)", complete=WHOLE, ignore=["latest"])
    assert "step2" not in may_go(root, ignoring)
    (root / "latest").unlink()
    assert "step2" in may_go(root, ignoring)


def _fifo(root: Path) -> None:
    os.mkfifo(root / "latest")


def _socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "latest"))


def _leads(to: str) -> Callable[[Path], None]:
    return lambda root: (root / "latest").symlink_to(to)


def _holds(text: bytes) -> Callable[[Path], None]:
    return lambda root: void((root / "latest").write_bytes(text))


def void(_: object) -> None:
    """A statement of what is worth something."""


def _fifo_behind_a_link(root: Path) -> None:
    os.mkfifo(root.parent / "pipe")
    (root / "latest").symlink_to("../pipe")


UNCLEAR = {
    "fifo": _fifo,
    "socket": _socket,
    "fifo behind a link": _fifo_behind_a_link,
    "dangling": _leads("step9"),
    "loop": _leads("latest"),
    "to the root": _leads("."),
    "above it": _leads(".."),
    "empty": _holds(b""),
    "blank": _holds(b" \n"),
    "names nothing": _holds(b"step9"),
    "is no directory": _holds(b"step1/weights/x"),
    "number of none": _holds(b"9"),
    "the root": _holds(b"."),
    "above": _holds(b"../../"),
    "binary": _holds(b"\xff\xfe\0step1"),
    "two lines": _holds(b"step1\nstep2"),
    "too long": _holds(b"step1/" + b"/" * MAX_POINTER_BYTES),
    "a name too long": _holds(b"x" * 300),
    "elsewhere": _holds(b"s3://bucket/step9"),
    "half JSON": _holds(b'{"step": 1'),
}


@pytest.mark.parametrize("make", UNCLEAR.values(), ids=UNCLEAR)
def test_a_pointer_that_cannot_be_followed_stops_everything(
    root: Path, make: Callable[[Path], None]
) -> None:
    """Nobody knows what it names; it is told by its path."""
    make(root)
    assert refused(root).startswith(f"{root}/latest: ")


@pytest.mark.parametrize("name", ["any", "last.ckpt"])
def test_any_link_that_leads_nowhere_stops_everything(root: Path, name: str) -> None:
    """Not only one that is called latest."""
    (root / name).symlink_to("gone")
    assert refused(root) == (
        f"{root}/{name}: is a link that leads nowhere: No such file or directory; "
        "nothing is removed until it can be followed; "
        f"if it points to no checkpoint, write `ignore: [{name}]`"
    )


@pytest.mark.parametrize(
    "text", ["", '{"best_model_checkpoint": "\\q"}', "[]", BEST.format('"step9"'), "{" * 2**21]
)
def test_a_trainers_state_that_says_nothing_stops_everything(root: Path, text: str) -> None:
    """In the root it is that of the whole run."""
    (root / STATE).write_text(text)
    assert refused(root).startswith(f"{root}/{STATE}: ")


def test_a_best_step_of_5_000_digits_is_none(root: Path) -> None:
    """Python reads no number of more than 4,300. Beside it, one that a trainer writes counts."""
    for digits, going in (("9" * 5000, ["step1", "step2", "step3"]), ("2", ["step1", "step3"])):
        (root / STATE).write_text(
            f'{{"best_global_step": {digits}, "best_model_checkpoint": null}}'
        )
        renewed(root)
        assert may_go(root) == going


def test_a_small_file_that_names_everything_takes_no_more_memory_than_is_allowed(
    root: Path,
) -> None:
    """Each beginning of a word is a name that it may mean: these are 100 MB."""
    unit = "".join(f"{letter}{digit}" for letter in "abcdefghijklm" for digit in range(10))
    starts = ("".join(f"{chr(97 + int(d))}{d}" for d in f"{n:04d}") for n in range(2000))
    lines = [start + unit for start in starts]
    (root / "best.txt").write_text("\n".join([*lines, "step2"]))
    renewed(root)
    assert may_go(root) == ["step1", "step3"]
    program = "import sys\nfrom sentinel.clean import program\nprogram.MEMORY_BYTES = 2**27\nsys.exit(program.main())"
    argv = [sys.executable, "-c", program, "list", str(root), RULES.rules_text()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("it takes more memory than is allowed\n")


@pytest.mark.parametrize("swapped", [True, False])
def test_what_takes_the_place_of_a_links_target_is_not_read(root: Path, swapped: bool) -> None:
    """Whether it may be read was decided for the file that was there before. One that stays is read."""
    (root.parent / "before").write_text("step1\n")
    (root.parent / "private").write_text("step2\n")
    (root / "latest").symlink_to("../before")
    swap = "os.unlink('latest'); os.symlink('../private', 'latest')" if swapped else "None"
    act = "sorted(root.find_pointed(rules).text.names)"
    said = raced(root, "open", "/latest", swap, act=act)
    assert ("step2" not in said and "was replaced while it was read" in said) or not swapped
    assert swapped or "step1" in said


def test_a_state_without_a_best_one_names_nothing(root: Path) -> None:
    """And one whose history of losses is long is read as far as it counts."""
    for none in (BEST.format("null"), '{"global_step": 5}'):
        (root / STATE).write_text(none)
        assert may_go(root) == ["step1", "step2", "step3"]
    (root / STATE).write_text(BEST.format('"step2"') + " " * 2 * STATE_LONGEST)
    assert may_go(root) == ["step1", "step3"]


@pytest.mark.parametrize("mode", ["file", "link"])
def test_a_pointer_that_may_not_be_read_stops_everything(shared: Path, mode: str) -> None:
    """By its mode, or by that of a directory on its way."""
    closed = shared.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "step1").mkdir()
    if mode == "file":
        (shared / "latest").write_text("step1")
        (shared / "latest").chmod(0)
    else:
        (shared / "latest").symlink_to("../closed/step1")
    for number in (4, 5):
        owned(shared / f"step{number}", 65534)
    told, complaint = asked("list", shared, who=NOBODY)
    assert told is None
    assert f"\n{shared}/latest: " in complaint
    assert "Permission denied; nothing is removed" in complaint


def test_a_pointer_that_hangs_is_named_and_nothing_goes(root: Path, fuse: Fuse) -> None:
    """The link leads to a file system that does not answer."""
    fuse.hold("getattr", "lookup")
    (root / "latest").symlink_to(fuse.point / "step1")
    check = CleanCheck(
        root=FilePath(root), match=re.compile(r"step(\d+)"), older_than=Duration(0.001), remove=True
    )
    report = check.run(context(now=NOW, limit=5.0))
    assert (report.status, report.requests) == (Status.UNKNOWN, ())
    assert report.findings[0].summary.endswith(f"{root}/latest does not answer")
    fuse.release()


def test_a_lease_on_what_a_link_names_keeps_nobody_waiting(root: Path) -> None:
    """Who opens a leased file waits for 45 s (/proc/sys/fs/lease-break-time of fcntl(2)); not even one."""
    (root / "told.txt").write_text("step1\n")
    (root / "latest").symlink_to("told.txt")
    assert asked("list", root)[0] is not None  # the control
    leased = os.open(root / "told.txt", os.O_RDWR)
    fcntl.fcntl(leased, fcntl.F_SETSIG, signal.SIGURG)  # which is ignored, unlike SIGIO
    fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    told, complaint = asked("list", root)
    os.close(leased)
    assert told is None
    assert f"{root}/latest: cannot be read: Resource temporarily unavailable" in complaint


def test_the_check_says_which_pointer_it_is(root: Path) -> None:
    """It is blind then, and asks for nothing."""
    os.mkfifo(root / "latest")
    check = CleanCheck(
        root=FilePath(root), match=re.compile(r"step(\d+)"), older_than=Duration(0.001), remove=True
    )
    with pytest.raises(CannotTell) as told:
        check.run(context(now=NOW, limit=30.0))
    assert str(told.value) == (
        f"{root}/latest: is neither a file nor a link; nothing is removed until it can be followed; "
        "if it points to no checkpoint, write `ignore: [latest]`"
    )


def test_a_checkpoint_that_is_called_latest_is_no_pointer(root: Path) -> None:
    """A directory, and a file of torch.save(): they name nothing else, and stay themselves."""
    (root / "latest").mkdir()
    (root / "latest.pt").write_bytes(b"PK\x03\x04" + b"\0" * 2 * MAX_POINTER_BYTES)
    assert may_go(root) == ["step1", "step2", "step3"]


@pytest.mark.parametrize("name", ["last.ckpt", "step=9-last", "checkpoint_best.pt", "last-v9.ckpt"])
def test_what_is_resumed_by_its_own_name_stays(root: Path, name: str) -> None:
    """However old it is; a word that only holds it is none."""
    words = [f"lasting{n}" for n in (11, 12, 13)] + [f"bestiary{n}" for n in (21, 22, 23)]
    for other in (name, *words):
        (root / other).write_text("x" * 100)
    renewed(root)
    left = may_go(
        root,
        RetentionRules(r"step\d|last.*|bestiary\d+|step=9-last|checkpoint_best\.pt", complete="*"),
    )
    assert sorted(left) == ["bestiary21", "lasting11", "step1", "step2", "step3"]


@pytest.mark.parametrize("marker", ["step5-unfinished", "step5.orbax-checkpoint-tmp-17"])
def test_what_is_not_finished_is_not_complete(root: Path, marker: str) -> None:
    """NeMo's marker beside it; Orbax's name of what is being written."""
    if "orbax" in marker:
        (root / "step5").rename(root / marker)
    else:
        (root / marker).touch()
    assert may_go(root, RetentionRules(r"step(\d+)(\.orbax.*)?", complete=WHOLE)) == [
        "step1",
        "step2",
    ]


def test_what_a_checkpoint_names_stays(root: Path) -> None:
    """The best one of its trainer's state, and what a link in it leads to; itself it does not
    hold, nor what is gone."""
    for number in range(1, 6):
        (root / f"step{number}" / STATE).write_text(BEST.format(f'"{root}/step{number}"'))
    assert may_go(root) == ["step1", "step2", "step3"]
    (root / "step5" / STATE).write_text(BEST.format('"out/step2"'))
    (root / "step4" / STATE).write_text(BEST.format('"out/step0"'))
    assert may_go(root) == ["step1", "step3"]
    (root / "step4" / "inner" / "base").symlink_to("../../step3/weights")
    (root / "step4" / "inner" / "gone").symlink_to("../../step0/weights")
    (root / "step1" / "own").symlink_to("weights")
    renewed(root)
    assert may_go(root) == ["step1"]


def test_a_trainers_state_that_cannot_be_read_stops_everything(root: Path) -> None:
    """What its checkpoint needs is not known."""
    os.mkfifo(root / "step5" / STATE)
    assert refused(root).startswith(f"{root}/step5/{STATE}: ")


def test_a_file_system_that_is_mounted_twice_has_two_devices(root: Path) -> None:
    """There the name alone is left to compare, and spares more: a link or a tracker to what lies
    elsewhere under the name of one."""
    (root.parent / "other").mkdir()
    checkpoint(root.parent / "other", 2)
    (root / "latest").write_text(f"{root.parent}/other/step2")
    assert may_go(root) == ["step1", "step3"]
    (root / "latest").unlink()
    (root / "best").symlink_to("../other/step2")
    assert may_go(root) == ["step1", "step3"]


def test_what_is_set_aside_is_no_pointer(root: Path) -> None:
    """A link that took a checkpoint's place and could not be put back."""
    (root / f"{LOOKED}00000000-step0").symlink_to("gone")
    assert may_go(root) == ["step1", "step2", "step3"]


def test_a_link_inside_that_nobody_may_follow_stops_everything(shared: Path) -> None:
    """It may need any of the others."""
    closed = shared.parent / "closed"
    closed.mkdir(mode=0o700)
    (closed / "step1").mkdir()
    (shared / "step5" / "base").symlink_to("../../closed/step1")
    told, complaint = asked("list", shared, who=NOBODY)
    assert told is None
    assert "base: cannot be followed: Permission denied; nothing is removed" in complaint


def test_a_pointer_that_breaks_during_a_request_keeps_the_rest(root: Path) -> None:
    """Each of the others is told with the reason."""
    act = "__import__('sentinel.clean.program').clean.program.remove_names(root, rules, ['step1', 'step2'])"
    said = raced(root, "os.rename", "step1", "os.mkfifo('latest')", act=act)
    assert "'removed': 0" in said
    assert said.count("latest: is neither a file nor a link") == 2
    assert {"step1", "step2"} <= set(names(root))
    assert set_aside(root) == []


def test_a_number_that_something_else_has_too_is_obeyed(root: Path) -> None:
    """The tracker still leads somewhere once the checkpoint is renamed."""
    (root / "events.1.log").write_text("x")
    said = raced(root, "os.rename", "step1", "open('latest', 'w').write('1')")
    assert "is named by a pointer now" in said
    assert (root / "step1" / "weights").exists()


@pytest.mark.parametrize("text", ["step1", "step1/weights", "1", "-> step1"])
def test_a_pointer_that_is_set_back_right_before_the_change_is_obeyed(
    root: Path, text: str
) -> None:
    """Between the last look at it and its renaming: it is put back."""
    leads = text.removeprefix("-> ")
    move = (
        f"os.symlink({leads!r}, 'latest')"
        if "->" in text
        else f"open('latest', 'w').write({text!r})"
    )
    said = raced(root, "os.rename", "step1", move)
    assert "was named meanwhile" in said
    assert (root / "step1" / "weights").exists()
    assert set_aside(root) == []


def test_pointers_are_followed_anew_before_each_removal(root: Path) -> None:
    """One that was set back since the look is obeyed; one that cannot be followed stops the rest."""
    renewed(root)
    opened = CheckpointRoot(str(root))
    one, two, three = removable_steps(opened.find_steps(RULES), RULES, time.time())
    (root / "latest").write_text("step2")
    opened.remove_step(one, RULES, soon())
    with pytest.raises(RemovalRefused, match="is named by a pointer now"):
        opened.remove_step(two, RULES, soon())
    (root / "latest").unlink()
    os.mkfifo(root / "latest")
    with pytest.raises(UnclearPointer):
        opened.remove_step(three, RULES, soon())
    assert names(root) == ["latest", "step2", "step3", "step4", "step5"]


def test_the_settings_name_pointers_by_whole_paths(root: Path) -> None:
    """Relative to what, nobody would know."""
    with pytest.raises(Invalid) as told:
        CleanCheck(
            root=FilePath(root),
            match=re.compile("x"),
            older_than=Duration(1),
            pointers=[FilePath("relative")],
        )
    assert told.value.path == ("pointers", 0)
