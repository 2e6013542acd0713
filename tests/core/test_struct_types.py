"""Threads that decode as one struct for the first time, all at once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RACE = """
import sys, threading
from msgspec import convert, defstruct
from sentinel.core.struct_types import convert_value
sys.setswitchinterval(1e-6)
VALUE = {{"x": {{"b1": 1}}, "y": [{{"b2": 1}}], "a3": "s"}}
def decode():
    barrier.wait()
    {call}(VALUE, Outer)
for _ in range({rounds}):
    Inner = defstruct("Inner", [(f"b{{i}}", int, 0) for i in range(8)])
    parts = [("x", Inner), ("y", list[Inner], []), *[(f"a{{i}}", str, "") for i in range(20)]]
    Outer = defstruct("Outer", parts)
    barrier = threading.Barrier(6)
    threads = [threading.Thread(target=decode) for _ in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("all threads ended")
"""
ALONE = {
    "sentinel/core/struct_types.py",
    "sentinel/config/scalars.py",  # plain types, no structs
    "sentinel/config/convert.py",
    # By one thread of a command, of a pass, or of the page.
    "sentinel/stacks/recordings_child.py",
    "sentinel/init/record.py",
    "sentinel/chain/script_book.py",
    "sentinel/chain/proofs.py",
    "sentinel/chain/folder.py",
    "sentinel/web/auth.py",
    "sentinel/alerting/signed_links.py",
}


def test_no_thread_reads_a_description_that_is_half_made() -> None:
    script = RACE.format(call="convert_value", rounds=60)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "all threads ended"), done.stderr


@pytest.mark.long
def test_msgspec_alone_does_not_survive_it() -> None:
    """When it does, struct_types.py can go."""
    script = RACE.format(call="convert", rounds=1000)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0


def test_nobody_else_decodes_structs() -> None:
    """What a thread may reach goes by struct_types.py."""
    direct = re.compile(
        r"msgspec\.convert\(|from msgspec import .*\bconvert\b|decode\(.*type=(?!dict|tuple|list)"
    )
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "sentinel").rglob("*.py")
        if direct.search(path.read_text(encoding="utf-8"))
    }
    assert found - ALONE == set()
