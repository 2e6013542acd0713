-- serves 5
-- The line above: the oldest schema whose sentinels may go on with a state that this file has changed.

-- Samples of the last day, in order of time, so that a pass writes few pages; once a day they are moved
-- to `samples`. One row for each check that gave samples in a pass: when they were taken (`key` is the
-- digest of `body`, as in `moments`).
CREATE TABLE recent_passes (
  source VARCHAR(32) NOT NULL,
  base BIGINT NOT NULL,
  key VARCHAR(32) NOT NULL,
  at BIGINT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (source, base)
);

-- `place` is the base of the pass and the id of the series together: what is new is the end of the table.
CREATE TABLE recent_samples (place BIGINT NOT NULL PRIMARY KEY, value DOUBLE PRECISION NOT NULL);
