"""File systems that hang, fill up, vanish: told in time, and at no other check's cost."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from tests.lab.fuse import Fuse
from tests.lab.service import Service
from tests.lab.waiting import wait_until
from tests.service.watch import Line, Watch, processes, wait_gone

LIMIT = 8.0
BUSY = 3.0  # seconds that a machine which runs other tests too may take longer
HUNG = """\
checks:
  hung: {{kind: fs, every: 1s, timeout: 8s, paths: ["{point}"]}}
  clock: {{kind: exec, every: 1s, command: [/bin/sh, -c, "date +%s.%N >> {folder}/dates"]}}
  root: {{kind: fs, every: 1s, paths: [/]}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""
PASSES = 100

pytestmark = pytest.mark.root


@pytest.mark.long
def test_a_mount_that_hangs_is_told_in_time_and_delays_no_other_check(
    watch: Watch, fuse: Fuse
) -> None:
    """Critical within one interval and its limit, while a check every second runs every second;
    told to be well again once it answers."""
    service = started(watch, fuse)
    began = time.time()
    fuse.hold("statfs")
    (told,) = watch.wait_told(service, check="hung")
    assert (told["status"], told["subject"]) == ("critical", str(fuse.point))
    assert "no answer within 4s" in told["summary"]
    assert datetime.fromisoformat(told["at"]).timestamp() - began < 1.0 + LIMIT + BUSY
    seen = len(dates(watch))
    service.wait_for(lambda: len(dates(watch)) >= seen + 4, "four more dates")
    assert max(gaps(dates(watch))) < BUSY
    assert watch.told(check="root") == watch.told(check="clock") == []
    fuse.release()
    assert watch.wait_told(service, 2, check="hung")[1]["reason"] == "resolved"


@pytest.mark.long
def test_a_mount_that_hangs_collects_neither_probes_nor_threads(watch: Watch, fuse: Fuse) -> None:
    """A hundred passes of the service and ten of `tick`: one probe hangs, the first one. The
    service ends within its bound all the same; the probe goes when the mount answers."""
    fuse.hold("statfs")
    service = started(watch, fuse)
    watch.wait_told(service, check="hung")
    (probe,), threads = probes(watch, fuse), thread_count(service)
    for _ in range(PASSES):
        one_more_pass(watch, service)
    wait_until(lambda: passes(watch) > PASSES, lambda: f"passes: {passes(watch)}")
    wait_until(lambda: thread_count(service) <= threads, lambda: f"more than {threads} threads")
    assert probes(watch, fuse) == [probe]
    assert service.terminate(BUSY + 10.0) == 0
    for _ in range(10):
        assert watch.say("tick", "--all").returncode == 0
    assert probes(watch, fuse) == [probe]
    assert fuse.withheld() == 1
    assert [line["reason"] for line in watch.told(check="hung")] == ["firing"]
    fuse.release()
    wait_gone(str(watch.folder))
    assert watch.say("tick", "--all").returncode == 0
    assert [line["reason"] for line in watch.told(check="hung")] == ["firing", "resolved"]


def test_a_look_at_a_mount_that_hangs_ends_in_time_and_shows_the_others(
    watch: Watch, fuse: Fuse
) -> None:
    """The one-shot has a limit too, and exits as Nagios has it."""
    fuse.hold("statfs")
    code, (hung, root) = look(watch, fuse.point, "/", "--timeout", "4s")
    assert code == 2
    assert (hung["status"], hung["values"]) == ("critical", {})
    assert root["values"]["used_percent"] > 0


def test_a_file_system_full_by_bytes(watch: Watch, tmp_path: Path) -> None:
    """As a look and as an alert that ends when there is room again."""
    with mounted(tmp_path / "full") as point:
        (point / "ballast").write_bytes(b"x" * 2**20)
        assert_critical(watch, point, "100% used, 0 B free (critical from 95%)")
        (point / "ballast").unlink()
        assert_resolved(watch, point)


def test_a_file_system_full_by_inodes(watch: Watch, tmp_path: Path) -> None:
    """All the space is left and yet no file can be made."""
    with mounted(tmp_path / "full", "size=1m,nr_inodes=10") as point:
        files = [point / str(number) for number in range(9)]
        for file in files:
            file.touch()
        with pytest.raises(OSError, match="No space left"):
            (point / "one more").touch()
        assert_critical(
            watch,
            point,
            "0% used, 1.05 MB free, 100% of inodes used (critical from 95% of inodes)",
        )
        for file in files:
            file.unlink()
        assert_resolved(watch, point)


@pytest.mark.long
def test_a_file_system_that_vanishes_under_a_service(watch: Watch, tmp_path: Path) -> None:
    """The disk below it is not taken for it; mounted again it is well."""
    point = tmp_path / "scratch"
    with mounted(point):
        service = watching(watch, point)
    (told,) = watch.wait_told(service, check="disk")
    assert (told["status"], told["subject"]) == ("critical", str(point))
    assert told["summary"].startswith("is not mounted: what is written there goes to /")
    with mounted(point):
        assert watch.wait_told(service, 2, check="disk")[1]["reason"] == "resolved"
    code, (finding,) = look(watch, point, "--mounted", "true")
    assert (code, finding["values"]) == (2, {})
    assert finding["summary"].startswith("is not mounted: what is written there goes to /")


@pytest.mark.long
def test_a_file_system_that_becomes_read_only_under_a_service(watch: Watch, tmp_path: Path) -> None:
    """As the kernel does after an error of the disk; one look alone can only say how it is."""
    with mounted(tmp_path / "scratch") as point:
        service = watching(watch, point)
        remount(point, "ro")
        (told,) = watch.wait_told(service, check="disk")
        assert (told["status"], told["subject"]) == ("critical", str(point))
        assert told["summary"] == "0% used, 1.05 MB free; has become read-only"
        code, (finding,) = look(watch, point)
        assert (code, finding["values"]["read_only"]) == (0, True)
        assert finding["summary"] == "0% used, 1.05 MB free; read-only"
        remount(point, "rw")
        assert watch.wait_told(service, 2, check="disk")[1]["reason"] == "resolved"


def test_a_file_system_with_a_name_in_no_encoding(watch: Watch, tmp_path: Path) -> None:
    """Its bytes reach the kernel, from the command line and from a variable in the file; what
    comes out is text that any reader takes."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe scratch")
    with mounted(Path(name)) as point:
        (point / "ballast").write_bytes(b"x" * 2**20)
        shown = f"{tmp_path}/\\udcff\\udcfe scratch"
        code, (finding,) = look(watch, name)
        assert (code, finding["subject"], finding["status"]) == (2, shown, "critical")
        watch.env["ODD"] = name
        configure(watch, "$ODD")
        assert watch.say("tick", "--all").returncode == 0
        (told,) = watch.told(check="disk")
        assert (told["subject"], told["status"]) == (shown, "critical")


def test_without_options_every_disk_of_the_machine_is_looked_at(
    watch: Watch, tmp_path: Path
) -> None:
    """Each once, whatever its name and however often it is bound; tmpfs is no disk."""
    image, name = tmp_path / "image", os.fsdecode(os.fsencode(tmp_path) + b"/\xff disk")
    image.write_bytes(b"\0" * 2**22)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with (
        mounted(Path(name), "loop", "ext4", str(image)) as disk,
        mounted(tmp_path / "bound again", "bind", "none", str(disk)),
        mounted(tmp_path / "memory"),
    ):
        _, findings = look(watch)
        subjects = [finding["subject"] for finding in findings]
    mine = [subject for subject in subjects if subject.startswith(str(tmp_path))]
    assert mine == [f"{tmp_path}/\\udcff disk"]
    assert "/" in subjects


def started(watch: Watch, fuse: Fuse) -> Service:
    watch.configure(HUNG, point=fuse.point)
    service = watch.run()
    service.wait_for(lambda: dates(watch), "the first pass")
    return service


def dates(watch: Watch) -> list[float]:
    """When the check `clock` ran."""
    path = watch.folder / "dates"
    return [float(line) for line in path.read_text().splitlines()] if path.exists() else []


def gaps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


def one_more_pass(watch: Watch, service: Service) -> None:
    """All checks run anew after a reload; nobody has to wait for their second."""
    before = len(dates(watch))
    service.signal(signal.SIGHUP)
    service.wait_for(lambda: len(dates(watch)) > before, "one more pass")


def passes(watch: Watch) -> int:
    """Runs of the check `hung` since its alert began."""
    done = watch.say("alerts", "list", "--json")
    (alert,) = [a for a in json.loads(done.stdout) if a["check"] == "hung"]
    return int(alert["runs"])


def probes(watch: Watch, fuse: Fuse) -> list[int]:
    """Processes of this sentinel, whoever is their parent now, that are about the mount."""
    mine = processes(str(watch.folder))
    return [pid for pid, line in mine.items() if f"{fuse.point}/" in line and "stat" in line]


def thread_count(service: Service) -> int:
    return len(list(Path(f"/proc/{service.pid}/task").iterdir()))


@contextmanager
def mounted(
    point: Path, options: str = "size=1m", kind: str = "tmpfs", source: str = "tmpfs"
) -> Iterator[Path]:
    """A file system at that point for as long as the block lasts."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, source, str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def remount(point: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(point)], check=True)


def look(watch: Watch, *words: object) -> tuple[int, list[Line]]:
    """`sentinel check fs` with these paths and options: exit code and findings."""
    options = [w for word in words for w in (["--path", word] if is_path(word) else [word])]
    done = watch.say_bare("check", "fs", *options, "--json")
    findings: list[Line] = json.loads(done.stdout)["findings"]
    return done.returncode, findings


def is_path(word: object) -> bool:
    return str(word).startswith("/")


def configure(watch: Watch, path: object) -> None:
    watch.configure(
        "checks:\n"
        "  disk: {{kind: fs, every: 1s, paths: ['{path}']}}\n"
        "channels:\n"
        "  book: {{kind: file, path: {folder}/book.jsonl}}\n",
        path=path,
    )


def watching(watch: Watch, point: Path) -> Service:
    """A service that has seen the file system well."""
    configure(watch, point)
    service = watch.run()
    service.wait_for(lambda: watch.status()["checks"][0]["status"] == "ok", "a first run")
    return service


def assert_critical(watch: Watch, point: Path, summary: str) -> None:
    code, (finding,) = look(watch, point)
    assert (code, finding["subject"], finding["status"]) == (2, str(point), "critical")
    assert finding["summary"] == summary
    configure(watch, point)
    assert watch.say("tick", "--all").returncode == 0
    (told,) = watch.told(check="disk")
    assert (told["subject"], told["status"]) == (str(point), "critical")
    assert told["summary"] == summary


def assert_resolved(watch: Watch, point: Path) -> None:
    assert watch.say("tick", "--all").returncode == 0
    told = watch.told(check="disk", subject=str(point))
    assert [line["reason"] for line in told] == ["firing", "resolved"]
