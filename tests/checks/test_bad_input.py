"""Input of a size or a form that nobody means: it is refused in words, or read as far as it goes."""

from __future__ import annotations

import re

import pytest

from sentinel.chain.timers import remove_blocks
from sentinel.checks.checkpoint.files import CheckpointFolder
from sentinel.core.model import Status
from sentinel.gpu import smi
from sentinel.gpu.errors import Unreadable
from sentinel.testing import FixedSlurm
from sentinel.user_files.whose import Whose
from tests.checks.job.making import Watch, check, pending

GPU = '<gpu id="00000000:01:00.0"><product_name>H100</product_name><uuid>GPU-1</uuid></gpu>'
PAGE = f'<?xml version="1.0" ?>\n<nvidia_smi_log><driver_version>570.1</driver_version>{GPU}'
END = "</nvidia_smi_log>"


def test_a_page_of_50_mb_is_refused_in_words() -> None:
    """As a driver prints it that repeats one process without an end."""
    one = "<process_info><pid>1</pid><process_name>python</process_name></process_info>"
    text = PAGE.replace("</gpu>", f"<processes>{one * (50 * 2**20 // len(one))}</processes></gpu>")
    with pytest.raises(Unreadable, match="more than 8 MB"):
        smi.parse(text + END)


def test_a_page_that_is_long_and_not_too_long_is_read() -> None:
    (gpu,) = smi.parse(f"{PAGE}<!-- {'x' * 2**20} -->{END}").gpus
    assert gpu.uuid == "GPU-1"


@pytest.mark.parametrize(
    "reason", ["QOSGrp" + "x" * 10_240, "ReqNodeNotAvail, UnavailableNodes:" + "n1," * 4_000]
)
def test_a_reason_of_10_kb_is_told_in_a_line(reason: str) -> None:
    watch = Watch(check())
    told = watch.see(FixedSlurm(jobs=(pending("11", reason),), nodes=(), partitions={"prod": 4}))
    assert told.status is Status.OK
    assert len(told.summary) < 600
    assert "\n" not in told.summary


@pytest.mark.parametrize(
    "theirs",
    [
        "# BEGIN ANSIBLE MANAGED BLOCK\n0 3 * * * backup\n# END ANSIBLE MANAGED BLOCK\n",
        "# Begin Whenever generated tasks for: app\n0 3 * * * backup\n# End Whenever generated tasks for: app\n",
        "#BEGIN sentinel's little brother\n0 3 * * * backup\n#END sentinel's little brother\n",
        "# END x y\n0 3 * * * backup\n# BEGIN x y\n",
    ],
)
def test_blocks_of_other_tools_stay_as_they_are(theirs: str) -> None:
    ours = "# BEGIN x\n*/5 * * * * ours\n# END x\n"
    for table in (theirs + ours, ours + theirs):
        assert remove_blocks(table, "# BEGIN x", "# END x") == theirs


class ManyNames:
    """Stands for a reader: a thousand steps of a hundred ranks."""

    def list_entries(self, folder: str, whose: Whose, most: int) -> dict[str, float]:
        return {
            f"model_{step:06d}_rank{rank}.pt": float(step)
            for step in range(1000)
            for rank in range(100)
            if (step, rank) != (999, 7)
        }


def test_a_folder_of_100_000_checkpoints_is_listed() -> None:
    match = re.compile(r"model_(\d+)_rank\d+\.pt")
    folder = CheckpointFolder("/c", match, ManyNames(), Whose(user="ann", literal=True))  # type: ignore[arg-type]
    entries = folder.list_checkpoints()
    assert len(entries) == 99_999
    assert {e.step for e in entries if e.lacks} == {999.0}
