"""What a run did with the GPUs that it held, and why the rest was lost. Pure: rows of the ledger go
in, numbers come out."""
