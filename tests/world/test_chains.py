"""Schedules as people write them, and tables of cron that others write to as well."""

from __future__ import annotations

import pytest

from sentinel.chain.timers import remove_blocks
from sentinel.core.cron import parse_cron
from sentinel.core.errors import Invalid
from tests.world.case import Case, each

CRONIE = "https://github.com/cronie-crond/cronie (crontab(5): Sunday is 0 and 7)"
OTHER_NIGHT = "A backup or a check runs on the wrong days, or never."
FOREIGN = "Somebody else's job is gone from the crontab, and nobody is told."


@each(
    Case("the-week-end", CRONIE, "0 3 * * sat-sun", (0, 6), OTHER_NIGHT),
    Case("from-friday", CRONIE, "0 3 * * fri-sun", (0, 5, 6), OTHER_NIGHT),
    Case("in-numbers", CRONIE, "0 3 * * 6-7", (0, 6), OTHER_NIGHT),
    Case("working-days", CRONIE, "0 3 * * mon-fri", (1, 2, 3, 4, 5), OTHER_NIGHT),
    Case("all-days", CRONIE, "0 3 * * sun-sat", (0, 1, 2, 3, 4, 5, 6), OTHER_NIGHT),
    Case("sunday-alone", CRONIE, "0 3 * * 0-0", (0,), OTHER_NIGHT),
    Case("with-a-step", CRONIE, "0 3 * * fri-sun/2", (0, 5), OTHER_NIGHT),
)
def test_a_range_that_ends_on_sunday_goes_up_to_it(case: Case) -> None:
    assert parse_cron(case.form).weekdays == case.right


@each(
    Case("over-the-week", CRONIE, "0 3 * * fri-mon", "write sun,mon,fri,sat", OTHER_NIGHT),
    Case("the-night", CRONIE, "0 22-2 * * *", "write 0,1,2,22,23", OTHER_NIGHT),
    Case("the-winter", CRONIE, "0 0 1 nov-feb *", "write jan,feb,nov,dec", OTHER_NIGHT),
    Case("with-a-step", CRONIE, "50-10/10 * * * *", "write 0,10,50", OTHER_NIGHT),
)
def test_who_refuses_a_range_recommends_the_same_schedule(case: Case) -> None:
    with pytest.raises(Invalid) as refused:
        parse_cron(case.form)
    advice = str(refused.value).rpartition("; ")[2]
    assert advice == case.right
    index = next(i for i, field in enumerate(case.form.split()) if "-" in field)
    fields = case.form.split()
    fields[index] = advice.removeprefix("write ")
    parse_cron(" ".join(fields))


BEGIN, END = "# BEGIN x", "# END x"


@each(
    Case("the-end-is-lost", "crontab -e by hand", f"a\n{BEGIN}\nours\ntheirs\n", "missing", FOREIGN),
    Case("the-begin-is-lost", "crontab -e by hand", f"a\nours\n{END}\nb\n", "before it", FOREIGN),
    Case(
        "two-begins", "crontab -l | crontab -, twice",
        f"{BEGIN}\nours\ntheirs\n{BEGIN}\nours\n{END}\n", "between two", FOREIGN,
    ),
)  # fmt: skip
def test_a_table_with_half_a_block_is_not_written(case: Case) -> None:
    with pytest.raises(ValueError, match=case.right):
        remove_blocks(case.form, BEGIN, END)


@each(
    Case("a-whole-block", "crontab(5)", f"a\n{BEGIN}\nours\n{END}\nb\n", "a\nb\n", FOREIGN),
    Case(
        "two-whole-blocks", "crontab(5)",
        f"{BEGIN}\nx\n{END}\na\n{BEGIN}\ny\n{END}\n", "a\n", FOREIGN,
    ),
    Case("no-block", "crontab(5)", "a\n\x0cb", "a\n\x0cb", FOREIGN),
    Case("nothing", "crontab(5)", "", "", FOREIGN),
    Case("another-tools-marks", "Ansible's cron module", "#Ansible: x\n0 1 * * * y\n",
         "#Ansible: x\n0 1 * * * y\n", FOREIGN),
)  # fmt: skip
def test_all_else_in_the_table_stays(case: Case) -> None:
    assert remove_blocks(case.form, BEGIN, END) == case.right
