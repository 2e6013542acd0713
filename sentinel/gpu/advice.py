"""What a GPU in trouble needs, from nothing to a replacement; NVIDIA's own word comes first."""

from __future__ import annotations

from enum import Enum


class Advice(str, Enum):
    """What to do, the mildest first."""

    IGNORE = "ignore"
    RESTART_APP = "restart the application"
    MONITOR = "monitor"
    CONTACT = "ask NVIDIA support"
    RESET = "reset the GPU"
    REBOOT = "reboot the node"
    DIAGNOSE = "drain the node and diagnose"
    REPLACE = "replace it (RMA) once a diagnosis confirms it"

    @property
    def rank(self) -> int:
        """How much it takes."""
        return list(Advice).index(self)

    @property
    def hardware(self) -> bool:
        """Whether the device itself is in question, not only a program on it."""
        return self.rank >= Advice.CONTACT.rank


def worst(advices: list[Advice]) -> Advice:
    """The one that takes the most; ignore for none."""
    return max(advices, key=lambda a: a.rank, default=Advice.IGNORE)


def recovery(word: str) -> Advice | None:
    """NVIDIA's recovery action (NVML's nvmlDeviceGpuRecoveryAction_t, the field
    gpu_recovery_action, the text of Xid 154); None where it is not one of the known words.

    https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
    """
    return _WORDS.get(" ".join(word.lower().split()))


_WORDS = {
    "none": Advice.IGNORE,
    "reset": Advice.RESET,
    "gpu reset": Advice.RESET,
    "gpu reset required": Advice.RESET,
    "gpu reset bus": Advice.RESET,
    "reboot": Advice.REBOOT,
    "node reboot": Advice.REBOOT,
    "node reboot required": Advice.REBOOT,
    "drain p2p": Advice.DIAGNOSE,
    "drain and reset": Advice.RESET,
}
