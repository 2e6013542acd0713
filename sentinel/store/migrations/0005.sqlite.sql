-- The state as the first release writes it. Every column is a number, a digest (rows.py) or JSON of the
-- noun that it belongs to, so a new field of a noun needs no migration.
-- A statement ends with a semicolon at the end of a line; no other line ends with one.

CREATE TABLE schema_version (version BIGINT NOT NULL);

-- One row. `seq`: the highest number of an outbox row. `expires` (microseconds UTC) is for standbys.
-- Samples from before `thinned` (microseconds UTC) are one an hour already.
CREATE TABLE leader (
  id INTEGER NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  body TEXT NOT NULL,
  thinned BIGINT NOT NULL DEFAULT '0'
);

CREATE TABLE alerts (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);

CREATE TABLE runs (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);

CREATE TABLE memory (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);

CREATE TABLE transitions (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  alert VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX transitions_alert ON transitions (alert);
CREATE INDEX transitions_at ON transitions (at);

-- `done` is 0 while unsent, else microseconds UTC; `outcome` is JSON of what became of the row.
CREATE TABLE outbox (
  seq INTEGER NOT NULL PRIMARY KEY,
  alert VARCHAR(32) NOT NULL,
  done BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX outbox_alert ON outbox (alert);
CREATE INDEX outbox_done ON outbox (done, seq);

CREATE TABLE series (
  id INTEGER NOT NULL PRIMARY KEY,
  key VARCHAR(32) NOT NULL UNIQUE,
  body TEXT NOT NULL
);

-- When samples were taken: one row a pass instead of a boot id in every sample.
CREATE TABLE moments (
  id INTEGER NOT NULL PRIMARY KEY,
  key VARCHAR(32) NOT NULL UNIQUE,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX moments_at ON moments (at);

-- The primary key is the table: about 16 bytes a sample.
CREATE TABLE samples (
  series INTEGER NOT NULL,
  moment INTEGER NOT NULL,
  value DOUBLE NOT NULL,
  PRIMARY KEY (series, moment)
) WITHOUT ROWID;

-- The audit log; `tried` and `unresolved` are 0 or 1. Written without leadership, see books.py.
CREATE TABLE actions (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  target VARCHAR(32) NOT NULL,
  tried BIGINT NOT NULL,
  unresolved BIGINT NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX actions_target ON actions (target);
CREATE INDEX actions_tried ON actions (tried, seq);
CREATE INDEX actions_unresolved ON actions (unresolved);

-- The ledger of nodes; `departure` (microseconds UTC) is when a node left service, else 0.
CREATE TABLE readings (
  seq INTEGER NOT NULL PRIMARY KEY,
  node VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  departure BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX readings_departure ON readings (departure, seq);
CREATE INDEX readings_node ON readings (node, seq);

CREATE TABLE switches (key VARCHAR(32) NOT NULL PRIMARY KEY, body TEXT NOT NULL);

-- Silences and acknowledgements; `ends` (microseconds UTC) is when they no longer matter.
CREATE TABLE orders (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  ends BIGINT NOT NULL,
  body TEXT NOT NULL
);

-- The ledger of GPUs. `seen` (microseconds UTC) changes with every pass and is no part of the body;
-- `heat` and `marked` (0 or 1) find those that have a score or a mark, `recipe` those that were
-- counted by other rules.
CREATE TABLE gpus (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  node VARCHAR(32) NOT NULL,
  seen BIGINT NOT NULL,
  heat DOUBLE NOT NULL,
  recipe VARCHAR(32) NOT NULL,
  marked BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX gpus_node ON gpus (node);

-- The stays that are over and the one that lasts; `at` is when it began.
CREATE TABLE gpu_stays (
  seq INTEGER NOT NULL PRIMARY KEY,
  gpu VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX gpu_stays_gpu ON gpu_stays (gpu, seq);

CREATE TABLE gpu_events (
  seq INTEGER NOT NULL PRIMARY KEY,
  id VARCHAR(32) NOT NULL UNIQUE,
  gpu VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX gpu_events_at ON gpu_events (at);
CREATE INDEX gpu_events_gpu ON gpu_events (gpu, at);

INSERT INTO leader (id, token, seq, expires, body) VALUES (1, 0, 0, 0, '{"holder":"","since":0}');
