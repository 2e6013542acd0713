"""This machine, which a run of the tests leaves as it was: mounts and /etc of the run's own, and what
is compared before and after."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.lab import claim, needs, paths

RUN = claim.RUN

HOST = Path(f"/proc/{os.getpid()}/fd/{os.open('/', os.O_PATH)}")
"""What everybody else sees, whatever is mounted over it from now on: for the process that imports this
before `own_mounts`."""

CLONE_NEWNS, MS_REC, MS_SLAVE = 0x20000, 0x4000, 0x80000  # sched.h, mount(2)
VOLATILE = re.compile(
    r"(kernel/(random|ns_last_pid|pty/nr|sched_domain|perf_event_max_sample_rate|printk_ratelimit)|"
    r"fs/(dentry-state|file-nr|inode-|aio-nr|dquot|epoll|binfmt_misc)|vm/(stat_refresh|compact_)|"
    r"net/(netfilter|ipv[46]/(conf|neigh|route)/|ipv4/(tcp_mem|udp_mem)|unix/))"
)
"""Of /proc/sys: counters, what comes and goes with interfaces, and what the kernel sets by itself."""

BACKUPS = re.compile(r"(passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock|ld\.so\.cache")
LAB = re.compile(rf"\bslab(\d+)|{paths.BASE}/(\d+)")
"""What bears the number of a lab."""

MADE_BY_TOOLS = {
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    "__pycache__",
    "build",
}
"""At the top of the checkout."""

Facts = Mapping[str, frozenset[str]]


def own_mounts() -> None:
    """From here on what this process and its children mount, and what they write into /etc (users,
    groups), is theirs alone and ends with them, also when they are killed. Where that is not
    allowed nothing happens."""
    libc = ctypes.CDLL(None, use_errno=True)
    if needs.why_no_root() or libc.unshare(CLONE_NEWNS) != 0:
        return
    if libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None) != 0:
        raise OSError(ctypes.get_errno(), "mount --make-rslave /")
    if libc.mount(b"etc", b"/mnt", b"tmpfs", 0, b"mode=755") != 0:
        return
    try:
        subprocess.run(["cp", "-a", "/etc/.", "/mnt/"], check=True, capture_output=True)
        subprocess.run(["mount", "--move", "/mnt", "/etc"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        libc.umount2(b"/mnt", 2)
    for place in (paths.ROOT, Path(sys.prefix), Path(sys.base_prefix)):
        let_others_in(place)


_OPEN = """set -e
mount -t tmpfs -o mode=755 open /mnt
trap 'umount -l /mnt' EXIT
mkdir -m 711 /mnt/upper
mkdir /mnt/work /mnt/place
mount --rbind "$2" /mnt/place
mount -t overlay -o lowerdir="$1",upperdir=/mnt/upper,workdir=/mnt/work overlay "$1"
mount --rbind /mnt/place "$2"
"""


def let_others_in(place: Path) -> None:
    """Tests run sentinel as other users too. Above a checkout, or a Python (pyenv, uv), in /root is a
    directory that those may not enter (0700); in this run they may. What is written beside it ends
    with the run."""
    shut = [above for above in reversed(place.parents) if not above.stat().st_mode & 0o001]
    if not shut:
        return
    argv = ["sh", "-c", _OPEN, "sh", str(shut[0]), str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
        for above in shut[1:]:
            above.chmod(above.stat().st_mode | 0o001)
        os.chdir(Path.cwd())


def facts() -> Facts:
    """All that may not change, by what it is."""
    return {
        "mount": frozenset(_mounts()),
        "network namespace": frozenset(_names(HOST / "run/netns")),
        "interface": frozenset(_names(Path("/sys/class/net"))),
        "file of /etc": frozenset(_etc()),
        "sysctl": frozenset(_sysctls()),
        "written into the kernel log": frozenset(_written_to_kmsg()),
        "file of the checkout": frozenset(_names(paths.ROOT)) - MADE_BY_TOOLS,
    }


def changes(
    before: Facts, run: str, folder: Path, patience: float = 20.0
) -> tuple[list[str], list[str]]:
    """What this run left behind, and what else changed meanwhile: this machine is not the run's alone,
    so it left only what bears its mark: its name, a lab of its own, or `folder`, where its tests have
    their temporary files. Who is just cleaning up (the labs' reapers) has a moment."""
    deadline = time.monotonic() + patience
    while (found := _compared(before, run, folder))[0] and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _compared(before: Facts, run: str, folder: Path) -> tuple[list[str], list[str]]:
    mine = [f"process: {words}" for words in _processes(run)]
    others: list[str] = []
    after = facts()
    for what, were in before.items():
        for one in sorted(after[what] - were):
            (mine if _bears_mark(one, run, folder) else others).append(f"{what}: new: {one}")
        if what != "written into the kernel log":  # it is a ring
            others += [f"{what}: gone: {one}" for one in sorted(were - after[what])]
    return mine, others


def _bears_mark(text: str, run: str, folder: Path) -> bool:
    """Whether it names the run, its folder, or a lab that the run claimed last and holds no more."""
    if run in text or f"{folder}/" in text:
        return True
    labs = {int(a or b) for a, b in LAB.findall(text)}
    return any(claim.last_holder(lab) == run and not _held(lab) for lab in labs)


def _held(index: int) -> bool:
    lock = claim.try_claim(index)
    if lock is not None:
        os.close(lock)
    return lock is None


def _processes(run: str) -> Iterator[str]:
    for pid, words, environment in _all_processes():
        if f"{RUN}={run}".encode() in environment and pid not in (os.getpid(), os.getppid()):
            yield f"{pid} {words.replace(bytes(1), b' ').decode(errors='replace')[:100]}"


def _all_processes() -> Iterator[tuple[int, bytes, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (
                    int(entry.name),
                    (entry / "cmdline").read_bytes(),
                    (entry / "environ").read_bytes(),
                )
            except OSError:
                continue


def _mounts() -> Iterator[str]:
    """But for the one over itself that iproute2 makes with a machine's first network namespace."""
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        if (place := line.split()[3:6])[1] != "/run/netns":
            yield " ".join(place)


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _etc() -> Iterator[str]:
    for folder, _, names in os.walk(HOST / "etc"):
        for name in names:
            path = Path(folder, name)
            if not BACKUPS.fullmatch(name) and path.is_file() and not path.is_symlink():
                digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
                yield f"{path.relative_to(HOST)} {digest}"


def _sysctls() -> Iterator[str]:
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = Path(folder, name)
            label = str(path.relative_to("/proc/sys"))
            if VOLATILE.match(label) or not path.stat().st_mode & 0o200:
                continue
            try:
                yield f"{label} = {path.read_text(errors='replace').strip()}"
            except OSError:
                continue


def _written_to_kmsg() -> Iterator[str]:
    """Records whose facility is not the kernel's: only programs can have written them
    (Documentation/ABI/testing/dev-kmsg)."""
    if shutil.which("dd") is None or not os.access("/dev/kmsg", os.R_OK):
        return
    argv = ["dd", "if=/dev/kmsg", "iflag=nonblock", "bs=8192"]
    said = subprocess.run(argv, capture_output=True, check=False).stdout
    for line in said.decode(errors="replace").splitlines():
        if (head := re.match(r"(\d+),", line)) and int(head[1]) >> 3:
            yield line
