"""`python -m tests.lab shell|demo|clean`: the lab by hand."""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.lab import claim, ledger, needs, paths

HINTS = """\
lab {index}: {nodes} nodes, Slurm's commands reach it: sinfo, sbatch, srun, squeue, scontrol
  log in to a node     ssh -F $LAB/ssh/ssh_config node-0
  files for jobs       $LAB/work      logs  $LAB/log
  hang the controller  kill -STOP $(cat $LAB/slurmctld.pid); kill -CONT …
exit ends the shell and removes the lab.
"""


def main() -> int:
    """Exit code 69 (sysexits: unavailable) where the lab cannot run on this machine."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    shell = commands.add_parser("shell", help="a shell in a running lab")
    shell.add_argument("--nodes", type=int, default=4)
    demo = commands.add_parser("demo", help="a night on the cluster, told as it happens")
    demo.add_argument("--fast", action="store_true", help="no pauses for reading")
    commands.add_parser("clean", help="remove what killed labs left on this machine")
    args = parser.parse_args()
    if args.command == "clean":
        return clean()
    if missing := needs.why_no_lab():
        print(f"cannot start: {missing}", file=sys.stderr)
        return 69
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return run_shell(args.nodes) if args.command == "shell" else run_demo(fast=args.fast)


def run_shell(nodes: int) -> int:
    """The user's own shell with the lab's environment."""
    from tests.lab.cluster import Lab

    with Lab(nodes=nodes) as lab:
        print(HINTS.format(index=lab.index, nodes=nodes))
        own = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:{needs.SYSTEM_PATH}"
        env = {**lab.env, "LAB": str(lab.folder), "PATH": own}
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to what runs in the shell
        subprocess.run([os.environ.get("SHELL", "/bin/sh")], env=env, check=False)
    return 0


def run_demo(*, fast: bool) -> int:
    """0 when everything came as promised."""
    from tests.lab import demo

    return demo.main(fast=fast)


def clean() -> int:
    """Undo every lab that nobody holds; labs in use are named and left alone."""
    for index in claim.left_over():
        held = claim.try_claim(index)
        if held is None:
            print(f"lab {index} is in use: left alone")
            continue
        ledger.undo(paths.directory(index))
        os.close(held)
        print(f"lab {index} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
