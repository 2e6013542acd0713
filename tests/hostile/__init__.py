"""What an ordinary user of the cluster can do to a sentinel that root runs there: `make hostile`."""
