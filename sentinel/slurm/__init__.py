"""Slurm through its own commands: what is asked, and what the answers mean."""
