"""A file that somebody else wrote, or could, does not run: not as root, not as another user."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.cli.host import ALICE, BOB, ROOT, Host

CONFIG = "checks:\n  fs: {{kind: exec, command: [/bin/sh, -c, 'id -u >> {mark}']}}\n"
PLUGIN = "open('{mark}', 'a').write('imported')\n"
ENTRY = "[sentinel.checks]\nevil = evil_kind:Evil\n"
METADATA = "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n"


@pytest.fixture
def mark(host: Host) -> Path:
    """What a configuration's command writes to; everybody may."""
    return host.give(host.folder / "marks", ROOT, 0o1777) / "mark"


def config(mark: Path) -> str:
    return CONFIG.format(mark=mark)


def refused(done: object, *words: object) -> None:
    """78, nothing on stdout, and one line that names these."""
    assert getattr(done, "returncode", None) == 78, done
    assert getattr(done, "stdout", None) == ""
    assert all(str(word) in getattr(done, "stderr", "") for word in (*words, "is not used")), done


def test_root_never_looks_where_it_stands(host: Host, mark: Path) -> None:
    """`sentinel check fs` in a user's directory ran what that user had written there, as root."""
    there = host.write(host.home(ALICE) / "sentinel.yaml", config(mark), ALICE)
    for words in (["check", "fs"], ["config", "check"], ["status"], ["check", "fs", "--help"]):
        done = host.run(ROOT, *words, cwd=there.parent)
        assert str(there) not in done.stdout + done.stderr
        assert "sentinel.yaml: ok" not in done.stdout
    assert not mark.exists()
    own = host.write(host.folder / "roots" / "sentinel.yaml", config(mark), ROOT)
    assert host.run(ROOT, "check", "fs", cwd=own.parent).stdout.startswith(("OK", "WARN", "CRIT"))
    assert not mark.exists()


@pytest.mark.parametrize(
    "words", [["check", "fs"], ["config", "check"], ["status"], ["tick"], ["nodes", "list"], ["doctor"]],
)  # fmt: skip
def test_a_sudo_that_keeps_the_home_runs_nobodys_file(
    host: Host, mark: Path, words: list[str]
) -> None:
    """Some sudoers keep HOME, and `sudo -E` keeps XDG_CONFIG_HOME: both are the user's then."""
    theirs = host.home(ALICE) / ".config"
    file = host.write(theirs / "sentinel" / "sentinel.yaml", config(mark), ALICE)
    done = host.run(ROOT, *words, HOME=host.home(ALICE))
    refused(done, file, host.home(ALICE), "belongs to daemon", "nobody but root", "-c FILE")
    refused(host.run(ROOT, *words, XDG_CONFIG_HOME=theirs), file)
    assert not mark.exists()


def test_a_file_that_was_named_is_the_callers_word(host: Host, mark: Path) -> None:
    """By -c or by the variable: whoever names it means it."""
    file = host.write(host.home(ALICE) / "mine.yaml", config(mark), ALICE)
    assert host.run(ROOT, "check", "fs", "-c", file).returncode == 0
    done = host.run(ROOT, "check", "fs", SENTINEL_CONFIG=file)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, f"sentinel: configuration: {file}")
    assert mark.read_text() == "0\n0\n"


@pytest.mark.parametrize(
    ("mode", "mend"), [(0o777, "chmod go-w"), (0o775, "chmod g-w"), (0o1777, "")]
)
def test_a_directory_that_others_may_write_to(host: Host, mark: Path, mode: int, mend: str) -> None:
    """With the command that closes it; where it is sticky the file's owner decides."""
    folder = host.folder / "xdg"
    file = host.write(folder / "sentinel" / "sentinel.yaml", config(mark), ROOT)
    folder.chmod(mode)
    done = host.run(ROOT, "check", "fs", XDG_CONFIG_HOME=folder)
    if mend:
        refused(done, file, f"{mend} {folder}, or", "-c FILE")
        assert not mark.exists()
        folder.chmod(0o755)
    assert host.run(ROOT, "check", "fs", XDG_CONFIG_HOME=folder).returncode == 0
    assert mark.read_text() == "0\n" * (1 if mend else 2)


def test_a_configuration_behind_a_link_in_tmp(host: Host, mark: Path) -> None:
    """A link of root's in a sticky directory to another user's file, and one of that user's."""
    drop = host.give(host.folder / "drop", ROOT, 0o1777)
    theirs = host.write(host.folder / "theirs" / "sentinel.yaml", config(mark), ALICE)
    (drop / "sentinel").symlink_to(theirs.parent)
    refused(host.run(ROOT, "check", "fs", XDG_CONFIG_HOME=drop), theirs.parent, "daemon")
    (drop / "sentinel").unlink()
    (drop / "sentinel").symlink_to(host.folder / "gone")
    done = host.run(ROOT, "check", "fs", XDG_CONFIG_HOME=drop)
    assert done.returncode in (0, 1, 2)
    assert "configuration" not in done.stderr
    (host.folder / "gone").mkdir()
    (host.folder / "gone" / "sentinel.yaml").symlink_to(drop / "nobody-has-it-yet")
    refused(host.run(ROOT, "check", "fs", XDG_CONFIG_HOME=drop), drop, "lets everybody put files")
    assert not mark.exists()


def test_users_are_kept_from_each_other_too(host: Host, mark: Path) -> None:
    """One's own file where one stands is used; in another's directory the call ends."""
    shared = host.give(host.folder / "shared", ROOT, 0o1777)
    mine = host.write(shared / "bobs" / "sentinel.yaml", config(mark), BOB)
    assert host.run(BOB, "check", "fs", cwd=mine.parent).returncode == 0
    assert mark.read_text() == "2\n"
    host.write(shared / "sentinel.yaml", config(mark), ALICE)
    refused(host.run(BOB, "check", "fs", cwd=shared), "./sentinel.yaml", "nobody but root and bin")
    assert mark.read_text() == "2\n"


def test_a_umask_of_002_with_a_group_of_ones_own_is_fine(host: Host, mark: Path) -> None:
    """The file may be written by its group, and nobody else is in that."""
    home = host.home(BOB)
    folder = host.give(home / ".config" / "sentinel", BOB, 0o775)
    host.give(folder.parent, BOB, 0o775)
    host.write(folder / "sentinel.yaml", config(mark), BOB, 0o664)
    assert host.run(BOB, "check", "fs").returncode == 0
    (host.etc / "group").write_text((host.etc / "group").read_text().replace("bin:x:2:", "bin:x:2:daemon"))  # fmt: skip
    refused(host.run(BOB, "check", "fs"), "may be written by its group", "chmod g-w")
    assert mark.read_text() == "2\n"


class Site:
    """A directory with a distribution whose kind `evil` leaves a mark when it is imported."""

    def __init__(self, host: Host, mark: Path, uid: int) -> None:
        self.path = host.folder / "site"
        info = self.path / "evil-1.0.dist-info"
        host.write(info / "METADATA", METADATA, uid)
        host.write(info / "entry_points.txt", ENTRY, uid)
        self.module = host.write(self.path / "evil_kind.py", PLUGIN.format(mark=mark), uid)


@pytest.mark.parametrize(
    ("words", "code"), [(["check", "evil"], 78), (["check", "evil", "--help"], 78),
                        (["config", "check", "-c", "FILE"], 2), (["tick", "-c", "FILE"], 0)],
)  # fmt: skip
def test_a_plugin_that_others_could_change_is_not_imported(
    host: Host, mark: Path, words: list[str], code: int
) -> None:
    """Whether it is named by the call or by a file that is believed; the rest of that file runs."""
    site = Site(host, mark, ALICE)
    file = host.write(host.folder / "etc2" / "s.yaml", "checks: {x: {kind: evil}}\n", ROOT)
    said = [str(file) if word == "FILE" else word for word in words]
    done = host.run(ROOT, *said, PYTHONPATH=site.path)
    assert done.returncode == code, done
    told = done.stdout + done.stderr
    assert all(word in told for word in ("'evil'", str(site.path), "belongs to daemon")), told
    assert not mark.exists()


def test_one_file_of_others_is_enough_and_a_listing_goes_on(host: Host, mark: Path) -> None:
    """`sentinel plugins` says why it is not used; with the file given to root it is."""
    site = Site(host, mark, ROOT)
    site.module.chmod(0o666)
    rows = json.loads(host.run(ROOT, "plugins", "--json", PYTHONPATH=site.path).stdout)
    [evil] = [row for row in rows if row["kind"] == "evil"]
    assert f"{site.module} may be written by everybody" in evil["description"]
    assert f"chmod go-w {site.module}" in evil["description"]
    assert not mark.exists()
    site.module.chmod(0o644)
    host.run(ROOT, "check", "evil", PYTHONPATH=site.path)
    assert mark.read_text() == "imported"


def test_a_plugin_inside_of_an_archive(host: Host, mark: Path) -> None:
    """The archive is the file that others could change."""
    site = Site(host, mark, ROOT)
    archive = host.folder / "site.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in site.path.rglob("*"):
            if path.is_file():
                file.write(path, path.relative_to(site.path))
    archive.chmod(0o666)
    refused(host.run(ROOT, "check", "evil", PYTHONPATH=archive), archive)
    assert not mark.exists()
    archive.chmod(0o644)
    host.run(ROOT, "check", "evil", PYTHONPATH=archive)
    assert mark.read_text() == "imported"


def test_a_refused_file_names_no_plugin(host: Host, mark: Path) -> None:
    """It is not even read: a plugin that is believed is not imported on its word."""
    site = Site(host, mark, ROOT)
    theirs = host.home(ALICE) / ".config" / "sentinel" / "sentinel.yaml"
    host.write(theirs, "checks: {x: {kind: evil}}\n", ALICE)
    for words in (["config", "check"], ["status"], ["check", "x"]):
        refused(host.run(ROOT, *words, HOME=host.home(ALICE), PYTHONPATH=site.path), theirs)
    done = host.run(ROOT, "check", "fs", "--help", HOME=host.home(ALICE), PYTHONPATH=site.path)
    assert done.returncode == 0
    assert not mark.exists()


def test_root_mends_no_chain_of_somebody_elses(host: Host) -> None:
    """A chain's folder says what is submitted; it is found beside the state of HOME."""
    folder = host.home(ALICE) / ".local" / "state" / "sentinel" / "chain"
    host.write(folder / "chain.json", "{}", ALICE)
    refused_line = f"the chain in {folder} is not used by root: "
    done = host.run(ROOT, "cron", "ensure", HOME=host.home(ALICE))
    assert (done.returncode, refused_line in done.stderr) == (78, True), done
