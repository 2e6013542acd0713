"""How a version is built, with a release that takes no ten minutes."""

import subprocess
from pathlib import Path

import pytest

from tests.versions import __main__ as command
from tests.versions import build

CONFIGURE = """\
#!/bin/sh
echo run >>configured
for word; do case $word in --prefix=*) echo "HOME=${word#*=}" >src/place;; esac; done
touch config.status
"""
MAKEFILE = """\
include place
all:
\t@test ! -e ../broken || { echo "slurmd.c:5: error: no such header" >&2; exit 1; }
install:
\tmkdir -p $(DESTDIR)$(HOME)/bin $(DESTDIR)$(HOME)/lib/slurm
\t@test -e ../unmunged || touch $(DESTDIR)$(HOME)/lib/slurm/auth_munge.so
\ttouch $(DESTDIR)$(HOME)/lib/slurm/accounting_storage_mysql.so
\twc -l <../configured >$(DESTDIR)$(HOME)/bin/squeue
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources; the cache is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sources = tmp_path / "sources"
    (sources / "src").mkdir(parents=True)
    (sources / "configure").write_text(CONFIGURE)
    (sources / "configure").chmod(0o755)
    (sources / "src/Makefile").write_text(MAKEFILE)
    return sources


def test_a_build_lies_in_the_cache_and_is_not_made_twice(release: Path) -> None:
    """Sources are left as they were; the second time needs none."""
    home = build.build("26.05", release)
    assert (home / "bin/squeue").read_text().split() == ["1"]
    assert not (release / "config.status").exists()
    assert build.build("26.05", Path("/nowhere")) == home
    assert [p.name for p in home.parent.iterdir()] == ["26.05"]


def test_a_build_that_fails_is_named_and_goes_on_where_it_was(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Step, log and the compiler's words; nothing half built is taken for a Slurm."""
    (release / "broken").touch()
    assert command.build_all(["26.05"], release, "") == 1
    told = capsys.readouterr().err
    assert "Slurm 26.05 was not built: make ended with 2" in told
    assert "slurmd.c:5: error: no such header" in told
    assert not build.built("26.05")
    (build.cache() / "26.05.build/source/broken").unlink()
    home = build.build("26.05", release)
    assert (home / "bin/squeue").read_text().split() == ["1"], "configured once"


def test_a_build_without_a_library_is_named_and_configured_anew(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """configure of an old Slurm only warns; then no daemon would start, and nobody could say why."""
    (release / "unmunged").touch()
    assert command.build_all(["20.11"], release, "") == 1
    told = capsys.readouterr().err
    assert "Slurm 20.11 was not built: auth_munge.so not built; needs gcc make libmunge-dev" in told
    assert not build.built("20.11")
    (build.cache() / "20.11.build/source/unmunged").unlink()
    home = build.build("20.11", release)
    assert (home / "bin/squeue").read_text().split() == ["2"], "configured anew"


def test_the_newest_release_of_a_repository_is_taken(release: Path) -> None:
    """By its numbers, not by its letters, and no candidate."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for argv in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *argv], cwd=release, check=True)
    tags = ["slurm-25-11-9-1", "slurm-25-11-10-1", "slurm-25-11-11-0rc1", "slurm-26-05-0-1"]
    for tag in tags:
        subprocess.run([*git, "tag", tag], cwd=release, check=True)
    assert build.newest(tags, "25.11") == "slurm-25-11-10-1"
    assert (build.build("25.11", None, f"file://{release}") / "bin/squeue").exists()
    with pytest.raises(build.NotBuilt, match=r"has no release of Slurm 24\.05"):
        build.build("24.05", None, f"file://{release}")


def test_what_is_no_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A word becomes no path; what is not built is not run."""
    assert command.build_all(["../x"], None, "") == 1
    assert "'../x' is no version of Slurm such as 25.11" in capsys.readouterr().err
    assert command.main(["run", "19.05"]) == 69
