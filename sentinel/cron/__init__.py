"""Slurm (or whatever a host has) in place of cron: chains of jobs and directories of scripts."""
