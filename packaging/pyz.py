"""Builds sentinel.pyz: `python packaging/pyz.py [--extra postgres] [--find-links DIR] OUT`.

All of sentinel and what it needs in one file, compiled. It fits the Python that builds it.
"""

import argparse
import compileall
import gzip
import hashlib
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "packaging" / "stub.py"
EPOCH = 315_532_800  # 1980: the first year that a zip file knows; the same input, the same file
SUPERFLUOUS = (
    "tests", "test", "*.pyi", "*.c", "*.h", "*.pyx", "*.pxd", "bin",
    "direct_url.json", "uv_cache.json",  # where and when the wheel was made: another at each builder
)  # fmt: skip


def build(out: Path, wanted: str, installer: list[str]) -> None:
    """Install a requirement into a folder by a command like `pip install`, compile, pack."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "site"
        done = subprocess.run([*installer, "--target", str(target), wanted], check=False)
        if done.returncode:
            sys.exit(f"pyz: {wanted} could not be installed; what it says is above")
        remove_superfluous(target)
        # Unchecked: the folder is named by its content, so no source is ever newer.
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(target, quiet=2, invalidation_mode=mode, stripdir=str(target))
        payload = _packed(target, Path(folder) / "payload.tar.gz")
        _write(out, payload)


def remove_superfluous(target: Path) -> None:
    for pattern in SUPERFLUOUS:
        for path in [
            *target.glob(pattern),
            *target.glob(f"*/{pattern}"),
            *target.glob(f"*/*/{pattern}"),
        ]:
            if path.is_dir():
                shutil.rmtree(path)
            elif path.exists():
                path.unlink()


def _packed(target: Path, path: Path) -> bytes:
    with (
        gzip.GzipFile(path, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for entry in sorted(target.rglob("*")):
            tar.add(entry, entry.relative_to(target), recursive=False, filter=_plain)
    return path.read_bytes()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = EPOCH
    return entry


def _write(out: Path, payload: bytes) -> None:
    digest = hashlib.sha256(payload).hexdigest()[:16]
    version = f"{sys.version_info[0]}.{sys.version_info[1]} {sysconfig.get_platform()}"
    stub = STUB.read_text().replace("@DIGEST@", digest).replace("@BUILT_FOR@", version)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py"), stub)
            archive.writestr(zipfile.ZipInfo("payload.tar.gz"), payload)
    out.chmod(0o755)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path, metavar="OUT")
    options.add_argument("--extra", action="append", default=[], metavar="NAME")
    options.add_argument("--find-links", metavar="DIR", help="wheels, where there is no network")
    args = options.parse_args()
    offline = ["--no-index", "--find-links", args.find_links] if args.find_links else []
    extras = f"[{','.join(args.extra)}]" if args.extra else ""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
    build(args.out, f"{ROOT}{extras}", [*pip, *offline])
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.1f} MB, for this Python ({sys.executable})")


if __name__ == "__main__":
    main()
