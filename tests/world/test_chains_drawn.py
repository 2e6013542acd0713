"""Cron, chains and time, drawn by a seed from `sources/chains.txt`; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from sentinel.chain.timers import remove_blocks
from sentinel.core.cron import iterate_times, parse_cron
from sentinel.slurm.submission import submitted_job
from tests.world.case import Case, each
from tests.world.slurm_answers import GITHUB, field, seconds, waits

COST = "A backup or a check runs on the wrong days or never, or somebody's crontab loses a line."
BEGIN, END = "# BEGIN x", "# END x"
OURS = f"{BEGIN}\n*/5 * * * * ours\n{END}\n"


def times(schedule: str, zone: str, first: str, last: str) -> list[str]:
    """When it comes between two moments of UTC, in UTC."""
    begin, end = (datetime.fromisoformat(f"{text}+00:00").timestamp() for text in (first, last))
    found = iterate_times(parse_cron(schedule), begin, end, ZoneInfo(zone))
    return [f"{datetime.fromtimestamp(one, tz=ZoneInfo('UTC')):%d %H:%M}" for one in found]


def kept(table: str) -> str:
    return remove_blocks(table, BEGIN, END)


# Seed 2242, from 62 sources.
DRAWN_1 = (
    Case("at-boot", GITHUB + "takumakanari/cronv/issues/23", lambda: field("@reboot", "minutes"), "refused", COST),
    Case("a-line-twice", GITHUB + "kiwix/container-images/pull/215", lambda: kept(f"{OURS}0 1 * * * theirs\n{OURS}0 1 * * * theirs\n"), "0 1 * * * theirs\n0 1 * * * theirs\n", COST),
    Case("not-set", GITHUB + "aiidateam/aiida-core/issues/3415", lambda: seconds("NOT_SET"), None, COST),
    Case("once-a-day", GITHUB + "cronie-crond/cronie/issues/197", lambda: times("30 18 * * *", "UTC", "2024-12-12 00:00", "2024-12-15 00:00"), ["12 18:30", "13 18:30", "14 18:30"], COST),
    Case("scrontab-between-two-runs", GITHUB + "neilmunday/slurm-mail/pull/177", lambda: waits("BeginTime", "REQUEUED_CRON"), "waits", COST),
    Case("every-other-minute", GITHUB + "javan/whenever/pull/576", lambda: field("*/2 * * * *", "minutes"), tuple(range(0, 60, 2)), COST),
    Case("clocks-go-back-once", GITHUB + "laravel/docs/pull/4057", lambda: times("30 1 * * *", "Europe/London", "2022-10-29 12:00", "2022-10-30 12:00"), ["30 00:30"], COST),
    Case("midnight-that-is-left-out", GITHUB + "Hexagon/croner/issues/132", lambda: times("0 0 * * *", "America/Santiago", "2025-09-06 00:00", "2025-09-08 12:00"), ["06 04:00", "07 04:00", "08 03:00"], COST),
    Case("two-o-clock-in-spring", GITHUB + "rundeck/rundeck/issues/3234", lambda: times("0 2 * * *", "America/New_York", "2018-03-10 12:00", "2018-03-12 12:00"), ["11 07:00", "12 06:00"], COST),
    Case("unlimited", GITHUB + "ascii-supply-networks/dagster-slurm/pull/185", lambda: (seconds("UNLIMITED"), seconds("INVALID")), (None, None), COST),
    Case("seven-fields", GITHUB + "aptible/supercronic/pull/27", lambda: field("*/5 * * * * * *", "minutes"), "refused", COST),
    Case("a-step-over-the-field", GITHUB + "netresearch/go-cron/issues/89", lambda: (field("*/60 * * * *", "minutes"), field("*/0 * * * *", "minutes"), field("0 */2 * * *", "hours")[:3]), ("refused", "refused", (0, 2, 4)), COST),
    Case("two-lines-of-sbatch", GITHUB + "tgen/jetstream/issues/18", lambda: submitted_job(b'sbatch: error: "SBATCH_EXCLUSIVE=true" -- invalid value, ignoring...\n1152535\n'), "1152535", COST),
    Case("daily-in-august", GITHUB + "InfoSecWarrior/Linux-Essentials/pull/175", lambda: field("5 0 * 8 *", "months"), (8,), COST),
    Case("others-around-it", GITHUB + "rumd3x/cronjob-manager/pull/3", lambda: kept(f"MAILTO=a\n{OURS}\n# b\n"), "MAILTO=a\n\n# b\n", COST),
)  # fmt: skip
DRAWN_2 = (
    Case("tuesday-to-sunday", GITHUB + "waldner/croncal/pull/2", lambda: field("15 21 * * 2-7", "weekdays"), (0, 2, 3, 4, 5, 6), COST),
    Case("without-a-block", GITHUB + "offen/docker-volume-backup/pull/140", lambda: kept(kept(f"{OURS}@weekly backup\n")), "@weekly backup\n", COST),
    Case("every-other-working-day", GITHUB + "agronholm/apscheduler/pull/1117", lambda: field("0 0 * * 1-5/2", "weekdays"), (1, 3, 5), COST),
    Case("entered-again", GITHUB + "fluidkeys/fluidkeys/pull/161", lambda: kept(OURS + OURS + OURS), "", COST),
    Case("monday-to-friday", GITHUB + "cronie-crond/cronie/issues/107", lambda: field("1 16 * * 1-5", "weekdays"), (1, 2, 3, 4, 5), COST),
    Case("entries-of-ansible", GITHUB + "weareinteractive/ansible-cron/issues/11", lambda: kept(f"#Ansible: daily\n@daily run-parts /etc/cron.daily\n{OURS}"), "#Ansible: daily\n@daily run-parts /etc/cron.daily\n", COST),
    Case("a-star-with-a-step-and-a-weekday", GITHUB + "pallets-eco/croniter/issues/41", lambda: times("0 16 */2 * FRI", "UTC", "2023-05-01 00:00", "2023-05-20 00:00"), ["05 16:00", "19 16:00"], COST),
    Case("ninety-minutes", GITHUB + "mlr-org/batchtools/pull/218", lambda: seconds("1:30:00"), 5400, COST),
    Case("at-boot-in-capitals", GITHUB + "javan/whenever/pull/202", lambda: field("@Reboot", "minutes"), "refused", COST),
    Case("an-hour-a-minute-a-second", GITHUB + "CoBrALab/qbatch/issues/209", lambda: seconds("1:01:01"), 3661, COST),
    Case("marked-lines-of-another-tool", GITHUB + "SiderealPress/Lobster/pull/527", lambda: kept(f"*/4 * * * * /opt/health.sh # LOBSTER-HEALTH\n{OURS}"), "*/4 * * * * /opt/health.sh # LOBSTER-HEALTH\n", COST),
    Case("annually", GITHUB + "bradymholt/cRonstrue/issues/351", lambda: (field("@annually", "months"), field("@annually", "days")), ((1,), (1,)), COST),
    Case("every-other-hour-of-the-day", GITHUB + "zslayton/cron/issues/19", lambda: field("0 9-17/2 * * *", "hours"), (9, 11, 13, 15, 17), COST),
    Case("weekly", GITHUB + "fabridamicelli/cronex.nvim/issues/14", lambda: field("@weekly", "weekdays"), (0,), COST),
    Case("every-ten-seconds", GITHUB + "sageox/agent-toolkit/pull/77", lambda: field("@every 10s", "minutes"), "refused", COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2)
def test_a_form_of_time_that_was_drawn(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
