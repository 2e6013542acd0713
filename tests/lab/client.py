"""Slurm's commands as a user of the lab types them."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.accounts import User
from tests.lab.waiting import wait_until

Done = subprocess.CompletedProcess[str]
NOBODYS = ("SLURM_", "SQUEUE_", "SINFO_", "SBATCH_", "SRUN_", "SALLOC_", "SACCT_", "SCANCEL_")
"""Variables of whoever runs the tests that would change what Slurm's commands say."""


SET_BY = re.compile(r" \[[^\s@]+@[\dT:-]{19}\]")


class Client:
    """Runs commands with the lab's SLURM_CONF; every one has a limit in seconds."""

    def __init__(self, conf: Path, work: Path) -> None:
        self._conf, self._work = conf, work

    @property
    def env(self) -> dict[str, str]:
        """This process's environment, pointed at the lab and cleared of other Slurm settings."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(NOBODYS)}
        return kept | {"SLURM_CONF": str(self._conf)}

    def run(
        self,
        argv: Sequence[str],
        *,
        user: User | None = None,
        stdin: str = "",
        limit: float = 30.0,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Run it in the lab's work folder; a failure is in the returncode, never raised."""
        home = {"HOME": str(user.home), "USER": user.name} if user else {}
        return subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=limit,
            env={**self.env, **home, **(env or {})},
            cwd=self._work,
            check=False,
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=os.getgrouplist(user.name, user.gid) if user else None,
        )

    def ask(self, argv: Sequence[str], *, user: User | None = None, stdin: str = "") -> str:
        """What it prints; RuntimeError with its complaint where it fails."""
        done = self.run(argv, user=user, stdin=stdin)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def sbatch(
        self, script: str, *, name: str = "job", user: User | None = None, **options: object
    ) -> str:
        """Submit; `nodes=2, array="0-3%1", hold=True` are sbatch's options. Returns the job id."""
        argv = ["sbatch", "--parsable", f"--job-name={name}"]
        for key, value in options.items():
            option = "--" + key.replace("_", "-")
            argv += [option] if value is True else [f"{option}={value}"]
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        return self.ask(argv, user=user, stdin=text).strip().partition(";")[0]

    def scancel(self, *jobs: str, **options: object) -> None:
        """Cancel the jobs; `signal="KILL"` and the like are scancel's options."""
        self.ask(["scancel", *(f"--{key}={value}" for key, value in options.items()), *jobs])

    def states(self, job: str) -> list[str]:
        """State of the job, one word for each array element that squeue lists; [] once forgotten."""
        asked = self.run(["squeue", "-h", "--states=all", "-j", job, "-o", "%T"])
        if asked.returncode != 0 and "Invalid job id" not in asked.stderr:
            raise RuntimeError(f"squeue -j {job}: {asked.stderr.strip()}")
        return asked.stdout.split()

    def wait_state(self, job: str, state: str, limit: float = 20.0) -> None:
        """Until every element of the job is in the state, such as RUNNING or CANCELLED."""
        wait_until(
            lambda: set(self.states(job)) == {state},
            lambda: f"job {job} {state}; it is {self.states(job)}\n{self.describe(job)}",
            limit,
        )

    def node(self, name: str) -> dict[str, str]:
        """`scontrol show node`: State, Reason, … as strings. A Comment stands behind the Reason, which
        ends with who set it and when."""
        line = self.ask(["scontrol", "-o", "show", "node", name])
        head, found, reason = line.partition(" Reason=")
        if ended := SET_BY.search(reason):
            reason, head = reason[: ended.end()], head + reason[ended.end() :]
        words = (word.partition("=") for word in head.split())
        fields = {key: value for key, _, value in words}
        return {**fields, "Reason": reason.strip()} if found else fields

    def wait_node(self, name: str, *flags: str, limit: float = 40.0) -> None:
        """Until the node's state holds all the flags, such as DOWN, DRAIN, NOT_RESPONDING."""
        wait_until(
            lambda: set(flags) <= set(self.node(name)["State"].split("+")),
            lambda: f"{name} {'+'.join(flags)}; it is {self.node(name)['State']}",
            limit,
        )

    def describe(self, job: str) -> str:
        """What Slurm knows of it, and what the daemons said of it: why a launch failed no squeue tells."""
        logs = ["grep", "-rhw", job, str(self._conf.parent / "log")]
        said = self.run(logs).stdout.splitlines()[-30:]
        return "\n".join([self.run(["scontrol", "show", "job", job]).stdout, *said])
