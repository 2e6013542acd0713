"""`sentinel init` over environments that differ: each ends with a file that loads and with what is
not watched; undone, nothing is left. Real processes; what the host lacks is a program of a few lines."""

import http.server
import os
import pty
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.config.loader import load_config
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.lab.smtp import SmtpServer

USUAL = ("sh", "cat", "stat", "tail", "env", "id", "getent", "rm", "dd", "find", "df")
TABLE = """\
#!/bin/sh
file={file}
case $1 in
-l) cat "$file" 2>/dev/null || {{ echo "no crontab for me" >&2; exit 1; }} ;;
-r) rm "$file" ;;
-) cat >"$file" ;;
esac
"""
SYSTEMCTL = '#!/bin/sh\n[ "$2" != is-active ] || echo active\n'
LOGINCTL = "#!/bin/sh\necho yes\n"
Done = subprocess.CompletedProcess[str]


class Account:
    """A fresh home, and a PATH of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.bin, self.env = folder / "home", folder / "bin", dict[str, str]()
        self.home.mkdir()
        self.bin.mkdir()
        for name in USUAL:
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.file = self.home / "sentinel.yaml"

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def sentinel(self, *words: str, alone: bool = False) -> Done:
        env = {"HOME": str(self.home), "PATH": str(self.bin), **self.env}
        space = [str(shutil.which("unshare")), "--pid", "--fork", "--kill-child", "--mount-proc"]
        return subprocess.run(
            [*(space if alone else []), sys.executable, "-m", "sentinel", *words],
            cwd=self.home, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def init(self, *words: str, alone: bool = False) -> Done:
        return self.sentinel("init", "--yes", "-c", str(self.file), *words, alone=alone)

    def tree(self) -> dict[str, int]:
        return {str(p.relative_to(self.home)): p.lstat().st_mode for p in self.home.rglob("*")}


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account(tmp_path)


@pytest.fixture
def cron(tmp_path: Path) -> Iterator[None]:
    """Something that is called cron and runs."""
    shutil.copy(str(shutil.which("sleep")), tmp_path / "cron")
    with subprocess.Popen([tmp_path / "cron", "60"]) as process:
        yield
        process.kill()


class Hook:
    """A web server that answers every message with `status` and `body`."""

    def __init__(self, status: int, body: bytes = b"") -> None:
        heard: list[bytes] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                heard.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                """Nothing."""

        self.heard, self.server = heard, http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/T0K3N"

    def __enter__(self) -> "Hook":
        threading.Thread(target=self.server.serve_forever).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def proven(account: Account, done: Done, *, by: str) -> str:
    """The proof of what was set up; the file loads, and undone nothing is left of it."""
    assert done.returncode == 0, done.stdout + done.stderr
    settings = load_config(str(account.file), CHECKS, CHANNELS).settings
    assert settings.checks
    assert not any(c.plugin.grants() for c in settings.checks if hasattr(c.plugin, "grants"))
    proof = done.stdout.partition("What is watched:")[2]
    assert f"What starts sentinel: {by}" in proof
    assert "  - " in proof.partition("What is not watched:")[2]
    assert account.sentinel("init", "--undo", "--yes", "--purge").returncode == 0
    assert account.tree() == {}
    return proof


def test_without_anything(account: Account) -> None:
    """No Slurm, nobody to tell, nothing that calls it: all of that is said."""
    proof = proven(account, account.init(), by="nothing")
    for gap in ("nothing calls sentinel", "nobody is told away", "no Slurm was found"):
        assert gap in proof


def test_with_slurms_commands_but_no_cluster(account: Account) -> None:
    """No slurm.conf: it is not watched, and not critical for ever."""
    for name in ("squeue", "scontrol", "sbatch"):
        account.program(name, "#!/bin/sh\necho no configuration source >&2\nexit 1\n")
    assert "no Slurm was found" in proven(account, account.init(), by="nothing")


def test_with_a_crontab(account: Account, tmp_path: Path, cron: None) -> None:
    """An empty one is gone again afterwards; lines of others stay."""
    table = tmp_path / "table"
    account.program("crontab", TABLE.format(file=table))
    proven(account, account.init(), by="a line in your crontab")
    assert not table.exists()
    table.write_text("# mine\n")
    assert account.init().returncode == 0
    assert "cron link" in table.read_text()
    account.sentinel("init", "--undo", "--yes", "--purge")
    assert table.read_text() == "# mine\n"


def test_with_a_crontab_that_nobody_reads(account: Account, tmp_path: Path, as_root: None) -> None:
    """No daemon runs, which the list says; in a process table without those of others."""
    account.program("crontab", TABLE.format(file=tmp_path / "table"))
    done = account.init("--by", "crontab", alone=True)
    assert done.returncode == 69
    assert "no cron daemon runs" in done.stderr
    assert account.tree() == {}
    account.file.write_text("checks: {load: {kind: exec, command: [/bin/true]}}\n")
    words = ("cron", "install", "--mode", "crontab", "-c", str(account.file))
    done = account.sentinel(*words, alone=True)
    assert (done.returncode, "nothing reads the crontab" in done.stderr) == (0, True)


def test_with_a_scrontab(account: Account, tmp_path: Path) -> None:
    """Jobs and core-hours are told beforehand."""
    account.program("scrontab", TABLE.format(file=tmp_path / "table"))
    done = account.init()
    assert "1 small job, which wait" in done.stdout
    assert "0.4 core-hours a day" in done.stdout
    proven(account, done, by="a line in your scrontab")


def test_with_a_systemd_that_lingers(account: Account) -> None:
    """Preferred: a pass a minute."""
    account.program("systemctl", SYSTEMCTL)
    account.program("loginctl", LOGINCTL)
    account.env["XDG_RUNTIME_DIR"] = "/run/user/1"
    proven(account, account.init(), by="a timer of your own systemd: one pass every 1m")


def test_with_a_mail_program_only(account: Account, tmp_path: Path) -> None:
    """The test message is in its hands before the file is written."""
    account.program("msmtp", f"#!/bin/sh\ncat >{tmp_path}/mail\n")
    done = account.init("--mail", "me@example.org")
    assert "through the mail program" in done.stdout
    proven(account, done, by="nothing")
    assert "a test message" in (tmp_path / "mail").read_text()


def test_with_a_webhook(account: Account) -> None:
    with Hook(200) as hook:
        proven(account, account.init("--webhook", hook.url), by="nothing")
        assert len(hook.heard) == 1


def test_what_answers_200_to_everything_is_no_webhook(account: Account) -> None:
    """A front page, or the login of a network: nobody would read what goes there."""
    with Hook(200, b"<html><title>Sign in</title></html>") as hook:
        done = account.init("--webhook", hook.url)
    assert (done.returncode, "answered with a web page" in done.stderr) == (69, True)
    assert account.tree() == {}


def test_an_address_with_a_typo_is_asked_for_again(account: Account, tmp_path: Path) -> None:
    """What cannot be an address is said at once; one that is taken is to be looked into."""
    account.program("msmtp", f"#!/bin/sh\ncat >{tmp_path}/mail\n")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "sentinel", "init", "-c", str(account.file), "--by", "none"]
    with subprocess.Popen(
        words, cwd=account.home, env={"HOME": str(account.home), "PATH": str(account.bin)},
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as child:  # fmt: skip
        os.write(ours, b"me@exa mple\nhttps//hook\nme@example.org\ny\n")
        said = child.communicate(timeout=60)[0].decode()
    os.close(ours)
    os.close(theirs)
    assert child.returncode == 0, said
    assert said.count("Where shall alerts go") == 3
    assert "'me@exa mple' is no mail address" in said
    assert "see that it arrives at me@example.org; if not: sentinel init --undo" in said


def test_what_bounces_at_once_writes_nothing(account: Account, smtp: SmtpServer) -> None:
    """Neither a file nor a job; the server's words are told."""
    smtp.refuse("nobody@example.org")
    server = f"localhost:{smtp.port}"
    done = account.init("--mail", "nobody@example.org", "--smtp", server)
    assert done.returncode == 69
    assert "no such user here" in done.stderr
    with Hook(404) as hook:
        done = account.init("--webhook", hook.url)
        assert (done.returncode, "404" in done.stderr) == (69, True)
        assert "T0K3N" not in done.stdout + done.stderr
    done = account.init("--mail", "me@example.org")
    assert "--smtp HOST" in done.stderr
    for wrong in (("--mail", "me"), ("--webhook", "ftp://x"), ("--mail", "a@b.de\nBcc: c@d.de")):
        refused = account.init(*wrong)
        assert refused.returncode in (64, 78)
        assert f"sentinel: {wrong[0]}: " in refused.stderr
    assert account.tree() == {}


def test_a_home_that_cannot_be_written(account: Account, tmp_path: Path, as_root: None) -> None:
    """It says what is in the way; what it had begun elsewhere is gone."""
    account.env["XDG_STATE_HOME"] = str(tmp_path / "state")
    inside = 'mount --bind -o ro "$1" "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside, "sh", account.home, sys.executable, "-m",
         "sentinel", "init", "--yes", "-c", account.file],
        env={"HOME": str(account.home), "PATH": os.environ["PATH"], **account.env},
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 73, done
    assert "Read-only file system; taken back" in done.stderr
    assert not (tmp_path / "state").exists()


def test_root_sets_up_the_whole_cluster(tmp_path: Path, as_root: None) -> None:
    """The service's file and state, on a machine without its unit; then away with both."""
    etc = tmp_path / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache"):
        shutil.copy(f"/etc/{name}", etc / name)
    inside = (
        'mount --bind "$1" /etc && mount -t tmpfs none /var/lib && shift && "$@" init --yes && '
        "cat /etc/sentinel/sentinel.yaml && ls /var/lib/sentinel && "
        '"$@" init --undo --yes --purge && ! ls -d /etc/sentinel && ls /var/lib | wc -l'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside, "sh", etc, sys.executable, "-m", "sentinel"],
        env={"HOME": "/root", "PATH": os.environ["PATH"]},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nstate: /var/lib/sentinel\n" in done.stdout
    assert done.stdout.rstrip().endswith("\n0")


def test_what_is_there_already_stays(account: Account) -> None:
    """A file is never replaced; one that was changed since is kept by --undo, and said so."""
    assert account.init().returncode == 0
    text = account.file.read_text()
    done = account.init()
    assert (done.returncode, account.file.read_text()) == (73, text)
    assert "sentinel add" in done.stderr
    account.file.write_text(text + "# mine\n")
    said = account.sentinel("init", "--undo", "--yes", "--purge").stdout
    assert "kept, because it was changed since" in said
    assert [*account.tree()] == ["sentinel.yaml"]
    assert account.sentinel("init", "--undo", "--yes", "--purge").returncode == 66


def test_undo_takes_the_state_of_passes_too(account: Account) -> None:
    """Alerts, outbox, the lock."""
    account.init()
    assert account.sentinel("tick", "-c", str(account.file)).returncode == 0
    assert account.sentinel("init", "--undo", "--yes", "--purge").returncode == 0
    assert account.tree() == {}


def files_of(account: Account) -> set[str]:
    return {str(name) for name in account.tree()}


def test_undo_asks_and_changes_nothing_before(account: Account) -> None:
    """A dry run shows the list; nobody at a terminal is no yes; a wrong word is refused."""
    account.init()
    before = account.tree()
    dry = account.sentinel("init", "--undo", "--dry-run")
    assert (dry.returncode, account.tree()) == (0, before)
    assert "init --undo will" in dry.stdout
    assert "(--purge removes it too)" in dry.stdout
    asked = account.sentinel("init", "--undo")
    assert (asked.returncode, account.tree()) == (64, before)
    assert "run again with --yes" in asked.stderr
    for words in (
        ("--undo", "--job", "x"),
        ("--undo", "--mail", "a@example.org"),
        ("--undo", "--by", "none"),
        ("--undo", "--user", "x"),
        ("--purge",),
    ):
        refused = account.sentinel("init", *words, "--yes")
        assert (refused.returncode, account.tree()) == (64, before), words
    other = account.sentinel("init", "--undo", "--yes", "-c", "/nowhere/sentinel.yaml")
    assert (other.returncode, account.tree()) == (66, before)
    assert f"init has written {account.file}" in other.stderr


def test_undo_keeps_the_record_of_alerts_unless_told_otherwise(account: Account) -> None:
    """Whoever sets it up anew finds what was told before; --purge takes that too."""
    account.init()
    assert account.sentinel("tick", "-c", str(account.file)).returncode == 0
    undone = account.sentinel("init", "--undo", "--yes", "-c", str(account.file))
    assert undone.returncode == 0, undone.stderr
    assert "kept, with the record of alerts; to remove it: rm -r" in undone.stdout
    assert not account.file.exists()
    assert any(name.endswith(".db") for name in files_of(account))
    assert not any(name.endswith("init.json") for name in files_of(account))
    assert account.init().returncode == 0
    assert "which was there before" in account.sentinel("init", "--undo", "--dry-run").stdout


def test_what_add_wrote_is_no_change_of_the_users(account: Account, tmp_path: Path) -> None:
    """The file is still init's own; an edit by hand makes it the user's."""
    account.init()
    done = account.sentinel("add", "disk", str(tmp_path), "-c", str(account.file))
    assert done.returncode == 0, done.stderr
    assert "was changed" not in account.sentinel("init", "--undo", "--dry-run").stdout
    account.file.write_text(account.file.read_text() + "# mine\n")
    assert account.sentinel("add", "disk", "/", "-c", str(account.file)).returncode == 0
    assert (
        "it was changed since and stays" in account.sentinel("init", "--undo", "--dry-run").stdout
    )


def test_a_proof_by_somebody_else_than_the_service(account: Account, as_root: None) -> None:
    """root may see more than the service's user: the proof says how to make it as that."""
    account.init()
    state = account.home / ".local/state/sentinel"
    os.chown(state, 1, 1)
    said = account.sentinel("config", "check", "--proof", "-c", str(account.file)).stdout
    assert "runuser -u daemon -- sentinel config check --proof" in said
    os.chown(state, 0, 0)
    said = account.sentinel("config", "check", "--proof", "-c", str(account.file)).stdout
    assert "runuser" not in said


def test_nobody_who_could_agree(account: Account) -> None:
    """The list is shown, and nothing is done."""
    done = account.sentinel("init", "-c", str(account.file))
    assert done.returncode == 64
    assert "sentinel init will" in done.stdout
    assert "--yes" in done.stderr
    assert account.tree() == {}


@pytest.mark.long
def test_a_job_a_disk_and_an_address_more(account: Account, smtp: SmtpServer) -> None:
    """Each is one piece of text more, tried where it can be; wrong ones change nothing."""
    assert account.init().returncode == 0
    config, before = ("-c", str(account.file)), account.file.read_text()
    job = "x: $(rm -rf ~) #'\""
    assert account.sentinel("add", "job", job, *config).returncode == 0
    assert account.sentinel("add", "disk", "/tmp/..", *config).returncode == 0
    server = ("--smtp", f"localhost:{smtp.port}")
    done = account.sentinel("add", "mail", "a@example.org", *server, *config)
    assert (done.returncode, len(smtp.mails)) == (0, 1), done.stderr
    assert account.sentinel("add", "mail", "b@example.org", *config).returncode == 0
    settings = load_config(str(account.file), CHECKS, CHANNELS).settings
    assert {c.plugin.name for c in settings.checks if c.common.kind == "job"} == {job}
    assert {"/"} in [{*c.plugin.paths} for c in settings.checks if c.common.kind == "fs"]
    mail = next(c.plugin for c in settings.channels if c.kind == "email")
    assert mail.to == ["a@example.org", "b@example.org"]
    lines = iter(account.file.read_text().splitlines())
    assert all(line in lines for line in before.splitlines())
    assert account.file.stat().st_mode & 0o777 == 0o600
    text = account.file.read_text()
    twice = account.sentinel("add", "mail", "b@example.org", *config)
    assert (twice.returncode, "already" in twice.stdout) == (0, True)
    for wrong in (
        ("disk", "/no/such"),
        ("mail", "not an address"),
        ("job", ""),
        ("job", "a\nb"),
    ):
        assert account.sentinel("add", *wrong, *config).returncode, wrong
    assert account.file.read_text() == text
