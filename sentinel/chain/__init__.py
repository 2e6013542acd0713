"""In place of cron: chains of Slurm jobs, and directories of scripts."""
