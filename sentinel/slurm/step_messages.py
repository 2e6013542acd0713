"""What Slurm's daemons print into the output of a job."""

HOUSEKEEPING_ERROR_REGEX = (
    r"slurmstepd: error: (?:couldn't chdir|(?![^\n]{0,200}(?:oom|memory))[^\n]{0,120}cgroup)"
)
"""Errors of slurmstepd that end no job: it works in another directory, or it could not put a process into a control group
(src/interfaces/cgroup.c, src/plugins/cgroup). That a limit of memory was met is none of these."""
