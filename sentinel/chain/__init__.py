"""Replaces cron: runs sentinel by a chain of Slurm jobs, and runs directories of scripts."""
