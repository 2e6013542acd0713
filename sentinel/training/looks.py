"""What the guard of a training looks at: memory, the end of the allocation, files."""

from __future__ import annotations

import os
from collections.abc import Callable

SLURM_LIMIT = 10.0
"""Seconds that squeue has to tell when the allocation ends."""
NO_LIMIT = 2**60
"""cgroup v1 writes a number near 2^63 where there is no limit."""


def memory_used(root: str = "/") -> float:
    """The share in use, 0 to 1, of this host's memory or of the tightest cgroup around this
    process. Page cache that can be given back is no use; memory of tmpfs is.

    proc_meminfo(5); https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.stat;
    https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
    """
    host = _pairs(os.path.join(root, "proc/meminfo"))
    shares = [1 - host["MemAvailable:"] / host["MemTotal:"]]
    for controllers, path in _cgroups(os.path.join(root, "proc/self/cgroup")):
        if not controllers:
            for base in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                shares += _along(os.path.join(root, base), path, _share_v2)
        elif "memory" in controllers:
            shares += _along(os.path.join(root, "sys/fs/cgroup/memory"), path, _share_v1)
    return max(shares)


def _cgroups(path: str) -> list[tuple[list[str], str]]:
    """Controllers and path of each hierarchy; cgroups(7)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    return [(names.split(",") if names else [], where) for _, names, where in lines]


def _along(base: str, path: str, share: Callable[[str], float | None]) -> list[float]:
    """The shares of the group and all above it; a container sees only its own as the root."""
    found = []
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        try:
            one = share(os.path.join(base, *parts[:depth]))
        except (OSError, ValueError, KeyError):
            continue
        found += [] if one is None else [one]
    return found


def _share_v2(folder: str) -> float | None:
    limit = _word(os.path.join(folder, "memory.max"))
    if limit == "max":
        return None
    stat = _pairs(os.path.join(folder, "memory.stat"))
    cache = stat["file"] - stat["shmem"] + stat.get("slab_reclaimable", 0)
    return max(0, int(_word(os.path.join(folder, "memory.current"))) - cache) / max(1, int(limit))


def _share_v1(folder: str) -> float | None:
    limit = int(_word(os.path.join(folder, "memory.limit_in_bytes")))
    if limit >= NO_LIMIT:
        return None
    stat = _pairs(os.path.join(folder, "memory.stat"))
    cache = stat["total_cache"] - stat.get("total_shmem", 0)
    return max(0, int(_word(os.path.join(folder, "memory.usage_in_bytes"))) - cache) / max(1, limit)


def end_of_allocation() -> float | None:
    """When Slurm ends this job, seconds since 1970; None without an end or without Slurm.

    SLURM_JOB_END_TIME where srun(1) sets it (23.02 and later), else squeue is asked once.
    """
    given = os.environ.get("SLURM_JOB_END_TIME", "")
    if given.isdigit():
        return float(given)
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    # The number of an array's last element is the array's too: squeue then lists all of them.
    rows = [line.split() for line in _squeue(f"--jobs={job}", "--format=%A %e").splitlines()]
    ends = [row[1] for row in rows if row[:1] == [job.encode()] and row[1:]]
    return float(ends[0]) if ends and ends[0].isdigit() else None


def _squeue(*options: str) -> bytes:
    """Its answer; raises what went wrong. One that cannot be killed is not waited for."""
    import subprocess

    # SQUEUE_STATES and the like, where a user has set them, choose what it lists.
    env = {k: v for k, v in os.environ.items() if not k.startswith("SQUEUE_")}
    process = subprocess.Popen(
        ["squeue", "--noheader", *options],
        env={**env, "SLURM_TIME_FORMAT": "%s"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = process.communicate(timeout=SLURM_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        for pipe in filter(None, [process.stdout, process.stderr]):
            pipe.close()
        raise
    if process.returncode:
        raise OSError(err.decode("utf-8", "backslashreplace").strip())
    return out


def identity(path: str) -> tuple[int, int] | None:
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns


def replace(path: str, line: str) -> None:
    """Whoever reads meanwhile sees the old line or the new one, never half of one."""
    fresh = f"{path}.{os.getpid()}.new"
    with open(fresh, "w", encoding="ascii") as file:
        file.write(line)
    os.replace(fresh, path)


def _word(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _pairs(path: str) -> dict[str, int]:
    """`key number` lines; the unit of meminfo cancels out."""
    with open(path, encoding="ascii", errors="replace") as file:
        words = (line.split() for line in file)
        return {w[0]: int(w[1]) for w in words if len(w) > 1 and w[1].isdigit()}


def rank_here() -> int:
    """What launchers tell their processes: torchrun, Open MPI, PMIx, Slurm."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
