"""Asks Slurm through its own commands, and reads their answers."""
