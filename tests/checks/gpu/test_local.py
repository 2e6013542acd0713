"""This machine's own GPUs: without any way to nodes."""

import json
import os
from pathlib import Path

import pytest

from sentinel.checks.gpu import GpuCheck, local
from sentinel.core.model import Status
from sentinel.core.values import Duration
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
    assert (bad.subject, bad.summary[:11]) == (local.name(), "7 of 8 GPUs")


def test_a_driver_without_devices_is_bad(smi: Path) -> None:
    """nvidia-smi answers: none."""
    put(smi, "No devices were found\n", 6)
    (found,) = GpuCheck().run(context(limit=20.0)).findings
    assert found.status is Status.CRITICAL


@pytest.mark.parametrize("said", ["hello", ""])
def test_a_kernel_log_without_times_is_not_believed(smi: Path, said: str) -> None:
    """printk.time is off, or somebody has cleared it: an Xid would not be seen in it."""
    put(smi, nvidia_smi(gpus_of(0)))
    (smi.parent / "dmesg").write_text(f"#!/bin/sh\necho '{said}'\n")
    assert isinstance(local.here(10.0, None).kernel, Unread)


def test_without_nvidia_smi_nvml_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no driver either: unknown, never fine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    gpus = local.here(10.0, None).gpus
    if isinstance(gpus, str):
        assert json.loads(gpus)["form"] == "nvml"  # a machine with a GPU
    else:
        assert gpus.kind == "missing"


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
    assert [line.at for line in first.kernel.lines] == [1.5, 1.5, 1.5, 1.6]
    boot = first.kernel.cursor.boot
    again = local.here(10.0, Cursor(boot=boot, source="dmesg", position=1_500_000))
    assert isinstance(again.kernel, KernelLog)
    assert len(again.kernel.lines) == 1
    report = GpuCheck(remember=Duration(10**9)).run(context(limit=20.0))
    told = " ".join(f"{f.summary} {f.details}" for f in report.findings if f.status.bad)
    assert "Xid 79" in told
    assert "init failed" in told
