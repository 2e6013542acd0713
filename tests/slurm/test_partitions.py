"""What `scontrol -o show partition` says of partitions."""

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm.partitions import read_node_counts, read_partition_states

# slurm_sprint_partition_info() in src/api/partition_info.c, 24.05, shortened
LINE = (
    "PartitionName={0} AllowGroups=ALL Default=NO Nodes=n[1-4] PriorityJobFactor=1 PreemptMode=OFF"
    " State={1} TotalCPUs=768 TotalNodes=4 SelectTypeParameters=NONE ResumeTimeout=GLOBAL\n"
)


def test_the_state_of_each_partition_is_read() -> None:
    """As Slurm writes it; one that an older answer leaves out is not known."""
    out = (
        LINE.format("p5", "INACTIVE") + LINE.format("a", "UP")
    ).encode() + b"PartitionName=b X=1\n"
    assert read_partition_states(out) == {"p5": "INACTIVE", "a": "UP"}
    assert read_node_counts(out) == {"p5": 4, "a": 4}
    with pytest.raises(CannotTell):
        read_partition_states(b"Partition main\n")
