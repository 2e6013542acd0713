"""On a machine with a real NVIDIA GPU: NVML and nvidia-smi agree."""

import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sentinel.checks.gpu import judge, nvml
from sentinel.core.model import Status
from sentinel.gpu import smi
from sentinel.gpu.advice import recovery_word
from sentinel.gpu.model import Gpu

MOVING = frozenset(
    [
        "temperature",
        "memory_temperature",
        "power",
        "utilization",
        "pcie_rx",
        "memory_used",
    ]
)
"""What changes between two questions: both have to tell it, and that is all."""

ONLY_XML = frozenset(
    [
        "unknown",
        "remarks",
        "sram_threshold",
        "retired",
        "processes",
        "troubles",
        "pcie_rx",
    ]
)


def _text() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        pytest.skip("no NVIDIA GPU here (nvidia-smi is not installed)")
    done = subprocess.run([tool, "-q", "-x"], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"no NVIDIA GPU here: {done.stdout.strip()[:80]}")
    return done.stdout


def test_inventory_by_xml_and_by_nvml_agree_field_by_field() -> None:
    """Every field that both know."""
    by_xml, by_nvml = smi.parse(_text()), nvml.inventory()
    assert (by_xml.driver, len(by_xml.gpus)) == (by_nvml.driver, len(by_nvml.gpus))
    for one, two in zip(by_xml.gpus, by_nvml.gpus, strict=True):
        for name in Gpu.__struct_fields__:
            if name in ONLY_XML:
                continue
            left, right = getattr(one, name), getattr(two, name)
            if name in MOVING:
                assert (left is None) == (right is None), name
            else:
                assert left == right, name


def test_what_newer_drivers_ask_for_is_never_read_as_nothing() -> None:
    """Numbers of NVML_GPU_RECOVERY_ACTION_* as nvml.h has them, and one after the last."""
    import pynvml

    names = {
        name.removeprefix("NVML_GPU_RECOVERY_ACTION_"): getattr(pynvml, name)
        for name in dir(pynvml)
        if name.startswith("NVML_GPU_RECOVERY_ACTION_")
    }
    for name, number in names.items():
        words = set(name.lower().split("_")) - {"gpu", "node"}
        assert words == set(recovery_word(number).lower().split()), name
    newer = recovery_word(max(names.values(), default=98) + 1)  # none of them before 12.570
    (problem,) = judge.problems(Gpu(uuid="GPU-1", bus="", recovery=newer), judge.WARN, judge.CRIT)
    assert problem[0] is Status.WARNING


def test_reasons_have_the_names_of_nvidia_smi() -> None:
    """Each bit by itself; what NVML does not know of is no reason."""
    import pynvml

    assert nvml.throttled(pynvml, None) == nvml.throttled(pynvml, 0) == ()
    slow = pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    idle = pynvml.nvmlClocksThrottleReasonGpuIdle
    assert nvml.throttled(pynvml, slow | idle) == ("gpu_idle", "hw_thermal_slowdown")
    assert set(judge.SLOW) <= set(nvml.REASONS)


class Failing:
    """NVML of which one function fails for one GPU; all else is the real module's constants."""

    def __init__(self, name: str, error: int, index: int = 0) -> None:
        import pynvml

        self.real, self.name, self.error, self.index = pynvml, name, error, index

    def __getattr__(self, name: str) -> object:
        if not name.startswith("nvmlDeviceGet"):
            return getattr(self.real, name)
        return lambda *arguments: self._call(name.removeprefix("nvmlDeviceGet"), arguments)

    def _call(self, name: str, arguments: tuple[object, ...]) -> object:
        if name == self.name and arguments[0] == self.index:
            raise self.real.NVMLError(self.error)
        if name == "HandleByIndex":
            return arguments[0]
        if name in ("UUID", "Name", "Serial"):
            return f"{name}-{arguments[0]}"
        if name in ("Temperature", "PowerUsage", "MinorNumber"):
            return 40_000
        raise self.real.NVMLError(self.real.NVML_ERROR_NOT_SUPPORTED)


def test_a_field_that_nvml_cannot_read_costs_itself() -> None:
    """It cost all GPUs of the machine; one that is not there is no trouble."""
    import pynvml

    found = nvml.Device(Failing("Temperature", pynvml.NVML_ERROR_UNKNOWN), 0).gpu()
    assert (found.uuid, found.temperature, found.power) == ("UUID-0", None, 40)
    assert (found.troubles, found.answers) == (("Temperature: Unknown Error",), True)
    absent = nvml.Device(Failing("Temperature", pynvml.NVML_ERROR_NO_PERMISSION), 0).gpu()
    assert (absent.troubles, absent.answers) == ((), True)


class Older(Failing):
    """An nvidia-ml-py that is older than the driver: it has no name for the newer fields."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("NVML_FI_"):
            raise AttributeError(name)
        return super().__getattr__(name)

    def _call(self, name: str, arguments: tuple[object, ...]) -> object:
        if name == "FieldValues":
            assert isinstance(arguments[1], list)
            wanted = arguments[1] == [nvml.FI_DEV_GET_GPU_RECOVERY_ACTION]
            return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=1 if wanted else 60))]
        return super()._call(name, arguments)


def test_fields_without_a_name_in_an_older_nvidia_ml_py_are_asked_by_their_number() -> None:
    """They cost all GPUs of the machine. The numbers are those of nvml.h."""
    import pynvml

    found = nvml.Device(Older("Temperature", pynvml.NVML_ERROR_UNKNOWN), 0).gpu()
    assert (found.recovery, found.memory_temperature) == (recovery_word(1), 60)
    assert pynvml.NVML_FI_DEV_MEMORY_TEMP == nvml.FI_DEV_MEMORY_TEMP
    number = nvml.FI_DEV_GET_GPU_RECOVERY_ACTION
    assert getattr(pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", number) == number


def test_a_lost_gpu_costs_itself() -> None:
    """Where its handle is refused, and where a field says so; its neighbour is well."""
    import pynvml

    for name in ("HandleByIndex", "Temperature"):
        lost = Failing(name, pynvml.NVML_ERROR_GPU_IS_LOST)
        found = nvml.Device(lost, 0).gpu()
        assert not found.answers
        assert "GPU is lost" in found.troubles[0]
        assert nvml.Device(lost, 1).gpu().answers


def test_without_nvidia_ml_py_the_child_says_so_in_one_line() -> None:
    """And shows no traceback: its words stand in an alert."""
    code = "import sys; sys.modules['pynvml'] = None; import runpy; runpy.run_module('sentinel.checks.gpu.nvml', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (69, "nvidia-ml-py is not installed\n")
