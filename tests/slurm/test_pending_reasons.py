"""The table of pending reasons, against the names Slurm's source has."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.slurm.pending_reasons import DAY, REASONS, TEXTS, Ends, Reason, explain

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
def test_every_reason_says_what_it_means(reason: Reason) -> None:
    """A person can read each; patience only where something ends by itself."""
    assert reason.meaning
    assert reason.patience is None or reason.ends is Ends.ITSELF


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("Priority", Ends.ITSELF),
        ("Resources", Ends.ITSELF),
        ("Dependency", Ends.ITSELF),
        ("JobArrayTaskLimit", Ends.ITSELF),
        ("BeginTime", Ends.ITSELF),
        ("PartitionDown", Ends.ITSELF),
        ("None", Ends.ITSELF),
        ("AssocGrpGRES", Ends.ITSELF),
        ("AssocGrpGRESRunMinutes", Ends.ITSELF),
        ("(Priority)", Ends.ITSELF),
        ("ReqNodeNotAvail, UnavailableNodes:node-[1-3]", Ends.ITSELF),
        ("ReqNodeNotAvail, Reserved for maintenance", Ends.ITSELF),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
            " partitions",
            Ends.ITSELF,
        ),
        ("Nodes_required_for_job_are_DOWN,_DRAINED,_REBOOTING_or_reserved", Ends.ITSELF),
        ("JobHeldUser,Priority", Ends.ITSELF),
        ("burst_buffer/lua: Stage-out in progress", Ends.ITSELF),
        ("DependencyNeverSatisfied", Ends.PERSON),
        ("JobHeldUser", Ends.PERSON),
        ("JobHeldAdmin", Ends.PERSON),
        ("launch failed requeued held", Ends.PERSON),
        ("launch failure limit exceeded requeued held", Ends.PERSON),
        ("BadConstraints", Ends.PERSON),
        ("AssocGrpCPUMinutesLimit", Ends.PERSON),
        ("AssocGrpGRESMinutes", Ends.PERSON),
        ("QOSMaxGRESPerJob", Ends.PERSON),
        ("PartitionTimeLimit", Ends.PERSON),
        ("Reservation prod was deleted", Ends.PERSON),
        ("License request 'matlab:9' is no longer valid, holding job", Ends.PERSON),
        ("burst_buffer/lua: stage in failed", Ends.PERSON),
        ("RaisedSignal:9(Killed)", Ends.UNKNOWN),
        ("AccountingPolicy", Ends.UNKNOWN),
        ("173", Ends.UNKNOWN),
        ("SomethingOfSlurm31", Ends.UNKNOWN),
        ("", Ends.UNKNOWN),
    ],
)
def test_who_ends_it(text: str, ends: Ends) -> None:
    """A reason ends by itself, needs a person, or is unknown to us."""
    assert explain(text).ends is ends


@pytest.mark.parametrize("family", ["AssocGrp{}Minutes", "QOSGrp{}Minutes"])
def test_used_up_minutes_need_a_person_but_minutes_of_running_jobs_shrink(family: str) -> None:
    """The two differ by one word in the name: Minutes and RunMinutes."""
    for what in ("Energy", "GRES", "License", "BB", "Billing", "Node", "Unknown"):
        assert explain(family.format(what)).ends is Ends.PERSON
        assert explain(family.format(what + "Run")).ends is Ends.ITSELF


def test_down_nodes_and_partitions_are_believed_for_a_day() -> None:
    """What is down comes back by itself, but not for ever; a queue has no such end."""
    assert explain("PartitionDown").patience == DAY
    assert explain("ReqNodeNotAvail, UnavailableNodes:n1").patience == DAY
    assert explain("ReqNodeNotAvail, Reserved for maintenance").patience is None
    assert explain("Priority").patience is None
    assert explain("PartitionDown,Priority").patience is None


@given(st.text())
def test_any_text_gets_an_answer_that_is_safe_to_print(text: str) -> None:
    """A reason is text of others: whatever it holds, the code is one printable line."""
    assert explain(text).code.isprintable()


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_of_two_reasons_the_one_that_ends_by_itself_counts(one: str, other: str) -> None:
    """squeue joins what the tasks of an array wait for: some of them will start."""
    ends = {explain(one).ends, explain(other).ends}
    if Ends.ITSELF in ends:
        assert explain(f"{one},{other}").ends is Ends.ITSELF
    if ends == {Ends.PERSON}:
        assert explain(f"{one},{other}").ends is Ends.PERSON
