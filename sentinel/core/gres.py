"""How many GPUs a node has by its Gres in Slurm (slurm.conf(5), gres.conf(5)). Pure."""

import re

_BRACKETS = re.compile(r"\([^)]*\)")
_GPU = re.compile(r"gpu(?::([^:,]+))??(?::(\d+))?")
# `<GPU_type>_<slices>g.<memory>gb`: src/plugins/gpu/nvml/gpu_nvml.c, and gres.html.
_MIG = re.compile(r"(?:^|[^0-9a-z])\d+g\.\d+gb")


def gpus(gres: str) -> int | None:
    """The number in `gpu:8(S:0-1)` or `gpu:h100:4,gpu:a100:4`; 0 without any.

    None where MIG hides it (`gpu:a100_1g.5gb:7` are slices), or it is written in no form known here.
    """
    count = 0
    for item in _BRACKETS.sub("", gres).split(","):
        if item.strip().partition(":")[0] != "gpu":
            continue
        match = _GPU.fullmatch(item.strip())
        if not match or _MIG.search(match[1] or ""):
            return None
        count += int(match[2] or 1)
    return count
