"""`__main__.py` of sentinel.pyz: unpacks its payload once per host, then runs it from there.

One file on the shared file system instead of thousands; what is unpacked lies on this host's own
disk and is found by the digest of the payload, which the builder writes below.
"""

import os
import stat
import sys
import sysconfig
import time

DIGEST = "@DIGEST@"
BUILT_FOR = "@BUILT_FOR@"
PAYLOAD = "payload.tar.gz"
WHOLE = ".whole"
"""Written last: the names of all files; its age is when they were looked after."""
FRESH = 2 * 86400
"""Seconds: cleaners of /tmp take files that were not touched for 10 days (tmpfiles.d(5))."""


def fits() -> str:
    """What this interpreter is, in the builder's words: native modules fit no other."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {sysconfig.get_platform()}"


def candidates() -> list:
    """Folders on this host, the best first. Not $XDG_RUNTIME_DIR: it goes with one's last logout,
    under a service that was left in tmux."""
    said = [os.environ.get(name, "") for name in ("SENTINEL_CACHE", "TMPDIR")]
    shared = ["/var/tmp", "/tmp"]  # noqa: S108  (`trusted` is what makes them safe)
    return [path for path in [*said, *shared] if path and os.path.isdir(path)]


def usable(path: str) -> bool:
    """Whether native modules can be loaded from there: not from a mount with noexec."""
    try:
        return os.access(path, os.W_OK | os.X_OK) and not os.statvfs(path).f_flag & os.ST_NOEXEC
    except OSError:
        return False


def trusted(path: str) -> bool:
    """A folder of ours that nobody else can write: /tmp is everybody's."""
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    mine = seen.st_uid == os.geteuid() and not seen.st_mode & 0o022
    return mine and stat.S_ISDIR(seen.st_mode)


def whole(place: str) -> bool:
    """Whether nothing of it was cleaned away; now and then all of it is touched."""
    mark = os.path.join(place, WHOLE)
    try:
        if abs(time.time() - os.stat(mark).st_mtime) < FRESH:
            return True
        with open(mark) as file:
            names = file.read().splitlines()
        for name in names:
            os.utime(os.path.join(place, name))
        os.utime(mark)
    except OSError:
        return False
    return True


def unpacked() -> str:
    """Where the payload lies, unpacked there if it did not yet."""
    name = f"sentinel-{os.geteuid()}-{DIGEST}"
    places = [os.path.join(path, name) for path in candidates()]
    for place in places:
        if trusted(place) and whole(place):
            return place
    tried = []
    for place in places:
        if usable(os.path.dirname(place)) and (trusted(place) or not os.path.lexists(place)):
            try:
                return unpack(place)
            except OSError as error:
                tried.append(f"{place}: {error.strerror}")
        else:
            tried.append(f"{place}: not ours, or programs may not run there")
    sys.exit(
        f"sentinel.pyz: no folder to unpack into ({'; '.join(tried)}); "
        "set $SENTINEL_CACHE to one of yours with 80 MB to spare"
    )


def unpack(place: str) -> str:
    """Beside its place first, then moved there: two that start at once both find it whole. Raises
    OSError, with nothing left behind."""
    import shutil
    import tempfile

    fresh = tempfile.mkdtemp(prefix=".sentinel-", dir=os.path.dirname(place))
    try:
        extract(fresh)
        aside(place)
        os.rename(fresh, place)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not (trusted(place) and whole(place)):  # else another was faster
            raise
    return place


def extract(folder: str) -> None:
    """All files, and the mark that says so."""
    import tarfile
    import zipfile

    with (
        zipfile.ZipFile(sys.argv[0]) as archive,
        archive.open(PAYLOAD) as packed,
        tarfile.open(fileobj=packed, mode="r|gz") as payload,
    ):
        # Our own; whoever could change it could change us. Python before 3.11.4 knows no filter.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        payload.extractall(folder, **safe)  # noqa: S202
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    with open(os.path.join(folder, WHOLE), "w") as file:
        file.writelines(f"{os.path.relpath(path, folder)}\n" for path in files)


def aside(place: str) -> None:
    """Away with what a cleaner has left of an older one."""
    import shutil

    if trusted(place) and not whole(place):
        old = f"{place}.{os.getpid()}.old"
        os.rename(place, old)
        shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    if fits() != BUILT_FOR:
        sys.exit(
            f"sentinel.pyz was built for Python {BUILT_FOR}, this is {fits()}; "
            "start it with another python3, or build it with this one: make pyz"
        )
    program, place = os.path.abspath(sys.argv[0]), unpacked()
    sys.path[:] = [place, *(path for path in sys.path if os.path.abspath(path) != program)]
    from sentinel.cli import run_process

    run_process()


main()
