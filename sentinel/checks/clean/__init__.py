"""The `clean` kind: old logs and checkpoints, told, and where it is asked for removed."""
