"""This machine's own GPUs: without any way to nodes."""

import json
import os
from pathlib import Path

import pytest

from sentinel.checks.gpu import GpuCheck, local
from sentinel.core.model import Status
from sentinel.core.values import Duration
from sentinel.gpu import xid
from sentinel.nodes.probe import Cursor, KernelLog, Unread
from sentinel.testing import context
from tests.lab.gpus import gpus_of, nvidia_smi


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for nvidia-smi, first in PATH; and a kernel that said nothing."""
    (tmp_path / "dmesg").write_text("#!/bin/sh\nprintf '[    1.5] hello\\n'\n")
    (tmp_path / "dmesg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "nvidia-smi"


def put(smi: Path, text: str, code: int = 0) -> None:
    smi.with_suffix(".out").write_text(text)
    smi.write_text(f'#!/bin/sh\ncat "{smi.with_suffix(".out")}"\nexit {code}\n')
    smi.chmod(0o755)


def test_its_gpus_without_any_settings(smi: Path) -> None:
    """`sentinel check gpu` on a node."""
    put(smi, nvidia_smi(gpus_of(0)))
    report = GpuCheck().run(context(limit=20.0))
    assert [f.status for f in report.findings] == [Status.OK] * 8


def test_fewer_than_there_have_to_be(smi: Path) -> None:
    """By `expect`; nobody has seen the other."""
    put(smi, nvidia_smi(gpus_of(0, 7)))
    report = GpuCheck(expect=8).run(context(limit=20.0))
    (bad,) = [f for f in report.findings if f.status.bad]
    assert (bad.subject, bad.summary[:22]) == (local.name(), "1 missing: 7 of 8 GPUs")


def test_a_driver_without_devices_is_bad(smi: Path) -> None:
    """nvidia-smi answers: none."""
    put(smi, "No devices were found\n", 6)
    (found,) = GpuCheck().run(context(limit=20.0)).findings
    assert found.status is Status.CRITICAL


def test_a_whole_page_is_judged_whatever_the_exit_code(smi: Path) -> None:
    """14: the infoROM of a GPU is corrupted, and nvidia-smi does not say whose."""
    put(smi, nvidia_smi(gpus_of(0)), 14)
    found = GpuCheck().run(context(limit=20.0)).findings
    bad = [(f.subject, f.status, f.summary) for f in found if f.status is not Status.OK]
    words = "nvidia-smi ended with exit code 14: the infoROM of a GPU is corrupted"
    assert bad == [(local.name(), Status.WARNING, words)]
    assert len(found) == 9
    put(smi, nvidia_smi(gpus_of(0))[:-30], 14)
    assert [f.status for f in GpuCheck().run(context(limit=20.0)).findings] == [Status.UNKNOWN]


@pytest.mark.parametrize("said", ["hello", ""])
def test_a_kernel_log_without_times_is_not_believed(smi: Path, said: str) -> None:
    """printk.time is off, or somebody has cleared it: an Xid would not be seen in it."""
    put(smi, nvidia_smi(gpus_of(0)))
    (smi.parent / "dmesg").write_text(f"#!/bin/sh\necho '{said}'\n")
    assert isinstance(local.here(10.0, None).kernel, Unread)


def test_without_nvidia_smi_gpus_are_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Never fine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local.here(10.0, None).gpus == Unread(kind="missing", why="nvidia-smi is not installed")


def test_a_gpu_that_falls_off_the_bus_while_the_driver_is_loaded(smi: Path) -> None:
    """One record of three lines, of which dmesg stamps the first; the others are well."""
    put(smi, nvidia_smi(gpus_of(0, 7)))
    (smi.parent / "dmesg").write_text(
        "#!/bin/sh\ncat <<'E'\n"
        "[    1.500000] NVRM: The NVIDIA GPU 0000:50:00.0\n"
        "NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.\n"
        "[    1.600000] NVRM: GPU 0000:50:00.0: RmInitAdapter failed! (0x22:0x65:884)\nE\n"
    )
    first = local.here(10.0, None)
    assert isinstance(first.kernel, KernelLog)
    assert [line.at for line in first.kernel.lines] == [1.5, 1.6]
    boot = first.kernel.cursor.boot
    again = local.here(10.0, Cursor(boot=boot, source="dmesg", position=1_500_000))
    assert isinstance(again.kernel, KernelLog)
    assert len(again.kernel.lines) == 1
    report = GpuCheck(remember=Duration(10**9)).run(context(limit=20.0))
    told = " ".join(f"{f.summary} {f.details}" for f in report.findings if f.status.bad)
    assert "Xid 79" in told
    assert "init failed" in told


FALLEN = "NVRM: Xid (PCI:0000:50:00): 79, GPU has fallen off the bus."


def kernel_of(smi: Path, script: str) -> KernelLog | Unread:
    """The log by a stand-in for dmesg, whose options are in `$*`."""
    (smi.parent / "dmesg").write_text(f"#!/bin/sh\n{script}\n")
    if not (smi.parent / "dd").exists():  # A test need not have the log of its machine.
        (smi.parent / "dd").write_text("#!/bin/sh\nexit 1\n")
        (smi.parent / "dd").chmod(0o755)
    found = local.log(10.0, None).kernel
    assert isinstance(found, (KernelLog, Unread))
    return found


def test_dmesgs_json_is_asked_first(smi: Path) -> None:
    """It tells the facility, and keeps a record whole."""
    records = [
        {"fac": "kern", "pri": "warn", "time": 1.5, "msg": f"overlayfs: x\n{FALLEN}"},
        {"fac": "user", "pri": "err", "time": 1.6, "msg": FALLEN},
        {"fac": "kern", "pri": "err", "time": 1.7, "msg": FALLEN},
    ]
    text = json.dumps({"dmesg": records})
    log = kernel_of(smi, f"[ \"$*\" = '-x --json' ] || exit 1\ncat <<'E'\n{text}\nE")
    assert isinstance(log, KernelLog)
    assert [(line.at, line.level) for line in log.lines] == [(1.5, 4), (1.7, 3)]
    assert [event.line for event in xid.read(line.text for line in log.lines).events] == [1]


def test_dmesgs_json_without_kmsg_has_a_record_for_each_line(smi: Path) -> None:
    """Where /dev/kmsg cannot be read dmesg takes the lines of syslog(2). Two of a driver in one
    microsecond are two."""
    said = [(1.5, "overlayfs: x"), (1.5, FALLEN), (1.6, FALLEN), (1.6, FALLEN)]
    records = [{"fac": "kern", "pri": "warn", "time": at, "msg": text} for at, text in said]
    log = kernel_of(smi, f"cat <<'E'\n{json.dumps({'dmesg': records})}\nE")
    assert isinstance(log, KernelLog)
    assert [line.text for line in log.lines] == [f"overlayfs: x\n{FALLEN}", FALLEN, FALLEN]


def test_an_older_dmesg_is_no_judge_of_newlines(smi: Path) -> None:
    """Before util-linux 2.38: then /dev/kmsg itself is read, which is exact; where it cannot be read,
    syslog(2)."""
    text = f"<6>[    1.5] x[7]: segfault in\n<6>[    1.5] {FALLEN}[1+1]\n<3>[    1.6] {FALLEN}\n"
    (smi.parent / "dd").write_text(
        "#!/bin/sh\ncat <<'E'\n"
        f"4,7,1500000,-;overlayfs: x\\x0akern  :err   : [ 1.5] {FALLEN}\n"
        f"12,8,1600000,-;{FALLEN}\n SUBSYSTEM=x\n"
        f"3,9,1700000,-;{FALLEN}\nE\n"
        "echo \"dd: error reading '/dev/kmsg': Resource temporarily unavailable\" >&2; exit 1\n"
    )
    (smi.parent / "dd").chmod(0o755)
    script = f"[ \"$*\" = '-S -r' ] || exit 1\nprintf '%s' '{text}'"
    log = kernel_of(smi, script)
    assert isinstance(log, KernelLog)
    assert (log.source, [line.at for line in log.lines]) == ("kmsg", [1.5, 1.7])
    cursor = Cursor(boot=log.cursor.boot, source="kmsg", position=7)
    again = local.log(10.0, cursor).kernel
    assert isinstance(again, KernelLog)
    assert ([line.at for line in again.lines], again.lost) == ([1.7], 0)
    (smi.parent / "dd").write_text("#!/bin/sh\nexit 1\n")
    log = kernel_of(smi, script)
    assert isinstance(log, KernelLog)
    assert (log.source, [(line.at, line.level) for line in log.lines]) == (
        "dmesg",
        [(1.5, 6), (1.6, 3)],
    )
    assert [e.line for e in xid.read(line.text for line in log.lines).events] == [1]
    forged = f"[    1.5] x[7]: segfault in \n[    1.6] {FALLEN}"
    found = kernel_of(smi, f"case $* in *--json*) exit 1;; esac\nprintf '%s\\n' '{forged}'")
    assert isinstance(found, Unread)
    assert found.kind == "garbage"


def test_a_site_whose_dmesg_takes_no_options_is_read_without_levels(smi: Path) -> None:
    """It is new, since it did not refuse --json, and indents later lines."""
    lines = f"[    1.5] x[7]: segfault in\n            {FALLEN}[1+1]\n[    1.6] {FALLEN}"
    log = kernel_of(smi, f"printf '%s\\n' '{lines}'")
    assert isinstance(log, KernelLog)
    assert [(line.at, line.level) for line in log.lines] == [(1.5, None), (1.6, None)]
    assert [e.line for e in xid.read(line.text for line in log.lines).events] == [1]


def test_busybox_prints_the_lines_of_syslog(smi: Path) -> None:
    """It knows only -r, and tells so with its name."""
    usage = "echo 'BusyBox v1.36.1 multi-call binary.' >&2; exit 1"
    log = kernel_of(smi, f"[ \"$*\" = -r ] || {{ {usage}; }}\necho '<4>[    1.5] {FALLEN}'")
    assert isinstance(log, KernelLog)
    assert [(line.level, line.text) for line in log.lines] == [(4, FALLEN)]
    assert isinstance(kernel_of(smi, "exit 1"), Unread)
