"""What Slurm's daemons print into the output of a job."""

STEPD_ERROR_REGEX = (
    r"(?:slurmstepd(?:-[\w.-]{1,63})?:|\[20\d\d-\d\d-\d\dT[\d:]{8}(?:\.\d{3})?\]) error: "
)
"""How an error of slurmstepd begins: with its name, behind which the node's may stand, or in newer releases with the
time."""

JOB_END_REGEX = STEPD_ERROR_REGEX + r"\*{3} (?:JOB|STEP) [^\n]{0,300} CANCELLED AT [^\n]*"
"""How slurmstepd says that somebody or a limit ended the job (src/slurmd/slurmstepd/req.c). The state of the job says
the same: it is no further cause."""

HOUSEKEEPING_ERROR_REGEX = (
    STEPD_ERROR_REGEX
    + r"(?:couldn't chdir|(?![^\n]{0,200}(?:oom|memory))[^\n]{0,120}cgroup|[^\n]{0,200}No such process)"
)
"""Errors of slurmstepd that end no job: it works in another directory, it could not put a process into a control group
(src/interfaces/cgroup.c, src/plugins/cgroup), or the process that it signals has ended already
(_handle_signal_container() in src/slurmd/slurmstepd/req.c). That a limit of memory was met is none of these."""
