-- serves 5
-- The line above: the oldest schema whose sentinels may go on with a state that this file has changed.

-- The ledger of runs: what trainings did with the GPUs that they held. `key` names the row,
-- `ended` (microseconds UTC) is the end of its span.
CREATE TABLE run_ledger (
  key VARCHAR(32) NOT NULL PRIMARY KEY,
  ended BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX run_ledger_ended ON run_ledger (ended);
