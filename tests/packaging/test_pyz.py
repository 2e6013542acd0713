"""sentinel.pyz: one file that unpacks itself once per host, and trusts nobody's folder.

Built here around a sentinel of one line; that of all lines is measured by benchmarks/bench_zipapp.py.
"""

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.lab.systemd import ROOT


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pyz", ROOT / "packaging/pyz.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pyz(tmp_path: Path) -> Path:
    """A bundle whose sentinel prints where it is and its words."""
    site = tmp_path / "site" / "sentinel"
    site.mkdir(parents=True)
    (site / "__init__.py").touch()
    (site / "cli.py").write_text(
        "import sys\ndef run_process():\n    print(__file__, sys.argv[1:])\n    sys.exit(7)\n"
    )
    made = builder()
    out = tmp_path / "sentinel.pyz"
    made._write(out, made._packed(site.parent, tmp_path / "payload.tar.gz"))
    return out


def run(pyz: Path, cache: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": "/usr/bin:/bin", "SENTINEL_CACHE": str(cache), "HOME": str(cache)}
    return subprocess.run(
        [sys.executable, str(pyz), *words], env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_it_unpacks_once_and_passes_on_words_and_exit_code(pyz: Path, cache: Path) -> None:
    """The second start finds what the first has made."""
    first = run(pyz, cache, "check", "fs")
    assert (first.returncode, first.stdout.endswith("['check', 'fs']\n")) == (7, True)
    (place,) = cache.iterdir()
    made = place.stat().st_mtime_ns
    assert run(pyz, cache).returncode == 7
    assert place.stat().st_mtime_ns == made
    assert place.stat().st_mode & 0o777 == 0o700


def test_several_first_starts_at_once_all_work(pyz: Path, cache: Path) -> None:
    """One of them makes the folder, whole; nothing of the others is left."""
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(run(pyz, cache).returncode)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (codes, len(list(cache.iterdir()))) == ([7] * 4, 1)


@pytest.mark.root
@pytest.mark.parametrize("how", ["writable", "stranger's", "link"])
def test_a_folder_that_others_could_have_filled_is_not_used(
    pyz: Path, cache: Path, how: str
) -> None:
    """Another place is taken."""
    run(pyz, cache)
    (place,) = cache.iterdir()
    if how == "writable":
        place.chmod(0o777)
    elif how == "stranger's":
        os.chown(place, 12345, 12345)
    else:
        place.rename(cache.parent / "elsewhere")
        place.symlink_to(cache.parent / "elsewhere")
    other = cache.parent / "other"
    other.mkdir()
    env = {"PATH": "/usr/bin:/bin", "SENTINEL_CACHE": str(cache), "TMPDIR": str(other)}
    argv = [sys.executable, str(pyz)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith(str(other))) == (7, True)


def aged(cache: Path, days: float) -> Path:
    """As if it had been unpacked so many days ago."""
    (place,) = cache.iterdir()
    then = time.time() - days * 86400
    os.utime(place / ".whole", (then, then))
    return place


@pytest.mark.parametrize("what", ["a module", "all but the folder"])
def test_what_a_cleaner_has_taken_is_unpacked_again(pyz: Path, cache: Path, what: str) -> None:
    """Files of /tmp go after ten days without use: those of a command that nobody called."""
    run(pyz, cache)
    place = aged(cache, 11)
    (place / "sentinel/cli.py").unlink()
    if what != "a module":
        (place / ".whole").unlink()
    done = run(pyz, cache)
    assert (done.returncode, done.stderr) == (7, "")
    assert [path.name for path in cache.iterdir()] == [place.name]


def test_what_is_used_is_kept_from_cleaners(pyz: Path, cache: Path) -> None:
    """Every second day all files are touched, also those that are seldom read."""
    run(pyz, cache)
    place = aged(cache, 3)
    seldom = place / "sentinel/__init__.py"
    os.utime(seldom, (0, 0))
    assert run(pyz, cache).returncode == 7
    assert seldom.stat().st_mtime > time.time() - 3600


@pytest.mark.root
def test_a_full_disk_leaves_nothing_behind_and_another_place_is_taken(
    pyz: Path, cache: Path
) -> None:
    """Each start would leave one piece more."""
    other = cache.parent / "other"
    other.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=4", "none", str(cache)], check=True)
    try:
        env = {"PATH": "/usr/bin:/bin", "SENTINEL_CACHE": str(cache), "TMPDIR": str(other)}
        argv = [sys.executable, str(pyz)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.startswith(str(other))) == (7, True)
        assert list(cache.iterdir()) == []
    finally:
        subprocess.run(["umount", str(cache)], check=True)


def test_another_python_is_told_what_it_was_built_for(pyz: Path, cache: Path) -> None:
    """Native modules fit no other; the remedy is in the message."""
    data = pyz.read_bytes()
    wanted = f"{sys.version_info[0]}.{sys.version_info[1]} ".encode()
    pyz.write_bytes(
        data.replace(b'BUILT_FOR = "' + wanted, b'BUILT_FOR = "' + b"2.7 ".ljust(len(wanted)))
    )
    done = run(pyz, cache)
    assert done.returncode == 1
    assert "was built for Python 2.7" in done.stderr
    assert "make pyz" in done.stderr


def test_where_and_when_a_wheel_was_made_is_not_packed(tmp_path: Path) -> None:
    """Installers write that down: another text at each builder, and the path of a checkout."""
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        info = '"$2"/slurm_sentinel-1.dist-info'
        script = f"mkdir -p {info}; echo {name} >{info}/direct_url.json; echo {name} >{info}/uv_cache.json"
        builder().build(tmp_path / name / "sentinel.pyz", "wanted", ["sh", "-ec", script, "sh"])
    first, again = ((tmp_path / name / "sentinel.pyz").read_bytes() for name in ("first", "again"))
    assert first == again
