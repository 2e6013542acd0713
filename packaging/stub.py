"""`__main__.py` of sentinel.pyz: unpacks its payload once per host, then runs it from there.

One file on the shared file system instead of thousands; what is unpacked lies on this host's own
disk and is found by the digest of the payload, which the builder writes below.
"""

import os
import stat
import sys
import sysconfig

DIGEST = "@DIGEST@"
BUILT_FOR = "@BUILT_FOR@"
PAYLOAD = "payload.tar.gz"


def fits() -> str:
    """What this interpreter is, in the builder's words: native modules fit no other."""
    return f"{sys.version_info[0]}.{sys.version_info[1]} {sysconfig.get_platform()}"


def candidates() -> list:
    """Folders on this host, the best first: the user's own, then the machine's."""
    said = [os.environ.get(name, "") for name in ("SENTINEL_CACHE", "XDG_RUNTIME_DIR", "TMPDIR")]
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


def unpacked() -> str:
    """Where the payload lies, unpacked there if it did not yet."""
    name = f"sentinel-{os.geteuid()}-{DIGEST}"
    places = [os.path.join(path, name) for path in candidates()]
    for place in places:
        if trusted(place):
            return place
    for place in places:
        if usable(os.path.dirname(place)) and not os.path.lexists(place):
            return unpack(place)
    sys.exit(
        f"sentinel.pyz: no folder to unpack into: tried {', '.join(places)}; set $SENTINEL_CACHE"
    )


def unpack(place: str) -> str:
    """Beside its place first, then moved there: two that start at once both find it whole."""
    import tarfile
    import tempfile
    import zipfile

    fresh = tempfile.mkdtemp(prefix=".sentinel-", dir=os.path.dirname(place))
    with (
        zipfile.ZipFile(sys.argv[0]) as archive,
        archive.open(PAYLOAD) as packed,
        tarfile.open(fileobj=packed, mode="r|gz") as payload,
    ):
        payload.extractall(fresh)  # noqa: S202  (our own, and whoever could change it could change us)
    try:
        os.rename(fresh, place)
    except OSError:
        import shutil

        shutil.rmtree(fresh, ignore_errors=True)
        if not trusted(place):
            sys.exit(f"sentinel.pyz: {place} is not ours; set $SENTINEL_CACHE to another folder")
    return place


def main() -> int:
    if fits() != BUILT_FOR:
        sys.exit(
            f"sentinel.pyz was built for Python {BUILT_FOR}, this is {fits()}; "
            "start it with another python3, or build it with this one: make pyz"
        )
    program, place = os.path.abspath(sys.argv[0]), unpacked()
    sys.path[:] = [place, *(path for path in sys.path if os.path.abspath(path) != program)]
    from sentinel.cli import main as sentinel

    return sentinel()


sys.exit(main())
