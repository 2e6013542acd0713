"""What is installed, and how it is called."""

import sys
import zipfile
from pathlib import Path

import pytest

from sentinel.cron.install import BadWish, Wish, chain_of, this_command
from sentinel.slurm.client import Client


def test_a_zipapp_keeps_the_python_that_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documentation copies it to a name without .pyz."""
    program = tmp_path / "sentinel"
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("__main__.py", "")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert this_command() == (sys.executable, str(program))
    program.write_text("#!/usr/bin/python3\n")
    assert this_command() == (str(program),)


@pytest.mark.parametrize("option", ["--clusters=other", "-Mother"])
def test_a_chain_stays_on_its_cluster(tmp_path: Path, option: str) -> None:
    """squeue would not show its links, and every link would begin three more."""
    wish = Wish(
        mode="chain", every=600, time_limit=None, strands=3, config="", options=(option,),
        delivers=True, owner="x",
    )  # fmt: skip
    with pytest.raises(BadWish, match="on one cluster only"):
        chain_of(wish, str(tmp_path), Client())
