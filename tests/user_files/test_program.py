"""The child that opens files has limits of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from sentinel.user_files.program import GREETING, LAST_MOMENT_S, LENGTHS, answer_request

START = "from sentinel.user_files.program import main; main(2**28)"


def test_what_needs_too_much_memory_is_an_answer(tmp_path: Path) -> None:
    """A folder of a user's own file system lists names without end; a sparse file stands for it
    here. The next question is answered by the same child."""
    large, small = tmp_path / "large", tmp_path / "small"
    large.touch()
    os.truncate(large, 2**33)
    small.write_text("words")
    asked = [{"path": str(large), "most": 2**30}, {"path": str(small), "most": 2**10}]
    common = {"do": "read", "user": "", "literal": True, "owned": False, "start": 0, "inode": ""}
    lines = "".join(json.dumps({**common, **one}) + "\n" for one in asked)
    done = subprocess.run(
        [sys.executable, "-c", START], input=lines.encode(), capture_output=True, check=True
    )
    rest, answers = done.stdout.removeprefix(GREETING), list[tuple[dict[str, Any], bytes]]()
    while rest:
        text, data = LENGTHS.unpack_from(rest)
        rest = rest[LENGTHS.size :]
        answers.append((json.loads(rest[:text]), rest[text : text + data]))
        rest = rest[text + data :]
    (refused, nothing), (_, words) = answers
    assert (refused["error"], nothing) == ("it takes more memory than is allowed", b"")
    assert words == b"words"


@pytest.mark.parametrize("moment", [2**62, -(2**62), 253_402_300_801, 1_000_000])
def test_a_time_that_no_calendar_holds_is_the_last_or_the_first_one(moment: int) -> None:
    """utimensat(2) takes 64 bits, and tmpfs keeps them (fs/attr.c, `timestamp_truncate`)."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = os.path.join(folder, "step1")
        subprocess.run(["touch", "-d", f"@{moment}", path], check=True)
        os.symlink("step1", link := os.path.join(folder, "link"))
        subprocess.run(["touch", "-h", "-d", f"@{moment}", link], check=True)
        common = {"user": "", "literal": True, "owned": False, "most": 9}
        told = {
            do: answer_request({"do": do, "path": at, **common})[0]
            for do, at in (
                ("status", path), ("total", path), ("entries", folder), ("link", link),
            )
        }  # fmt: skip
    found = [told["status"]["mtime"], told["total"]["changed"], told["total"]["files"][0][2],
             told["entries"]["entries"]["step1"], told["link"]["changed"]]  # fmt: skip
    assert found == [min(max(moment, 0), LAST_MOMENT_S)] * 5
    assert time.gmtime(LAST_MOMENT_S).tm_year == 9999
