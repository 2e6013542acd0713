"""What to do about a GPU in trouble, from nothing to a replacement. NVIDIA's own recovery action
counts first."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Advice(str, Enum):
    """What to do, the mildest first."""

    IGNORE = "ignore"
    RESTART_APP = "restart the application"
    MONITOR = "monitor"
    RECOVER_IMEX = "recover the IMEX domain: restart nvidia-imex on all nodes of it"
    CONTACT = "ask the vendor's support"
    RESET = "reset the GPU"
    REBOOT = "reboot the node"
    DIAGNOSE = "drain the node and diagnose"
    REPLACE = "replace it (RMA) once a diagnosis confirms it"

    @classmethod
    def _missing_(cls, value: object) -> Advice | None:
        """CONTACT for the word that former versions stored, from before AMD's GPUs had it too; else
        None."""
        return cls.CONTACT if value == "ask NVIDIA support" else None

    @property
    def rank(self) -> int:
        """How drastic the advice is: 0 for the mildest."""
        return list(Advice).index(self)

    @property
    def hardware(self) -> bool:
        """Whether the device itself may be broken, and not only a program on it."""
        return self.rank >= Advice.CONTACT.rank


def worst(advices: list[Advice]) -> Advice:
    """The most drastic of them; IGNORE if there is none."""
    return max(advices, key=lambda a: a.rank, default=Advice.IGNORE)


class RecoveryAction(Struct, frozen=True, kw_only=True):
    """The action that the driver recommends for a GPU, one row per number."""

    code: int
    """The number in the driver and in NVML."""
    word: str
    """Its name in nvidia-smi."""
    others: tuple[str, ...] = ()
    """Its names in the kernel's log, NVML, DCGM and other versions of the driver."""
    advice: Advice


RECOVERY_ACTIONS: tuple[RecoveryAction, ...] = (
    RecoveryAction(code=0, word="None", advice=Advice.IGNORE),
    RecoveryAction(
        code=1,
        word="Reset",
        others=("GPU Reset Required", "GPU Reset", "Reset GPU", "PF FLR"),
        advice=Advice.RESET,
    ),
    RecoveryAction(
        code=2,
        word="Reboot",
        others=("Node Reboot Required", "Node Reboot", "Reboot Node", "OS Reboot"),
        advice=Advice.REBOOT,
    ),
    RecoveryAction(code=3, word="Drain P2P", advice=Advice.DIAGNOSE),
    RecoveryAction(
        code=4,
        word="Drain and Reset",
        others=("Drain P2P and Reset GPU", "Drain P2P + Reset"),
        advice=Advice.RESET,
    ),
    RecoveryAction(code=5, word="Recover IMEX Domain", advice=Advice.RECOVER_IMEX),
    RecoveryAction(code=6, word="Bus Reset", advice=Advice.RESET),
    RecoveryAction(code=7, word="System Reboot", advice=Advice.REBOOT),
)
"""Numbers: nvmlDeviceGpuRecoveryAction_t of NVML,
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html, and in the driver
NV2080_CTRL_GPU_RECOVERY_ACTION_*. Words: _gpuRecoveryActionName() in
https://github.com/NVIDIA/open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/gpu.c; newer drivers
print other words for the same numbers (`PF FLR`, `OS Reboot`)."""

_BY_CODE = {action.code: action for action in RECOVERY_ACTIONS}
_BY_WORD = {
    word.lower(): action for action in RECOVERY_ACTIONS for word in (action.word, *action.others)
}


def recovery_action(word: str, code: int | None = None) -> RecoveryAction | None:
    """NVIDIA's recovery action from the text of Xid 154, nvidia-smi's gpu_recovery_action or NVML.
    The number decides if the source has one, else the whole word.

    None if neither is known, or if the number says "none" and the word does not: an unknown action
    is neither good news nor a reason to drain."""
    by_word = _BY_WORD.get(" ".join(word.lower().split()))
    found = by_word if code is None else _BY_CODE.get(code, by_word)
    contradicts = found is not None and found.code == 0 and by_word is not found
    return None if contradicts else found


def recovery(word: str, code: int | None = None) -> Advice | None:
    """The advice for that action. None if the action is not known."""
    found = recovery_action(word, code)
    return found.advice if found else None
