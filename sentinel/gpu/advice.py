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

    Each tool words it a little differently (`Reset`, `GPU Reset Required`, `Bus Reset`, `OS
    Reboot`): https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
    """
    said = word.strip().lower()
    if said == "none":
        return Advice.IGNORE
    return next((advice for part, advice in _BY_WORD if part in said), None)


_BY_WORD = (("reboot", Advice.REBOOT), ("reset", Advice.RESET), ("drain", Advice.DIAGNOSE))
