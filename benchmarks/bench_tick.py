"""How far a reader has to go: the files that one `sentinel tick` with one mail enters.

    python -m benchmarks.bench_tick

Counted with sys.setprofile over sentinel's own functions, in every thread: files entered, and calls
that go from one file to another. This measures how the house is cut, not how fast it is. Without
the extra that draws pictures into mails: who has it reads the state for them, too.
"""

import os
import socket
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

ROOT = str(Path(__file__).resolve().parent.parent / "sentinel") + os.sep

CONFIG = """\
cluster: bench
state: {folder}/state
checks: {{disk: {{kind: fs, paths: [{folder}], crit: {{free: 100PB}}}}}}
channels: {{mail: {{kind: email, to: [a@example.org], from: b@example.org, host: 127.0.0.1, port: {port},
  security: none}}}}
"""


class Walk:
    """The way of one call through the files: which were entered, and how often it changed."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.switches = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(ROOT):
            return
        if frame.f_code.co_name == "<module>":
            return
        here, caller = frame.f_code.co_filename, frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != here:
            self.switches += 1
            self.entered[here.removeprefix(ROOT)] += 1


def run() -> Walk:
    """One tick in this process, against a real SMTP server."""
    from sentinel.cli import main

    sys.modules["resvg_py"] = None  # type: ignore[assignment]
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        server = Controller(Sink(), hostname="127.0.0.1", port=_free_port())
        server.start()
        config = Path(folder, "sentinel.yaml")
        config.write_text(CONFIG.format(folder=folder, port=server.port))
        config.chmod(0o600)
        threading.setprofile(walk)
        sys.setprofile(walk)
        code: object = None
        try:
            sys.argv = ["sentinel", "tick", "--all", "-c", str(config)]
            code = main()
        except SystemExit as end:
            code = end.code
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            server.stop()
    if code:
        raise SystemExit(f"the tick ended with {code}")
    return walk


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def main() -> None:
    found = run()
    for name, count in found.entered.most_common():
        print(f"{count:6}  {name}")
    print(f"{len(found.entered)} files entered, {found.switches} switches between files")


if __name__ == "__main__":
    main()
