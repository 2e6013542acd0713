# What a node knows of a job besides its log: $1 the job, $2 seconds between two looks at the
# processor time of its processes. Runs under POSIX sh; GPUs last, since their driver may hang.
LC_ALL=C
export LC_ALL

# Tasks by their cgroup: beside them stand slurmstepd (step_N/slurm), and in step_extern a sleep and
# whoever came by ssh (pam_slurm_adopt), long after the last task has died.
pids() {
  {
    grep -lsE "/job_$1/step_[^/]+/(user/)?task_[0-9]+(/|\$)" /proc/[0-9]*/cgroup
    timeout -k 1 5 grep -lsz "^SLURM_JOB_ID=$1\$" /proc/[0-9]*/environ
  } | cut -d/ -f3 | sort -un | grep -vx "$$"
}

# Processes, those in state D, clock ticks of processor time: stat's command may hold anything.
ticks() {
  for pid in $1; do cat "/proc/$pid/stat" 2>/dev/null; done | awk '
    { sub(/^.*\) /, ""); n++; if ($1 == "D") d++; t += $12 + $13 }
    END { print n + 0, d + 0, t + 0 }'
}

found=$(pids "$1")
before=$(ticks "$found")
[ -n "$found" ] && sleep "$2"
echo "tasks $(id -u) $(id -un) $before $(ticks "$found") $2 $(getconf CLK_TCK)"
timeout -k 1 10 nvidia-smi --query-gpu=utilization.gpu,power.draw,power.limit \
  --format=csv,noheader,nounits 2>/dev/null | sed 's/^/gpu /'
exit 0
