"""The table of pending reasons, against the names Slurm's source has."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.slurm.pending_reason_row import DAY_S, PendingReason, ReasonEnd
from sentinel.slurm.pending_reasons import REASONS, TEXTS, explain_reason

LIST = Path(__file__).with_name("slurm_reasons.txt")
NAMES = [line.split()[0] for line in LIST.read_text().splitlines() if not line.startswith("#")]
# In the documentation only: squeue(1) of 20.11, job_reason_codes.html (the source prints the
# association's name), and what 24.05 and later print for a number out of range.
DOCUMENTED = {"WaitingForScheduling", "QOSMaxBBMinutesPerJob", "InvalidReason"}


def test_the_table_has_exactly_the_names_of_slurm_20_11_to_26_05() -> None:
    """Nothing is forgotten and nothing is made up."""
    assert set(REASONS) == set(NAMES) | DOCUMENTED
    assert len(NAMES) == 221


@pytest.mark.parametrize("reason", [*REASONS.values(), *TEXTS], ids=lambda r: r.code)
def test_every_reason_says_what_it_means(reason: PendingReason) -> None:
    """A person can read each; patience only where something ends by itself."""
    assert reason.meaning
    assert reason.patience is None or reason.ends is ReasonEnd.ITSELF


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("Priority", ReasonEnd.ITSELF),
        ("Resources", ReasonEnd.ITSELF),
        ("Dependency", ReasonEnd.ITSELF),
        ("JobArrayTaskLimit", ReasonEnd.ITSELF),
        ("BeginTime", ReasonEnd.ITSELF),
        ("PartitionDown", ReasonEnd.ITSELF),
        ("None", ReasonEnd.ITSELF),
        ("AssocGrpGRES", ReasonEnd.ITSELF),
        ("AssocGrpGRESRunMinutes", ReasonEnd.ITSELF),
        ("(Priority)", ReasonEnd.ITSELF),
        ("ReqNodeNotAvail, UnavailableNodes:node-[1-3]", ReasonEnd.ITSELF),
        ("ReqNodeNotAvail, Reserved for maintenance", ReasonEnd.ITSELF),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
            " partitions",
            ReasonEnd.ITSELF,
        ),
        ("Nodes_required_for_job_are_DOWN,_DRAINED,_REBOOTING_or_reserved", ReasonEnd.ITSELF),
        ("JobHeldUser,Priority", ReasonEnd.ITSELF),
        ("burst_buffer/lua: Stage-out in progress", ReasonEnd.ITSELF),
        ("DependencyNeverSatisfied", ReasonEnd.PERSON),
        ("JobHeldUser", ReasonEnd.PERSON),
        ("JobHeldAdmin", ReasonEnd.PERSON),
        ("launch failed requeued held", ReasonEnd.PERSON),
        ("launch failure limit exceeded requeued held", ReasonEnd.PERSON),
        ("BadConstraints", ReasonEnd.PERSON),
        ("AssocGrpCPUMinutesLimit", ReasonEnd.PERSON),
        ("AssocGrpGRESMinutes", ReasonEnd.PERSON),
        ("QOSMaxGRESPerJob", ReasonEnd.PERSON),
        ("PartitionTimeLimit", ReasonEnd.PERSON),
        ("Reservation prod was deleted", ReasonEnd.PERSON),
        ("License request 'matlab:9' is no longer valid, holding job", ReasonEnd.PERSON),
        ("burst_buffer/lua: stage in failed", ReasonEnd.PERSON),
        ("RaisedSignal:9(Killed)", ReasonEnd.UNKNOWN),
        ("AccountingPolicy", ReasonEnd.UNKNOWN),
        ("173", ReasonEnd.UNKNOWN),
        ("SomethingOfSlurm31", ReasonEnd.UNKNOWN),
        ("", ReasonEnd.UNKNOWN),
    ],
)
def test_who_ends_it(text: str, ends: ReasonEnd) -> None:
    """A reason ends by itself, needs a person, or is unknown to us."""
    assert explain_reason(text).ends is ends


@pytest.mark.parametrize("family", ["AssocGrp{}Minutes", "QOSGrp{}Minutes"])
def test_used_up_minutes_need_a_person_but_minutes_of_running_jobs_shrink(family: str) -> None:
    """The two differ by one word in the name: Minutes and RunMinutes."""
    for what in ("Energy", "GRES", "License", "BB", "Billing", "Node", "Unknown"):
        assert explain_reason(family.format(what)).ends is ReasonEnd.PERSON
        assert explain_reason(family.format(what + "Run")).ends is ReasonEnd.ITSELF


def test_down_nodes_and_partitions_are_believed_for_a_day() -> None:
    """What is down comes back by itself, but not for ever; a queue has no such end."""
    assert explain_reason("PartitionDown").patience == DAY_S
    assert explain_reason("ReqNodeNotAvail, UnavailableNodes:n1").patience == DAY_S
    assert explain_reason("ReqNodeNotAvail, Reserved for maintenance").patience is None
    assert explain_reason("Priority").patience is None
    assert explain_reason("PartitionDown,Priority").patience is None


@given(st.text())
def test_any_text_gets_an_answer_that_is_safe_to_print(text: str) -> None:
    """A reason is text of others: whatever it holds, the code is one printable line."""
    assert explain_reason(text).code.isprintable()


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_of_two_reasons_the_one_that_ends_by_itself_counts(one: str, other: str) -> None:
    """squeue joins what the tasks of an array wait for: some of them will start."""
    ends = {explain_reason(one).ends, explain_reason(other).ends}
    if ReasonEnd.ITSELF in ends:
        assert explain_reason(f"{one},{other}").ends is ReasonEnd.ITSELF
    if ends == {ReasonEnd.PERSON}:
        assert explain_reason(f"{one},{other}").ends is ReasonEnd.PERSON
