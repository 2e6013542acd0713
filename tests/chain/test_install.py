"""What is installed, and how it is called."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sentinel.chain.folder import ChainFolder
from sentinel.chain.install import (
    BadInstallRequest,
    InstallRequest,
    link_script,
    own_command,
    plan_chain,
)
from sentinel.chain.model import Chain
from sentinel.slurm.client import SlurmClient
from tests.lab import needs


def test_a_zipapp_keeps_the_python_that_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documentation copies it to a name without .pyz."""
    program = tmp_path / "sentinel"
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("__main__.py", "")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert own_command() == (sys.executable, str(program))
    program.write_text("#!/usr/bin/python3\n")
    assert own_command() == (str(program),)


@pytest.mark.parametrize("mode", ["chain", "relay"])
def test_the_script_of_a_link_is_clean_by_shellcheck(tmp_path: Path, mode: str) -> None:
    """Whatever blanks are in the way."""
    tool = needs.find("shellcheck")
    if tool is None:
        needs.skip("needs Debian's shellcheck")
    chain = Chain(
        name="s", every=600, command=("/a b/sentinel",), mode=mode, config="/x y.yaml", strands=1
    )  # type: ignore[arg-type]
    submission = ["sbatch", "--job-name=x", "--requeue", "--output=/dev/null", "/p q/link.sh"]
    (tmp_path / "link.sh").write_text(link_script(chain, ChainFolder("/p q/chain"), submission))
    done = subprocess.run([tool, tmp_path / "link.sh"], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize("option", ["--clusters=other", "-Mother"])
def test_a_chain_stays_on_its_cluster(tmp_path: Path, option: str) -> None:
    """squeue would not show its links, and every link would begin three more."""
    wish = InstallRequest(
        mode="chain", every=600, time_limit=None, strands=3, config="", options=(option,),
        delivers=True, owner="x",
    )  # fmt: skip
    with pytest.raises(BadInstallRequest, match="on one cluster only"):
        plan_chain(wish, str(tmp_path), SlurmClient())
