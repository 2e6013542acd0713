-- serves 5
-- The line above: the oldest schema whose sentinels may go on with a state that this file has changed.

ALTER TABLE schema_version ADD COLUMN oldest BIGINT NOT NULL DEFAULT 0;

-- Rows that cannot be read, kept apart from those that serve. `noun` is what it was meant to be, `key`
-- names its row, `at` (microseconds UTC) is when it was moved.
CREATE TABLE unreadable (
  seq INTEGER NOT NULL PRIMARY KEY,
  noun VARCHAR(32) NOT NULL,
  key VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL
);
