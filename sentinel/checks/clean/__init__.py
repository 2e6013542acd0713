"""The `clean` kind: reports old logs and checkpoints, and removes them if that is configured."""
