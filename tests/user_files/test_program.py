"""The child that opens files has limits of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sentinel.user_files.program import GREETING, LENGTHS

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
