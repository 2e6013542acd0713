"""With whose rights a file is opened, in a process of every kind."""

import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.clean.program import find_root_owner
from sentinel.core.errors import CannotTell
from sentinel.user_files import identity, program
from sentinel.user_files.files import UserFiles
from sentinel.user_files.identity import (
    OpenDenied,
    RightsRequest,
    acting_as,
    changer_of,
    decide_rights,
    find_user,
)
from sentinel.user_files.whose import Whose
from tests.lab import needs
from tests.lab.fuse import Fuse
from tests.user_files.places import (
    ALICE,
    MALLORY,
    file_of,
    folder_of,
    shared_folder,
)

ME = pwd.getpwuid(os.geteuid()).pw_name


def in_child(uid: int, work: Callable[[], object]) -> object:
    """What the work comes to in a process of that user; it goes through JSON."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            if uid != os.geteuid():
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            os.write(into, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(into)
    os.waitpid(pid, 0)
    with open(out, "rb") as file:
        return json.loads(file.read())


def test_whoever_has_a_number_as_a_name_is_not_who_has_that_number(
    monkeypatch: pytest.MonkeyPatch, as_root: None
) -> None:
    """useradd(8) allows no such name, a directory service may. Who may change a path is known by number."""
    named = pwd.struct_passwd((str(MALLORY), "x", ALICE, ALICE, "", "/", "/bin/sh"))
    asked = pwd.getpwnam
    monkeypatch.setattr(
        pwd, "getpwnam", lambda name: named if name == str(MALLORY) else asked(name)
    )
    find_user.cache_clear()
    try:
        assert find_user(str(MALLORY)).uid == ALICE
        with shared_folder() as folder:
            path = folder_of(MALLORY, folder / "hers") / "log"
            file_of(MALLORY, path)
            rights = decide_rights(RightsRequest("", literal=True, owned=False), str(path))
            assert rights.identity is not None
            assert rights.identity.uid == MALLORY
            found = find_root_owner(str(path.parent))
            assert found is not None
            assert found.uid == MALLORY
    finally:
        find_user.cache_clear()


def text_read(path: Path, **request: object) -> str:
    """What is read in this very process, or why nothing is."""
    asked = {"do": "read", "path": str(path), "user": "", "literal": False, "owned": False,
             "start": 0, "most": 99, "inode": "", **request}  # fmt: skip
    told, data = program.answer_request(asked)
    return told.get("error") or data.decode()


@pytest.mark.parametrize(
    "user", ["no such user", "", "-1", "4294967295", "99999999999", "0x0", "²"]
)
def test_whom_this_host_does_not_know_nobody_becomes(user: str) -> None:
    """The last number is "no change" to setreuid(2); a superscript two is a digit to Python."""
    with pytest.raises(OpenDenied, match="knows no user"):
        find_user(user)


def test_an_unknown_user_s_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x")
    with pytest.raises(CannotTell, match="this host knows no user 'nobody here'"):
        UserFiles(5.0, 5.0, {}).read_tail(str(tmp_path / "log"), 9, Whose(user="nobody here"))


def test_one_s_own_file_is_read_by_name_and_by_uid(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine\n")
    for user in (ME, str(os.geteuid())):
        for owned in (False, True):
            whose = Whose(user=user, owned=owned)
            assert UserFiles(5.0, 5.0, {}).read_tail(str(tmp_path / "log"), 9, whose) == "mine\n"


@pytest.mark.root
def test_root_has_a_user_s_rights_for_a_moment_only() -> None:
    """No capability is left meanwhile, and all of root's come back, also after an error."""
    before = _effective()
    with acting_as(find_user(str(MALLORY))):
        assert (os.geteuid(), os.getegid(), os.getgroups()) == (MALLORY, identity.NOBODY_UID, [])
        assert int(_effective(), 16) == 0
    with pytest.raises(ZeroDivisionError), acting_as(find_user(str(MALLORY))):
        raise ZeroDivisionError
    assert (os.geteuid(), _effective()) == (0, before)


def _effective() -> str:
    status = Path("/proc/self/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))


@pytest.mark.root
def test_a_mount_of_a_user_s_is_that_user_s(as_root: None) -> None:
    """The server of a FUSE mount says root owns it all; the kernel escapes no carriage return in a name
    of the mount table."""
    if why := needs.why_no_fuse():
        needs.skip(why)
    with shared_folder() as base:
        for name in ("theirs", "their\rs", "their\x0bs", "their\x1cs"):
            with Fuse(base / name, MALLORY) as fuse:
                assert changer_of(str(fuse.point / "data"), {0}) == MALLORY
        with Fuse(base / "root's") as fuse:
            assert changer_of(str(fuse.point / "data"), {0}) is None


@pytest.mark.root
@pytest.mark.parametrize(
    ("owner", "mode", "read"),
    [
        (0, 0o755, "root"),
        (0, 0o1777, "alice"),
        (MALLORY, 0o755, "mallory"),
        (0, 0o775, "nobody"),
        (0, 0o777, "nobody"),
    ],
)
def test_a_path_that_is_written_out_is_read_as_who_could_change_it(
    owner: int, mode: int, read: str
) -> None:
    """By the owner and the mode of its folder; the file itself is alice's."""
    with shared_folder() as base:
        folder = folder_of(owner, base / "logs", mode)
        log = file_of(ALICE, folder / "log")
        may = decide_rights(RightsRequest("", literal=True, owned=False), str(log))
        names = {"root": "", "alice": str(ALICE), "mallory": str(MALLORY)}
        assert may.become_name == names.get(read, pwd.getpwuid(identity.NOBODY_UID).pw_name)
        with_job = decide_rights(RightsRequest(str(MALLORY), literal=True, owned=False), str(log))
        assert with_job.become_name == ("" if read == "root" else str(MALLORY))


@pytest.mark.root
def test_a_link_on_the_way_counts_with_the_folder_that_it_lies_in() -> None:
    """Root's own link into a folder of root's is root's word; into a user's folder it is not."""
    with shared_folder() as base:
        users = folder_of(MALLORY, base / "user")
        file_of(MALLORY, users / "log", "x")
        file_of(ALICE, folder_of(0, base / "logs") / "log", "x")
        (base / "to-user").symlink_to(users / "log")
        (base / "to-root").symlink_to(base / "user/../logs/log")
        (base / "straight").symlink_to("logs/log")
        ways = {name: decide_rights(RightsRequest("", literal=True, owned=False), str(base / name)).become_name
                for name in ("to-user", "to-root", "straight")}  # fmt: skip
    assert ways == {"to-user": str(MALLORY), "to-root": "", "straight": ""}


@pytest.mark.root
def test_without_root_a_job_s_file_has_to_be_its_user_s() -> None:
    """Nobody can become another user there; what sentinel's own user may read is not shown to who
    turns a link. A path that is written out is its own choice."""
    with shared_folder() as base:
        mallorys = folder_of(MALLORY, base / "mallory")
        log = file_of(MALLORY, mallorys / "log", "iteration 1\n", 0o644)
        token = file_of(ALICE, base / "token")
        link = mallorys / "link"
        link.symlink_to(token)

        def told() -> list[str]:
            job = {"user": str(MALLORY)}
            return [
                text_read(log, **job),
                text_read(link, **job),
                text_read(link, **job, literal=True),
                text_read(token, user=str(ALICE)),
                text_read(token, literal=True),
            ]

        theirs = f"it belongs to {ALICE}, not to {MALLORY}"
        assert in_child(ALICE, told) == [
            "iteration 1\n",
            theirs,
            theirs,
            token.read_text(),
            token.read_text(),
        ]
