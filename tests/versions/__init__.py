"""On which versions of Slurm sentinel was seen to work: built, run, and told in docs/versions.md."""
