"""Every statement of the state, for SQLite from 3.26 on (RHEL 8: no RETURNING) and PostgreSQL."""

from sentinel.store.database import Statement

# The schema and who leads

HAS_SCHEMA = Statement(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'",
    postgresql="SELECT 1 FROM pg_class WHERE relname = 'schema_version' "
    "AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)",
)
"""to_regclass() would not do: after waiting for another's lock it may answer from its cache."""
SCHEMA_VERSION = Statement("SELECT * FROM schema_version")
"""The version, and from schema 6 on the oldest one whose sentinels may go on with it."""
FORGET_SCHEMA_VERSION = Statement("DELETE FROM schema_version")
NOTE_SCHEMA_VERSION = Statement(
    "INSERT INTO schema_version (version, oldest) VALUES (:version, :oldest)"
)

LEADER_TOKEN = Statement(
    "SELECT token, seq FROM leader", postgresql="SELECT token, seq FROM leader FOR UPDATE"
)
STORED_LEASE = Statement("SELECT body FROM leader")
GRANT_LEASE = Statement("UPDATE leader SET token = :token, expires = :expires, body = :body")
RENEW_LEASE = Statement("UPDATE leader SET expires = :expires")
END_LEASE = Statement("UPDATE leader SET expires = 0, body = :body")
NOTE_LAST_SEQ = Statement("UPDATE leader SET seq = :seq")
LAST_SEQ = Statement("SELECT seq, token FROM leader")

# Alerts, runs and the memory of checks

ALERTS = Statement("SELECT body FROM alerts ORDER BY key")
CLOSE_ALERT = Statement("DELETE FROM alerts WHERE key = :key")
PUT_ALERT = Statement(
    "INSERT INTO alerts (key, body) VALUES (:key, :body) "
    "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
)
RUNS = Statement("SELECT body FROM runs ORDER BY key")
PUT_RUN = Statement(
    "INSERT INTO runs (key, body) VALUES (:key, :body) "
    "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
)
ALL_MEMORY = Statement("SELECT body FROM memory")
MEMORY_OF = Statement("SELECT body FROM memory WHERE key = :key")
PUT_MEMORY = Statement(
    "INSERT INTO memory (key, body) VALUES (:key, :body) "
    "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
)

# The ledger of runs

PUT_LEDGER_ROW = Statement(
    "INSERT INTO run_ledger (key, ended, body) VALUES (:key, :ended, :body) "
    "ON CONFLICT (key) DO UPDATE SET ended = excluded.ended, body = excluded.body "
    "WHERE :is_end = 1 OR run_ledger.ended <= excluded.ended"
)
"""As LedgerRow.supersedes() says."""
LEDGER_ROWS = Statement("SELECT body FROM run_ledger WHERE ended >= :since ORDER BY ended, key")
FORGET_LEDGER_ROWS = Statement("DELETE FROM run_ledger WHERE ended < :before")

# Rows that cannot be read

KEYED_ALERTS = Statement("SELECT key, body FROM alerts")
KEYED_RUNS = Statement("SELECT key, body FROM runs")
KEYED_MEMORY = Statement("SELECT key, body FROM memory")
KEYED_ORDERS = Statement("SELECT key, body FROM orders")
KEYED_GPUS = Statement("SELECT key, body FROM gpus")
REMOVE_RUN = Statement("DELETE FROM runs WHERE key = :key")
REMOVE_MEMORY = Statement("DELETE FROM memory WHERE key = :key")
REMOVE_MESSAGE = Statement("DELETE FROM outbox WHERE seq = :key")
KEEP_UNREADABLE = Statement(
    "INSERT INTO unreadable (noun, key, at, body) VALUES (:noun, :key, :at, :body)"
)

# Messages

UNSENT_MESSAGES = Statement("SELECT seq, body FROM outbox WHERE done = 0 ORDER BY seq")
MESSAGES_SENT_SINCE = Statement(
    "SELECT seq, body, outcome FROM outbox WHERE done > 0 AND done >= :since ORDER BY done, seq"
)
MESSAGES_ABOUT = Statement(
    "SELECT seq, body, outcome FROM outbox WHERE alert = :alert ORDER BY seq"
)
ADD_MESSAGE = Statement(
    "INSERT INTO outbox (seq, alert, done, outcome, body) "
    "VALUES (:seq, :alert, :done, :outcome, :body) ON CONFLICT (seq) DO NOTHING"
)
RETRY_MESSAGE = Statement("UPDATE outbox SET body = :body WHERE seq = :seq AND done = 0")
FINISH_MESSAGE = Statement(
    "UPDATE outbox SET body = :body, done = :done, outcome = :outcome WHERE seq = :seq AND done = 0"
)
FORGET_MESSAGES = Statement("DELETE FROM outbox WHERE done > 0 AND done < :before")

# Transitions

TRANSITIONS = Statement("SELECT body FROM transitions ORDER BY seq DESC LIMIT :limit")
TRANSITIONS_OF = Statement(
    "SELECT body FROM transitions WHERE alert = :alert ORDER BY seq DESC LIMIT :limit"
)
ADD_TRANSITION = Statement(
    "INSERT INTO transitions (id, alert, at, body) VALUES (:id, :alert, :at, :body) "
    "ON CONFLICT (id) DO NOTHING"
)
FORGET_TRANSITIONS = Statement("DELETE FROM transitions WHERE at < :before")
ALL_TRANSITIONS = Statement("SELECT body FROM transitions ORDER BY seq")
FINISHED_MESSAGES = Statement("SELECT seq, body, outcome FROM outbox WHERE done > 0 ORDER BY seq")
FIRST_KEPT_MOMENTS = Statement(
    "SELECT (SELECT min(at) FROM transitions), (SELECT min(at) FROM moments), "
    "(SELECT min(at) FROM recent_passes)"
)

# Samples. A statement names the series, so that the primary key finds the rows. A scan of the table
# would read gigabytes.

SERIES_IDS = Statement("SELECT key, id FROM series")
SERIES_BODIES = Statement("SELECT body FROM series")
SERIES_ID = Statement("SELECT id FROM series WHERE key = :key")
ADD_SERIES = Statement(
    "INSERT INTO series (key, body) VALUES (:key, :body) ON CONFLICT (key) DO NOTHING"
)
SERIES_COUNT = Statement("SELECT max(id) FROM series")
SAMPLES_OF = Statement(
    "SELECT moments.body, samples.value FROM samples JOIN moments ON samples.moment = moments.id "
    "WHERE samples.series = :series AND moments.at >= :since ORDER BY samples.moment"
)
NEWEST_PLACE = Statement("SELECT max(place) FROM recent_samples")
ADD_PASS = Statement(
    "INSERT INTO recent_passes (source, base, key, at, body) "
    "VALUES (:source, :base, :key, :at, :body)"
)
ADD_RECENT_SAMPLE = Statement("INSERT INTO recent_samples (place, value) VALUES (:place, :value)")
RECENT_SAMPLES_OF = Statement(
    "SELECT recent_passes.body, recent_samples.value FROM recent_passes CROSS JOIN recent_samples "
    "WHERE recent_passes.source = :source AND recent_passes.at >= :since "
    "AND recent_samples.place = recent_passes.base + :series ORDER BY recent_passes.base"
)
"""SQLite joins in the order that CROSS JOIN says: one lookup for each pass of the check."""
RECENT_EXTENT = Statement(
    "SELECT min(at), max(at), (SELECT count(*) FROM recent_samples) FROM recent_passes"
)
ADD_RECENT_MOMENTS = Statement(
    "INSERT INTO moments (key, at, body) SELECT key, at, body FROM recent_passes "
    "WHERE base > 0 ORDER BY base ON CONFLICT (key) DO NOTHING"
)
MOVE_RECENT_SAMPLES = Statement(
    "INSERT INTO samples (series, moment, value) "
    "SELECT place - base, moment, value FROM ("
    "SELECT DISTINCT recent_passes.base, moments.id AS moment "
    "FROM recent_passes CROSS JOIN moments WHERE moments.key = recent_passes.key"
    ") AS taken CROSS JOIN recent_samples "
    "WHERE place BETWEEN base + :first AND base + :last ORDER BY place - base, moment, base "
    "ON CONFLICT (series, moment) DO UPDATE SET value = excluded.value",
    postgresql="INSERT INTO samples (series, moment, value) "
    "SELECT DISTINCT ON (place - base, moment) place - base, moment, value FROM ("
    "SELECT DISTINCT recent_passes.base, moments.id AS moment "
    "FROM recent_passes JOIN moments ON moments.key = recent_passes.key"
    ") AS taken JOIN recent_samples ON place BETWEEN base + :first AND base + :last "
    "ORDER BY place - base, moment, base DESC "
    "ON CONFLICT (series, moment) DO UPDATE SET value = excluded.value",
)
"""If a moment has several values, the last counts; PostgreSQL refuses to write a row twice in one
statement."""
EMPTY_RECENT_SAMPLES = Statement("DELETE FROM recent_samples")
EMPTY_RECENT_PASSES = Statement("DELETE FROM recent_passes")
FIRST_MOMENT_KEPT = Statement("SELECT min(id) FROM moments WHERE at >= :since")
FORGET_SAMPLES = Statement(
    "DELETE FROM samples WHERE series IN (SELECT id FROM series) AND moment < :moment"
)
FORGET_MOMENTS = Statement("DELETE FROM moments WHERE id < :moment")
FORGET_SERIES = Statement(
    "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM samples WHERE samples.series = series.id)"
)
THINNED_UNTIL = Statement("SELECT thinned FROM leader")
NOTE_THINNED = Statement("UPDATE leader SET thinned = :until")
NEXT_MOMENT = Statement("SELECT min(at) FROM moments WHERE at >= :since")
MOMENTS_BETWEEN = Statement(
    "SELECT id, at FROM moments WHERE at >= :since AND at < :until ORDER BY id"
)
KEEP_LAST_SAMPLES = Statement(
    "DELETE FROM samples WHERE series IN (SELECT id FROM series) "
    "AND moment BETWEEN :first AND :last AND moment < ("
    "SELECT max(later.moment) FROM samples AS later "
    "WHERE later.series = samples.series AND later.moment BETWEEN :first AND :last)"
)
FORGET_EMPTY_MOMENTS = Statement(
    "DELETE FROM moments WHERE id BETWEEN :first AND :last AND id NOT IN ("
    "SELECT moment FROM samples "
    "WHERE series IN (SELECT id FROM series) AND moment BETWEEN :first AND :last)"
)

# Silences, acknowledgements and remarks

ALL_ORDERS = Statement("SELECT body FROM orders")
REMOVE_ORDER = Statement("DELETE FROM orders WHERE key = :key")
ADD_ORDER = Statement("INSERT INTO orders (key, ends, body) VALUES (:key, :ends, :body)")
FORGET_ORDERS = Statement("DELETE FROM orders WHERE ends < :now")

# The audit log. All records of the last two hours (by the clock of the newest record) are read,
# even if there are far more than a thousand. Otherwise many actions of one kind would hide the
# records for the limits of another kind.

LOCK_ACTIONS = Statement("", postgresql="LOCK TABLE actions IN SHARE ROW EXCLUSIVE MODE")
"""The lock lets others read. In SQLite, BEGIN IMMEDIATE has done it."""
ACTIONS = Statement("SELECT body FROM actions ORDER BY seq DESC LIMIT :limit")
ACTIONS_ABOUT = Statement(
    "SELECT body FROM actions WHERE target = :target ORDER BY seq DESC LIMIT :limit"
)
NUMBERED_ACTIONS_ABOUT = Statement(
    "SELECT seq, body FROM actions WHERE target = :target ORDER BY seq DESC LIMIT :limit"
)
TRIED_ACTIONS = Statement(
    "SELECT seq, body FROM actions WHERE tried = 1 ORDER BY seq DESC LIMIT :limit"
)
RECENT_TRIED_ACTIONS = Statement(
    "SELECT seq, body FROM actions WHERE tried = 1 "
    "AND seq > (SELECT max(seq) FROM actions) - :limit "
    "AND at > (SELECT at FROM actions ORDER BY seq DESC LIMIT 1) - :lately ORDER BY seq DESC"
)
UNRESOLVED_ACTIONS = Statement("SELECT body FROM actions WHERE unresolved = 1 ORDER BY seq")
UNRESOLVED_ACTIONS_ABOUT = Statement(
    "SELECT seq, body FROM actions WHERE target = :target AND unresolved = 1 ORDER BY seq DESC"
)
ADD_ACTION = Statement(
    "INSERT INTO actions (id, target, tried, unresolved, at, body) "
    "VALUES (:id, :target, :tried, :unresolved, :at, :body)"
)
CONCLUDE_ACTION = Statement(
    "UPDATE actions SET tried = :tried, unresolved = :unresolved, body = :body "
    "WHERE id = :id AND unresolved = 1"
)
KEYED_ACTIONS = Statement("SELECT seq, body FROM actions ORDER BY seq")
REMOVE_ACTION = Statement("DELETE FROM actions WHERE seq = :key")
KEYED_READINGS = Statement("SELECT seq, body FROM readings ORDER BY seq")
REMOVE_READING = Statement("DELETE FROM readings WHERE seq = :key")
FORGET_ACTIONS = Statement(
    "DELETE FROM actions WHERE at < :before AND unresolved = 0 "
    "AND seq NOT IN (SELECT seq FROM actions ORDER BY seq DESC LIMIT :always)"
)
"""The newest records always stay: a wrong wall clock must not make the guard forget them."""

# The ledger of nodes

READINGS_OF = Statement(
    "SELECT body FROM readings WHERE node = :node ORDER BY seq DESC LIMIT :limit"
)
LAST_READINGS = Statement(
    "SELECT body FROM readings WHERE seq IN (SELECT max(seq) FROM readings GROUP BY node)"
)
NODE_DEPARTURES = Statement(
    "SELECT body FROM readings WHERE departure > 0 ORDER BY seq DESC LIMIT :limit"
)
RECENT_READINGS = Statement(
    "SELECT body FROM readings WHERE seq > (SELECT max(seq) FROM readings) - :limit "
    "AND at > (SELECT at FROM readings ORDER BY seq DESC LIMIT 1) - :lately ORDER BY seq"
)
ADD_READING = Statement(
    "INSERT INTO readings (node, at, departure, body) VALUES (:node, :at, :departure, :body)"
)
FORGET_READINGS = Statement(
    "DELETE FROM readings WHERE at < :before "
    "AND seq NOT IN (SELECT seq FROM readings ORDER BY seq DESC LIMIT :always) "
    "AND seq NOT IN (SELECT max(seq) FROM readings GROUP BY node)"
)
SWITCH_OF = Statement("SELECT body FROM switches WHERE key = :key")
REMOVE_SWITCH = Statement("DELETE FROM switches WHERE key = :key")
PUT_SWITCH = Statement(
    "INSERT INTO switches (key, body) VALUES (:key, :body) "
    "ON CONFLICT (key) DO UPDATE SET body = excluded.body"
)

# The ledger of GPUs

LOCK_GPUS = Statement("", postgresql="LOCK TABLE gpus IN SHARE ROW EXCLUSIVE MODE")
GPUS = Statement("SELECT key, seen, body FROM gpus ORDER BY key")
GPUS_OF_NODE = Statement("SELECT key, seen, body FROM gpus WHERE node = :node ORDER BY key")
GPUS_BY_KEY = Statement("SELECT key, seen, body FROM gpus WHERE key IN (:keys...)")
GPUS_WITH_SCORE_OR_MARK = Statement("SELECT key, seen, body FROM gpus WHERE heat > 0 OR marked = 1")
GPUS_OF_OTHER_RECIPE = Statement(
    "SELECT key, seen, body FROM gpus WHERE recipe NOT IN ('', :recipe)"
)
ANY_GPU_OF_OTHER_RECIPE = Statement("SELECT 1 FROM gpus WHERE recipe NOT IN ('', :recipe) LIMIT 1")
ADD_GPU = Statement(
    "INSERT INTO gpus (key, node, seen, heat, recipe, marked, body) "
    "VALUES (:key, :node, :seen, :heat, :recipe, :marked, :body)"
)
FORGET_GPU = Statement("DELETE FROM gpus WHERE key = :key")
NOTE_GPU_SEEN = Statement("UPDATE gpus SET seen = :at WHERE key = :key")
CHANGE_GPU = Statement(
    "UPDATE gpus SET node = :node, seen = :seen, heat = :heat, recipe = :recipe, "
    "marked = :marked, body = :body WHERE key = :key"
)
ADD_STAY = Statement("INSERT INTO gpu_stays (gpu, at, body) VALUES (:gpu, :at, :body)")
STAYS_OF = Statement("SELECT body FROM gpu_stays WHERE gpu = :gpu ORDER BY seq")
LAST_STAY = Statement("SELECT seq, body FROM gpu_stays WHERE gpu = :gpu ORDER BY seq DESC LIMIT 1")
END_STAY = Statement("UPDATE gpu_stays SET body = :body WHERE seq = :seq")
FORGET_STAYS = Statement(
    "DELETE FROM gpu_stays WHERE at < :before AND EXISTS ("
    "SELECT 1 FROM gpu_stays AS later "
    "WHERE later.gpu = gpu_stays.gpu AND later.seq > gpu_stays.seq)"
)
"""The last stay of a GPU is kept, however old."""
ADD_EVENT = Statement("INSERT INTO gpu_events (id, gpu, at, body) VALUES (:id, :gpu, :at, :body)")
KNOWN_EVENTS = Statement("SELECT id FROM gpu_events WHERE id IN (:keys...)")
EVENTS_OF = Statement("SELECT body FROM gpu_events WHERE gpu = :gpu ORDER BY at")
NEWEST_EVENTS_OF = Statement(
    "SELECT body FROM gpu_events WHERE gpu = :gpu ORDER BY at DESC, seq DESC LIMIT :limit"
)
FORGET_EVENT = Statement("DELETE FROM gpu_events WHERE id = :id")
FORGET_EVENTS = Statement("DELETE FROM gpu_events WHERE at < :before")

# Statements for a database server only

FIND_SCHEMA = Statement(
    "",
    postgresql="SELECT nspname, (SELECT rolname FROM pg_catalog.pg_roles WHERE oid = relowner "
    "AND NOT rolsuper AND NOT pg_catalog.pg_has_role(relowner, 'USAGE') "
    "AND relowner NOT IN (nspowner, (SELECT datdba FROM pg_catalog.pg_database "
    "WHERE datname = pg_catalog.current_database()))) "
    "FROM pg_catalog.pg_namespace LEFT JOIN pg_catalog.pg_class "
    "ON relnamespace = pg_namespace.oid AND relname = 'schema_version' "
    "AND pg_catalog.pg_table_is_visible(pg_class.oid) "
    "WHERE relname = 'schema_version' OR nspname = pg_catalog.current_schema() "
    "ORDER BY relname LIMIT 1",
)
"""The schema of the state, and a role that owns its tables and has no right to."""
CONFIGURE_SESSION = Statement(
    "",
    postgresql="SELECT pg_catalog.set_config('search_path', 'pg_catalog', false), "
    "pg_catalog.set_config('client_encoding', 'UTF8', false), "
    "pg_catalog.set_config('statement_timeout', '60s', false), "
    "pg_catalog.set_config('lock_timeout', '20s', false), "
    "pg_catalog.set_config('idle_in_transaction_session_timeout', :idle, false)",
)
"""`idle`: milliseconds. Of the search path only the server's own functions and operators are left: who may
create some in the schema (everybody, by default before PostgreSQL 15) could have sentinel run theirs
(CVE-2018-1058)."""
SEARCH_SCHEMA = Statement(
    "", postgresql="SELECT set_config('search_path', quote_ident(:schema), true)"
)
"""For the transaction that makes the tables."""
SERVER_ENCODING = Statement("", postgresql="SHOW server_encoding")
LOCK_SCHEMA = Statement("", postgresql="SELECT pg_advisory_xact_lock(:key)")
LEASE_EXPIRES = Statement(
    "",
    postgresql="SELECT now + :term, expires <= now FROM leader, LATERAL ("
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS clock",
)
END_SESSIONS_OF_LATE_LEADER = Statement(
    "",
    postgresql="SELECT pg_terminate_backend(pid) FROM leader, "
    "LATERAL (SELECT clock_timestamp() AS now) AS clock, "
    "pg_stat_activity JOIN pg_locks USING (pid) "
    "WHERE expires <= (extract(epoch FROM now) * 1000000)::bigint "
    "AND xact_start < now - make_interval(secs => :idle) "
    "AND datname = current_database() AND relation = leader.tableoid "
    "AND mode <> 'AccessShareLock' AND wait_event_type IS DISTINCT FROM 'Lock' "
    "AND usename = current_user AND pid <> pg_backend_pid()",
)
"""Rows that are written together are sent without waiting in between. If the client is stopped in
the middle of them, its session is `active`, so the time-out for idle transactions does not end it:
the server waits for the rest."""
WAIT_FOR_LOCKS = Statement("", postgresql="SELECT set_config('lock_timeout', :limit, true)")
"""For one transaction: a process that waits for a stopped leader checks again whether the lease is
over."""
