"""A GPU as its tools describe it. None stands for a number that is not reported or not supported;
it is never 0 for that. A text is empty then."""

from collections.abc import Mapping

from msgspec import Struct


class Ecc(Struct, frozen=True, kw_only=True):
    """Uncorrected memory errors counted by the GPU: since the driver was loaded, or in its whole life.

    Before Ampere the device calls them double bit errors: all in `dram_uncorrected`. `deferred`: those
    of AMD GPUs that nobody has read yet.
    """

    sram_uncorrected: int | None = None
    dram_uncorrected: int | None = None
    deferred: int | None = None


class RemappedRows(Struct, frozen=True, kw_only=True):
    """Rows of memory replaced by spare ones (Ampere and later).

    `pending`: takes effect with a reset. `failed`: there was no spare row left for one.
    `banks`: how many banks have max, high, partial, low or none of their spare rows left.
    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/
    """

    corrected: int | None = None
    uncorrected: int | None = None
    pending: bool | None = None
    failed: bool | None = None
    banks: Mapping[str, int] = {}


class RetiredPages(Struct, frozen=True, kw_only=True):
    """Pages taken out of use (before Ampere), for single and for double bit errors."""

    single_bit: int | None = None
    double_bit: int | None = None
    pending: bool | None = None


class Occupant(Struct, frozen=True, kw_only=True):
    """A process on a GPU; `kind` as nvidia-smi has it (C compute, G graphics); bytes."""

    pid: int
    name: str
    kind: str = ""
    memory: int | None = None


class UnknownWord(Struct, frozen=True, kw_only=True):
    """A field of nvidia-smi about a GPU's health, by its path, and what stands in it, of which one or
    the other is not known here. `mild`: it says no, none or nothing."""

    field: str
    word: str
    mild: bool = False


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU. Bytes, degrees Celsius, watts, percent.

    `part`: a part of a divided GPU, which has a row of its own and may have the UUID of the whole.
    `uuid` is empty where the driver cannot tell it (the GPU is lost). `serial` is empty where the tool hides it (virtual machines). `recovery`: NVIDIA's own word
    on what it needs (None, Reset, Reboot, Drain P2P, Drain and Reset), empty where not told.
    `fabric`: how far its NVLink fabric is (Not Started, In Progress, Completed with what came of it)
    and what its health says, empty where that is well, or where it has none.
    `unrepairable`: memory that no repair helps. `repairs`: what a reset will repair.
    `throttled`: reasons active now. `troubles`: fields in which the driver complains instead;
    `answers`: false where it complains in most of them, or says that the GPU is lost.
    `untold`: what every known form of the tool tells, if only as N/A, and this output does not.
    `unknown`: what a newer driver says of its health. `remarks`: warnings of the tool about it.
    """

    uuid: str
    bus: str
    serial: str = ""
    index: int | None = None
    model: str = ""
    memory_used: int | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    power: float | None = None
    utilization: float | None = None
    pcie_rx: float | None = None
    ecc: Ecc = Ecc()
    ecc_life: Ecc = Ecc()
    sram_threshold: bool | None = None
    remapped: RemappedRows | None = None
    retired: RetiredPages | None = None
    throttled: tuple[str, ...] = ()
    mig: bool | None = None
    part: bool = False
    unrepairable: bool | None = None
    repairs: tuple[str, ...] = ()
    recovery: str = ""
    fabric: str = ""
    processes: tuple[Occupant, ...] = ()
    troubles: tuple[str, ...] = ()
    answers: bool = True
    untold: tuple[str, ...] = ()
    unknown: tuple[UnknownWord, ...] = ()
    remarks: tuple[str, ...] = ()


class Inventory(Struct, frozen=True, kw_only=True):
    """All GPUs a node's driver shows. `attached`: how many it says there are. `remarks`: warnings of
    the tool that are about none of them by address.

    `form`: the version of the format (v10 to v13), or what else it was.
    """

    gpus: tuple[Gpu, ...]
    driver: str = ""
    cuda: str = ""
    form: str = ""
    attached: int | None = None
    remarks: tuple[str, ...] = ()
