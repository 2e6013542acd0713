"""How each package of dist/ is installed, made the next version, removed and purged."""

import base64
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sentinel import __version__
from tests.lab.systemd import ROOT
from tests.packaging.wheels import NEXT, build_wheel

BY_HAND = """\
rm -rf /etc/sentinel /var/lib/sentinel /var/log/sentinel /run/sentinel-* /dev/shm/sentinel-*
userdel sentinel; ! getent group sentinel || groupdel sentinel"""
"""What docs/install.md says for what has no purge of its own."""
UNITS = """\
cp -a /packages/files/. /; systemd-sysusers sentinel.conf; systemd-tmpfiles --create sentinel.conf
systemctl daemon-reload
[ -e /usr/bin/python3 ] || ln -s python3.11 /usr/bin/python3
"""
"""What `make install-files` has laid there. The other packages need no python3, so no system has it."""


@dataclass(frozen=True)
class PackageKind:
    """A kind of package, on which system it is tried, and the commands for it there. `{}` is the file."""

    pattern: str
    """Its name in dist/."""
    system: str
    """The folder in build/systems."""
    install: str
    remove: str
    purge: str
    make_next: Callable[[Path, Path, Path], None]
    """From the first file to the second, the same as the next version; the third is a free folder."""
    python: str = ""
    """The version of an interpreter of this machine that is lent, where the system has another."""
    restarts_itself: bool = True


def make_next_deb(old: Path, new: Path, folder: Path) -> None:
    subprocess.run(["dpkg-deb", "-R", str(old), str(folder)], check=True)
    control = folder / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {__version__}", f"Version: {NEXT}"))
    raise_version(folder)
    subprocess.run(
        ["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(folder), str(new)], check=True
    )


def make_next_rpm(old: Path, new: Path, folder: Path) -> None:
    """Unpacked, and packed again by what `make packages` packs it with."""
    unpack = ["rpm", "-i", "--root", str(folder), "--nodeps", "--noscripts", "--ignoreos", str(old)]
    subprocess.run(unpack, check=True, capture_output=True)
    for place in ("var", "root", "usr/lib/sysimage"):  # rpm's own book
        subprocess.run(["rm", "-rf", str(folder / place)], check=True)
    raise_version(folder)
    code = (
        "import sys; from pathlib import Path; import system_packages;"
        "out, tree, version = sys.argv[1:];"
        "system_packages.pack_rpm(Path(out), Path(tree), version, level=1)"
    )
    out = new.parent / "packed"
    out.mkdir()
    words = [str(out), str(folder), NEXT]
    subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT / "packaging", check=True)
    (packed,) = out.iterdir()
    packed.rename(new)


def make_next_zipapp(old: Path, new: Path, folder: Path) -> None:
    """As `make pyz` makes it, of a wheel of that version; libraries come from the old one."""
    wheel = build_wheel(folder, NEXT)
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-e", str(old), str(folder / "old")], check=True
    )
    site = folder / "site"
    site.mkdir()
    subprocess.run(["tar", "-xf", str(folder / "old/payload.tar.gz"), "-C", str(site)], check=True)
    code = (
        "import sys; from pathlib import Path; import pyz;"
        "pyz.build(Path(sys.argv[1]), sys.argv[2], ['sh', '-c', sys.argv[3], 'sh'])"
    )
    copy = f'cp -a {site} "$2" && python3 -m zipfile -e "$3" "$2"'  # sh --target FOLDER WHEEL
    words = [str(new), str(wheel), copy]
    subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT / "packaging", check=True)


def raise_version(folder: Path) -> None:
    """Its number in the tree of files, and what follows from that."""
    (init,) = folder.rglob("*-packages/sentinel/__init__.py")
    text = init.read_text().replace(f'"{__version__}"', f'"{NEXT}"')
    init.write_text(text)
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    for record in init.parent.parent.glob("slurm_sentinel-*.dist-info/RECORD"):
        row = r"^sentinel/__init__.py,sha256=[^,]+"
        fresh = f"sentinel/__init__.py,sha256={digest}"
        record.write_text(re.sub(row, fresh, record.read_text(), flags=re.MULTILINE))


def describe_deb(pattern: str, system: str, python: str = "") -> PackageKind:
    return PackageKind(
        pattern,
        system,
        install="dpkg -i {}" if not python else "dpkg -i --force-depends {}",
        remove="dpkg -r slurm-sentinel",
        purge="dpkg -P slurm-sentinel",
        make_next=make_next_deb,
        python=python,
    )


KINDS = {
    "deb for Debian 13": describe_deb("slurm-sentinel_*_all.deb", "debian13"),
    "deb for Debian 12": describe_deb("slurm-sentinel_*~debian12_amd64.deb", "debian12"),
    "deb for Ubuntu 22.04": describe_deb("*~ubuntu22.04_amd64.deb", "debian12", "3.10"),
    "deb for Ubuntu 24.04": describe_deb("*~ubuntu24.04_amd64.deb", "debian12", "3.12"),
    "rpm": PackageKind(
        "*.x86_64.rpm",
        "debian12",
        install="rpm -U --oldpackage --nodeps {}",
        remove="rpm -e slurm-sentinel",
        purge=BY_HAND,
        make_next=make_next_rpm,
        python="3.12",
    ),
    "zipapp": PackageKind(
        "sentinel.pyz",
        {(3, 11): "debian12", (3, 13): "debian13"}.get(sys.version_info[:2], "none"),
        install=UNITS + "install -m 755 {} /usr/local/bin/sentinel",
        remove="systemctl disable --now sentinel; cd /packages/files;"
        " find . -type f | (cd /; xargs rm); rm /usr/local/bin/sentinel; systemctl daemon-reload",
        purge=BY_HAND + "; rm -rf /var/tmp/sentinel-* /var/lib/systemd/timers/*sentinel*",
        make_next=make_next_zipapp,
        restarts_itself=False,
    ),
}


def find_lent_python(version: str) -> dict[str, str]:
    """The files of an interpreter of this machine, and their places where it is lent; empty if none."""
    if not version:
        return {}
    for python in sorted(Path("/root/.pyenv/versions").glob(f"{version}.*")):
        lent = {python / f"bin/python{version}": f"/usr/bin/python{version}"}
        lent[python / f"lib/python{version}"] = f"/usr/lib/python{version}"
        libraries = (python / "lib").glob(f"libpython{version}.so.*")
        lent |= {library: f"/usr/lib/{library.name}" for library in libraries}
        return {str(here): there for here, there in lent.items()}
    return {}
