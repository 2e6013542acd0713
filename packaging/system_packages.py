"""The packages of operating systems: .deb with Debian's libraries, .deb and .rpm with their own."""

import os
import re
import shutil
import tarfile
import tempfile
import time
from pathlib import Path

import bundle
from tools import BUNDLED_DEBS, NAME, ROOT, make_system, read_version, run_tool

RPM_PYTHON = "3.12"
NATIVE_SUITE = "trixie"
SYSTEMS = ROOT / "build" / "systems"
BUILD_LIMIT_S = 540
INSIDE = """\
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mkdir "$2/root/build"
mount --bind "$3" "$2/root/build"
cd /
exec chroot "$2/root" sh -c 'cd /build/source && exec dpkg-buildpackage -d --build=binary -us -uc'
"""
"""Arguments: the system, a folder to mount on, the folder with source/."""


def lay_source(sdist: Path, folder: Path, control: str, version: str) -> Path:
    """The sdist, with debian/ as dpkg-buildpackage wants it."""
    with tarfile.open(sdist) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(folder, **safe)  # type: ignore[arg-type]  # noqa: S202
    source = folder / "source"
    (folder / sdist.name.removesuffix(".tar.gz")).rename(source)
    debian = source / "debian"
    shutil.copytree(ROOT / "packaging/debian", debian, ignore=lambda _, names: _controls(names))
    (debian / "control").write_text(control)
    (debian / "source").mkdir()
    (debian / "source/format").write_text("3.0 (native)\n")
    date = time.strftime(
        "%a, %d %b %Y %H:%M:%S +0000", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    )
    entry = f"{NAME} ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
    (debian / "changelog").write_text(f"{entry} -- The sentinel authors <>  {date}\n")
    return source


def _controls(names: list[str]) -> set[str]:
    return {name for name in names if name.startswith("control.")}


def read_control(kind: str) -> str:
    return (ROOT / "packaging/debian" / f"control.{kind}").read_text()


def build_native_deb(out: Path, sdist: Path) -> None:
    """On Debian 13, whose Python libraries it uses. Its build dependencies are all that is there."""
    control = read_control("native")
    (depends,) = re.findall(r"^Build-Depends:\n((?: .*\n)+)", control, re.MULTILINE)
    packages = [word.strip().partition(" ")[0] for word in depends.split(",") if word.strip()]
    packages = ["debhelper" if name == "debhelper-compat" else name for name in packages]
    system = make_system(SYSTEMS / "debian13-build", NATIVE_SUITE, [*packages, "dpkg-dev", "make"])
    with tempfile.TemporaryDirectory() as folder:
        work, mounted = Path(folder) / "work", Path(folder) / "mounted"
        work.mkdir()
        mounted.mkdir()
        lay_source(sdist, work, control, read_version())
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INSIDE, "sh"]
        run_tool(*enter, system, mounted, work, timeout=BUILD_LIMIT_S)
        (built,) = work.glob("*.deb")
        shutil.copy(built, out / built.name)


def build_bundled_deb(out: Path, sdist: Path, system: str, installer: list[str]) -> None:
    """Built here, for a system that is not."""
    python = BUNDLED_DEBS[system]
    version = f"{read_version()}~{system}"
    control = read_control("bundle").replace("@PYTHON@", python).replace("@GLIBC@", bundle.GLIBC)
    with tempfile.TemporaryDirectory() as folder:
        work, tree = Path(folder) / "work", Path(folder) / "tree"
        places = {"UNITDIR": "/lib/systemd/system", "ZSHDIR": "/usr/share/zsh/vendor-completions"}
        stage_package(tree, python, installer, places)
        work.mkdir()
        source = lay_source(sdist, work, control, version)
        command = ["dpkg-buildpackage", "--build=binary", "-us", "-uc"]
        run_tool(*command, cwd=source, env={**os.environ, "BUNDLE": str(tree)})
        (built,) = work.glob("*.deb")
        shutil.copy(built, out / built.name)


def stage_package(tree: Path, python: str, installer: list[str], places: dict[str, str]) -> None:
    """The bundle and all that is not Python."""
    wanted = f"{NAME}[apprise,gpu,pictures,postgres,stacks]"
    bundle.stage_bundle(tree, python, installer, wanted, run_tool)
    words = [f"{name}={value}" for name, value in {"PREFIX": "/usr", **places}.items()]
    run_tool("make", "-C", ROOT, "install-files", f"DESTDIR={tree}", *words)
    moment = int(os.environ["SOURCE_DATE_EPOCH"])  # libraries have that of whoever fetched them
    for path in [tree, *tree.rglob("*")]:
        os.utime(path, (moment, moment), follow_symlinks=False)


def build_rpm(out: Path, installer: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        stage_package(tree, RPM_PYTHON, installer, {"UNITDIR": "/usr/lib/systemd/system"})
        pack_rpm(out, tree, read_version())


def pack_rpm(out: Path, tree: Path, version: str, level: int = 9) -> None:
    """By rpmbuild of whatever system this is; nothing in it is taken from here. `level`: how hard it
    is compressed."""
    with tempfile.TemporaryDirectory() as folder:
        defines = {
            "_topdir": folder,
            "staged": tree,
            "sentinel_version": version,
            # RHEL 8 reads gzip whatever its rpm; nothing is stripped, compiled or looked into here.
            "_binary_payload": f"w{level}.gzdio",
            "__os_install_post": "%{nil}",
            "_build_id_links": "none",
            "_buildhost": "localhost",
            "use_source_date_epoch_as_buildtime": "1",
            "clamp_mtime_to_source_date_epoch": "1",
        }
        words = [word for key, value in defines.items() for word in ("-D", f"{key} {value}")]
        run_tool("rpmbuild", "-bb", *words, ROOT / "packaging/rpm" / f"{NAME}.spec")
        (built,) = Path(folder).rglob("*.rpm")
        shutil.copy(built, out / built.name)
