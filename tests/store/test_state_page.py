"""docs/state.md says what is so: each of its sentences names the tests that hold it to that."""

import re
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.core.model import Batch, Receipt, Sample
from sentinel.store.retention import DAY_S
from sentinel.store.sql import SqlStore
from sentinel.store.sqlite import SqliteBackend
from tests.lab.systemd import ROOT
from tests.store.nouns import at, outgoing

PAGE = (ROOT / "docs/state.md").read_text(encoding="utf-8")
ADVICE = "advice, or where something is explained"
CONTRACT, BUFFERED, DAMAGE = "store/contract.py", "store/test_buffered.py", "store/test_damage.py"
FAILOVER, OUTAGE, FULL = (
    "store/test_failover.py",
    "engine/test_outage.py",
    "store/test_full_disk.py",
)
SQLITE, OPENING, JOURNAL = "store/test_sqlite.py", "store/test_opening.py", "store/test_journal.py"
LEASE, LOCK, LOCKS = "store/test_lease.py", "store/test_lock.py", "store/test_locks.py"
POSTGRES, MIGRATIONS = "store/test_postgres.py", "store/test_migrations.py"
COPIES = "store/test_copies.py"
UNREADABLE = "store/test_unreadable.py"
PROOF = "store/test_server_proof.py"
STATE, CANNOT = "cli/test_state.py", "wiring/test_cannot_start.py"

BOUND: dict[str, str | tuple[str, str]] = {
    "sentinel remembers things between passes": (CONTRACT, "what_is_committed_is_what_others_read"),
    "`state:` says where": ADVICE,
    "| a directory, e.g.": (OPENING, "a_missing_directory_is_made_for_its_owner_alone"),
    "| `postgresql://user@host/database`": (POSTGRES, "two_schemas_of_one_database_are_two_states"),
    "| open alerts; the last run": (CONTRACT, "what_is_open_or_unsent_is_never_forgotten"),
    "| messages not sent yet": (CONTRACT, "what_is_open_or_unsent_is_never_forgotten"),
    "| messages that were sent": (CONTRACT, "old_things_are_forgotten"),
    "| transitions (fired": (CONTRACT, "old_things_are_forgotten"),
    "| the ledger of runs": (CONTRACT, "the_ledger_of_runs_is_kept_for_two_years"),
    "| numbers (samples)": (CONTRACT, "of_old_hours_the_last_sample_is_kept"),
    "A sample takes about 16 bytes": ("store/test_state_page.py", "a_sample_takes_about_16_bytes"),
    "Each run that has numbers takes": (
        "store/test_state_page.py",
        "a_run_with_numbers_takes_some_200_bytes",
    ),
    "Samples of the last day lie": ("store/test_samples.py", "a_pass_writes_few_pages"),
    "Once an hour a service or `tick` forgets": ("engine/test_housekeeping.py", "ticks_forget"),
    "SQLite uses the freed space again": ("store/test_state_page.py", "freed_space_is_used_again"),
    "Only their owner can read them": (SQLITE, "its_files_are_its_owners_alone"),
    "A database that belongs to somebody": (
        "store/test_squatters.py",
        "a_database_of_somebody_else_is_not_used",
    ),
    "| `sentinel.db`, with": (SQLITE, "the_journal_follows_the_file_system"),
    "| `lock` | held by": (LOCK, "one_holds_it_and_is_named"),
    "| `journal` | 2 MB": (JOURNAL, "what_is_reserved_is_empty_and_private"),
    "| `sentinel.db.before-schema-<number>`": (COPIES, "a_change_of_the_schema_leaves_a_copy"),
    "| `sentinel.db.replaced-<UTC time>`": (COPIES, "a_copy_is_put_back"),
    "| `sentinel.db.damaged-<UTC time>`": (DAMAGE, "a_damaged_file_is_kept_aside"),
    "One sentinel leads at a time": (CONTRACT, "two_do_not_lead_at_once"),
    "Every write carries the leader's number": (CONTRACT, "an_old_token_writes_nothing"),
    "On local file systems SQLite": (SQLITE, "the_journal_follows_the_file_system"),
    "So too on Btrfs": (OUTAGE, "told_once"),
    "What was committed survives": ("store/test_processes.py", "kill_9_loses_no_batch"),
    "A network file system must have locks": (
        LOCKS,
        "locks_that_hold_on_one_node_only_are_refused",
    ),
    "A local disk is the better place": ADVICE,
    "| `the state … cannot be read`": (STATE, "another_users_state_is_not_an_empty_one"),
    "| `not writable by uid …`": (OPENING, "another_users_state"),
    "| `database or disk is full`": (FULL, "watching_goes_on_and_is_written_when_there_is_room"),
    "| `… writes wait in memory": (BUFFERED, "too_many_writes_keep_what_matters"),
    "| `… is a link and not followed`": (JOURNAL, "a_planted_link_is_not_followed"),
    "While PostgreSQL is down": ADVICE,
    "So sentinel sends no password": (PROOF, "a_false_server_gets_no_password_wherever_it_lies"),
    "These count as proof": ADVICE,
    "- SCRAM or Kerberos": (PROOF, "a_server_that_asks_by_scram_goes_on"),
    "- TLS that is verified": (PROOF, "verified_tls_goes_on_whatever_the_server_asks_for"),
    "`require` encrypts, but": (PROOF, "verified_tls_goes_on_whatever_the_server_asks_for"),
    "- A Unix socket in a folder": (PROOF, "a_socket_is_known_by_its_folder_or_its_user"),
    "A server that asks for no password": (
        PROOF,
        "a_server_that_asks_for_no_proof_is_not_believed",
    ),
    "What you write as `require_auth`": (PROOF, "what_a_person_says_of_it_wins"),
    "All of it may stand in the environment": (PROOF, "what_a_person_says_of_it_wins"),
    "libpq before 16 cannot demand": (PROOF, "an_old_libpq_is_told"),
    "Then `config check`, `doctor`": (PROOF, "an_old_libpq_is_told"),
    "`pip install 'slurm-sentinel[postgres]'` brings": ADVICE,
    "Other roles of the server": (POSTGRES, "no_operator_of_another_role_runs_as_sentinel"),
    "`REVOKE CONNECT ON DATABASE": ADVICE,
    "| `authentication method requirement": (PROOF, "a_refusal_costs_the_state_alone"),
    "| `the server sent more than 256 MiB": (
        "store/test_false_postgres.py",
        "an_answer_without_end",
    ),
    "| `was damaged; it is kept as …`": (DAMAGE, "damage_found_at_a_start_loses_no_alert"),
    "| `… cannot be read and are kept apart`": (UNREADABLE, "one_row_is_kept_apart"),
    "A row that a newer sentinel": (UNREADABLE, "an_unknown_word_is_never_milder"),
    "| `was removed; a new one was begun`": (DAMAGE, "damage_while_running_loses_no_alert"),
    "| `written by a newer sentinel": (CANNOT, "a_state_of_a_newer_sentinel_is_told"),
    "| `another sentinel leads: …; it has": (CANNOT, "a_leader_that_stands_still_is_told"),
    "| `another sentinel leads: …` |": (CONTRACT, "two_do_not_lead_at_once"),
    "While the state cannot be written, every": (BUFFERED, "writes_are_repeated_in_order"),
    "So a full disk, a reboot of the service": (OUTAGE, "told_once"),
    "The first process that can write": (FULL, "a_start_on_a_full_disk_knows_what_was"),
    "The first of these places that takes it": (FAILOVER, "a_journal_that_replaced_a_full_one"),
    "1. `journal` in the state directory": (JOURNAL, "what_is_reserved_is_empty_and_private"),
    "Room for it is reserved": (JOURNAL, "what_is_reserved_is_empty_and_private"),
    "2. `spare_state:`": (JOURNAL, "it_is_bounded"),
    "3. `$XDG_RUNTIME_DIR`": (FAILOVER, "who_keeps_a_journal_is_the_only_leader"),
    "A journal has at most 8 MB": (FAILOVER, "a_journal_that_replaced_a_full_one"),
    "It is its owner's alone": (JOURNAL, "cut_at_any_byte"),
    "One that belongs to another user": (JOURNAL, "a_journal_of_another_user"),
    "While the state works, nothing is written": (DAMAGE, "damage_found_at_a_start_loses_no_alert"),
    "**Several hosts.**": (OUTAGE, "hosts_without_a_shared_place"),
    "Where passes run on several hosts": (OUTAGE, "hosts_without_a_shared_place"),
    "Without it each host knows": (OUTAGE, "hosts_without_a_shared_place"),
    "Ids stay the same": (OUTAGE, "hosts_without_a_shared_place"),
    "Links of a chain tell at once": (OUTAGE, "hosts_without_a_shared_place"),
    "**PostgreSQL.** While the server": (OUTAGE, "a_server_that_is_away"),
    "Where another one was seen": (LEASE, "a_server_that_is_away_does_not_keep_a_lease_alive"),
    "An older state is brought": (MIGRATIONS, "a_full_disk_in_the_middle_of_a_change_loses"),
    "| `sentinel state check`": (COPIES, "a_look_changes_nothing"),
    "| `sentinel state backup FILE`": (COPIES, "a_copy_is_whole_while_it_is_written"),
    "| `sentinel state restore FILE`": (COPIES, "a_copy_is_put_back"),
    "| `sentinel state migrate`": (COPIES, "a_server_is_changed_unasked_only_where"),
    "A restore loses what happened": ("cli/test_state_files.py", "a_copy_and_its_way_back"),
    "The audit log lacks": (COPIES, "a_copy_is_put_back"),
    "Take no copy of a server": ("cli/test_state_files.py", "the_exit_codes"),
    "In a directory that is done under": (COPIES, "nothing_is_changed_under_an_older_sentinel"),
    "On PostgreSQL it is done unasked": (COPIES, "a_server_is_changed_unasked_only_where"),
    "One that is newer is read": (COPIES, "a_newer_state_says_whom_it_serves"),
    "One that is older than": ("store/test_session.py", "a_state_of_another_version_is_left"),
}
"""How a sentence or a row of a table begins -> a file below tests/, and how a test in it begins."""

_HEADERS = (
    "| command | does |",
    "| `state:` |",
    "| what | until |",
    "| file | is |",
    "| sentinel says |",
)


def sentences() -> list[str]:
    """Those of the page, and the rows of its tables."""
    found: list[str] = []
    for line in PAGE.splitlines():
        if line.startswith("|"):
            if not line.startswith(("|---", *_HEADERS)):
                found.append(line)
        elif line and not line.startswith("#"):
            found += re.split(r"(?<=[A-Za-z)`]\.) (?=[A-Z`*])", line)
    return found


def test_each_sentence_is_bound() -> None:
    """A new one needs a line in the table; one that is gone leaves none behind."""
    told = sentences()
    unbound = [s for s in told if not any(s.startswith(key) for key in BOUND)]
    assert unbound == []
    assert [key for key in BOUND if not any(s.startswith(key) for s in told)] == []


@pytest.mark.parametrize("key", [key for key, bound in BOUND.items() if bound != ADVICE])
def test_what_it_is_bound_to_is_there(key: str) -> None:
    """A test of that name, in that file."""
    file, name = BOUND[key]
    assert f"def test_{name}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_a_sample_takes_about_16_bytes(tmp_path: Path) -> None:
    """With what SQLite keeps around it."""
    store = SqlStore(SqliteBackend(str(tmp_path)))
    store.take_lead("test", at())
    empty = _size(store, tmp_path)
    names = [f"/scratch/{number}" for number in range(500)]
    for minute in range(200):
        samples = tuple(Sample(name, "used", float(minute)) for name in names)
        store.commit(Batch(at=at(60 * minute), samples={"fs": samples}))
    full = _size(store, tmp_path)
    assert 12 < (full - empty) / (500 * 200) < 22
    store.close()


def test_a_run_with_numbers_takes_some_200_bytes(tmp_path: Path) -> None:
    """Beside its numbers, while it is new and once it is sorted; then as long as they are kept."""
    store, boot = SqlStore(SqliteBackend(str(tmp_path))), str(uuid.uuid4())
    store.take_lead("test", at())
    empty = _size(store, tmp_path)
    for number in range(400):
        now = replace(at(10 * number), boot=boot)
        store.commit(Batch(at=now, samples={f"check{number % 4}": (Sample("/", "used", 1.0),)}))
    assert 150 < (_size(store, tmp_path) - empty) / 400 < 280
    store.prune(replace(at(DAY_S + 4000), boot=boot))
    assert 150 < (_size(store, tmp_path, used=True) - empty) / 400 < 280
    store.prune(replace(at(9 * DAY_S), boot=boot))
    with closing(sqlite3.connect(tmp_path / "sentinel.db")) as connection:
        assert connection.execute("SELECT count(*) FROM moments").fetchone() == (2 * 4,)
    store.close()


def test_freed_space_is_used_again(tmp_path: Path) -> None:
    """The file does not shrink, and does not grow by what comes in place of what went."""
    store = SqlStore(SqliteBackend(str(tmp_path)))
    store.take_lead("test", at())
    first, second = (tuple(outgoing(f"{n}-" + "x" * 999) for n in range(500)) for _ in "ab")
    store.commit(Batch(at=at(), outbox=first))
    before = _size(store, tmp_path)
    store.sent(store.read_outbox(), at(), Receipt("250"))
    store.prune(at(100 * DAY_S))
    assert _size(store, tmp_path) >= before
    store.commit(Batch(at=at(100 * DAY_S), outbox=second))
    assert _size(store, tmp_path) <= before * 1.1
    store.close()


def _size(store: SqlStore, folder: Path, *, used: bool = False) -> int:
    """Of the database, with its log written back. `used`: without the pages that are free."""
    with closing(sqlite3.connect(folder / "sentinel.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages, page, free = (
            connection.execute(f"PRAGMA {word}").fetchone()[0]
            for word in ("page_count", "page_size", "freelist_count")
        )
    return int((pages - (free if used else 0)) * page)
