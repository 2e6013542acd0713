"""The pages for users, followed word by word: each ends with a test alarm received."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.cluster import Lab
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
    path = f"{program.parent}:/usr/local/sbin:/usr/sbin:/usr/bin:/bin"
    return {**env, "HOME": str(folder), "PATH": path, "XDG_STATE_HOME": str(folder / "state")}


def follow(text: str, env: Mapping[str, str]) -> str:
    """Typed line by line; the first that fails ends it."""
    done = subprocess.run(
        ["bash", "-e", "-c", text], env=dict(env), cwd=env["HOME"], capture_output=True, text=True,
        timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alarm(out: str) -> str:
    """The reason of the alarm on the last line."""
    reason: str = json.loads(out.splitlines()[-1])["reason"]
    return reason


def test_a_user_without_rights(fresh: Lab, tmp_path: Path) -> None:
    """A chain that goes on, and an alarm in a file; removed at the end of the page."""
    env = home(tmp_path, fresh.env)
    shown, channel, test = (follow(text, env) for text in blocks("without-rights.md"))
    assert shown.count("pending") == 2
    assert "ok" in channel
    assert alarm(test) == "test"
    assert follow("sentinel cron ensure -c ~/sentinel.yaml", env) == ""
    assert "cancelled" in follow("sentinel cron remove -c ~/sentinel.yaml", env)
    text = (tmp_path / "sentinel.yaml").read_text()
    assert (
        f"cluster: {fresh.ask(['scontrol', 'show', 'config']).split('ClusterName')[1].split()[1]}"
        in text
    )


def test_who_rents_a_few_nodes(tmp_path: Path) -> None:
    """The service for some seconds in a terminal, then an alarm."""
    env = home(tmp_path, {k: v for k, v in os.environ.items() if not k.startswith("SLURM")})
    first, _timer, channel, test = blocks("few-nodes.md")
    follow(first.replace("sentinel run", "timeout --preserve-status 5 sentinel run"), env)
    follow(channel, env)
    assert alarm(follow(test, env)) == "test"


def test_who_runs_the_cluster(tmp_path: Path) -> None:
    """Under a real systemd, with the units as they are in the checkout."""
    if why_no_systemd():
        (pytest.fail if needs.required() else pytest.skip)(str(why_no_systemd()))
    start, before, test = blocks("administrator.md")
    with Systemd(tmp_path / "machine", {}) as machine:

        def say(text: str) -> str:
            done = machine.run("sh", "-e", "-c", f"cd {ROOT}; export HOME=/root; {text}")
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        say(before)
        first, rest = start.split("\n", 1)
        say(first)
        say("chgrp sentinel /etc/sentinel/sentinel.yaml && chmod 640 /etc/sentinel/sentinel.yaml")
        assert "active (running)" in say(rest)
        assert alarm(say(test)) == "test"
