"""Bugs that the harness has to find: texts that are replaced in a copy of the package."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]

PLANTED = {
    # What an undrain erased stays erased.
    "overtaken": [("actions/executor.py", "        if window.erased:\n", "        if False:\n")],
    # What `latest` names may go: it is not even followed, else the last look before a removal tells.
    "pointer": [
        (
            "clean/pointers.py",
            "            if link or is_tracker(name):\n"
            "                found.add_named(follow_pointer(fd, path, name, link=link))\n",
            "            if True:\n                pass\n",
        )
    ],
    # A message that was refused counts as sent.
    "lost": [
        (
            "channels/webhook.py",
            "            receipt = await submit_request(request, self.forms, pages=True)\n",
            "            try:\n"
            "                receipt = await submit_request(request, self.forms, pages=True)\n"
            "            except Exception:\n"
            "                receipt = Receipt('taken')\n",
        )
    ],
}  # fmt: skip


def planted(name: str, folder: Path) -> Path:
    """The folder that holds the package with this bug."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "sentinel", folder / "sentinel", ignore=ignored)
    for file, before, after in PLANTED[name]:
        path = folder / "sentinel" / file
        text = path.read_text()
        if text.count(before) != 1:
            raise ValueError(f"{file} has not once {before!r}: the bug is to be planted anew")
        path.write_text(text.replace(before, after))
    return folder
