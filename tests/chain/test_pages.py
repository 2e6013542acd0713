"""The pages for users, followed word by word: each ends with a test alarm received."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.cluster import Lab
from tests.lab.cron import NONE
from tests.lab.systemd import ROOT, Systemd, why_no_systemd

PAGES = ROOT / "docs" / "users"


def blocks(page: str) -> list[str]:
    """The commands of a page, as they stand there."""
    return re.findall(r"^```sh\n(.*?)^```", (PAGES / page).read_text(), re.M | re.S)


def home(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of somebody who has just installed sentinel."""
    program = folder / "bin" / "sentinel"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sentinel "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{needs.SYSTEM_PATH}"
    return {**env, "HOME": str(folder), "PATH": path, "XDG_STATE_HOME": str(folder / "state")}


def follow(text: str, env: Mapping[str, str], within: Sequence[str] = ()) -> str:
    """Typed line by line; the first that fails ends it."""
    done = subprocess.run(
        [*within, "bash", "-e", "-c", text], env=dict(env), cwd=env["HOME"], capture_output=True, text=True,
        timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alarm(out: str) -> str:
    """The reason of the alarm on the last line."""
    reason: str = json.loads(out.splitlines()[-1])["reason"]
    return reason


OUTSIDE = """\
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/run/heard", "a") as file:
            print(self.path, file=file)
        self.send_response(200)
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", 8123), Handler).serve_forever()
"""
"""The same, for a machine of its own."""

ADDRESS = "https://hc-ping.com/YOUR-UUID"


@contextmanager
def outside() -> Iterator[tuple[str, list[str]]]:
    """Somebody who waits for signs of life: the address, and what was asked for there."""
    heard: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/my-uuid", heard
        server.shutdown()
        thread.join()


def beat(text: str, env: Mapping[str, str]) -> None:
    """The step of the heartbeat, with an address of one's own: the sign arrives."""
    assert ADDRESS in text
    with outside() as (address, heard):
        follow(text.replace(ADDRESS, address), env)
        assert heard == ["/my-uuid"]


def test_a_user_without_rights(fresh: Lab, tmp_path: Path) -> None:
    """A chain that goes on, and an alarm in a file; removed at the end of the page."""
    env = home(tmp_path, fresh.env)
    del env["XDG_STATE_HOME"]
    file = tmp_path / ".config/sentinel/sentinel.yaml"
    env["SENTINEL_CONFIG"] = str(file)  # where it is for everybody but root, as whom tests run
    start, life, test, undo = blocks("without-rights.md")
    assert "a chain of small Slurm jobs" in follow(start, env, NONE)
    assert follow("sentinel cron status", env).count("pending") == 3
    cluster = fresh.ask(["scontrol", "show", "config"]).split("ClusterName")[1].split()[1]
    assert f"cluster: {cluster}" in file.read_text()
    beat(life, env)
    assert alarm(follow(test, env)) == "test"
    assert follow("sentinel cron ensure", env) == ""
    assert "cancelled" in follow(undo, env)


def test_who_rents_a_few_nodes(tmp_path: Path) -> None:
    """The service for some seconds in a terminal, then an alarm."""
    env = home(tmp_path, {k: v for k, v in os.environ.items() if not k.startswith("SLURM")})
    first, _timer, channel, life, test = blocks("few-nodes.md")
    follow(first.replace("sentinel run", "timeout --preserve-status 5 sentinel run"), env)
    follow(channel, env)
    beat(life, env)
    assert alarm(follow(test, env)) == "test"


CURL = f"""{sys.executable} -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:9650/")' 2>/dev/null"""
"""Asks for the page as a browser on the host does."""


@pytest.mark.long
def test_who_runs_the_cluster(tmp_path: Path) -> None:
    """Under a real systemd, with the units as they are in the checkout."""
    if why_no_systemd():
        needs.skip(str(why_no_systemd()))
    (start, _accounting, proof, reload, channel, _mail, page, life, test) = blocks(
        "administrator.md"
    )
    with Systemd(tmp_path / "machine", {}) as machine:

        def say(text: str) -> str:
            done = machine.run("sh", "-e", "-c", f"cd {ROOT}; export HOME=/root; {text}")
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        # Of `make service` all but pip: there is no network in there.
        say("mount -t tmpfs tmpfs /opt; rm /etc/systemd/system/sentinel*.service")
        say("mkdir -p /opt/sentinel/bin && mv /usr/local/bin/sentinel /opt/sentinel/bin/")
        say("mkdir -p /opt/slurm/bin && ln -s /usr/bin/squeue /opt/slurm/bin/")
        assert "active (running)" in say(f"export PATH=/opt/slurm/bin:$PATH; {start}")
        found = say("tr '\\0' '\\n' </proc/$(systemctl show -P MainPID sentinel)/environ")
        assert "PATH=/opt/slurm/bin:/usr/local/bin:/usr/bin:/bin\n" in found
        checks, _doctor = proof.splitlines()  # no Slurm runs in there: the doctor finds that
        say(checks)
        say(reload)
        say(channel)
        say("ip link set lo up")
        say(page)
        say(f"for n in $(seq 200); do {CURL} && exit; sleep 0.2; done; exit 1")
        machine.put("/run/outside.py", OUTSIDE)
        say(f"systemd-run --quiet {sys.executable} /run/outside.py")
        say(life.replace(ADDRESS, "http://127.0.0.1:8123/my-uuid"))
        say("for n in $(seq 200); do [ -s /run/heard ] && exit; sleep 0.2; done; exit 1")
        assert say("head -n 1 /run/heard") == "/my-uuid\n"
        assert alarm(say(test)) == "test"
