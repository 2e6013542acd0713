# shellcheck shell=sh
# The job that the kernel counts a process to: `cgroup PID JOB /REST`, from lines of grep over
# /proc/*/cgroup (processes_by_cgroup searches them). `saw cgroups` comes last, or the search was cut.
#
# The outermost name counts, since below it users may give any. In a slurmstepd.scope (cgroup v2)
# all but `system` is a job's: job_N, or since 26.05 its SLUID (src/plugins/cgroup/v2/cgroup_v2.c,
# print_sluid()). In cgroup v1 it is uid_N/job_N (v1/xcgroup.c). A form that is not known, such as the
# job_N of another batch system, is `?`. What lies below user.slice or user@UID.service is none: a
# user's own systemd gives scopes there any name.

# shellcheck disable=SC2034 # for the scripts that this is a part of
job_cgroups='job_[0-9]|slurmstepd\.scope/|/s[0-9A-Z]{13}/step_'

# Search FILE of all processes below the directory PROC, with options of grep: PROC FILE END OPTIONS.
# A process that is just going away is no failure, so grep's exit code tells nothing. END is a text
# that fits, and grep searches it last: where its line is missing, the search was cut.
search_processes() {
    below=$1 name=$2 end=$3
    shift 3
    printf '%s\n' "$end" | grep -s "$@" "$below"/[0-9]*/"$name" -
}

# The lines of all cgroups that matter: the argument is where /proc is mounted.
processes_by_cgroup() { search_processes "$1" cgroup '0::/job_0/end' -E "$job_cgroups" | cgroups; }

cgroups() {
    awk '
    function named(form) { return match(path, form) && (!own || RSTART < own) }
    BEGIN { c = "[0-9A-HJKMNP-TV-Z]"; for (i = 0; i < 13; i++) sluid = sluid c; sluid = "s" sluid }
    /^\(standard input\):/ { saw = 1; next }
    {
        pid = $0; sub(/\/cgroup:.*/, "", pid); sub(/.*\//, "", pid)
        path = $0; sub(/^[^:]*:[^:]*:[^:]*:/, "", path); sub(/ \(deleted\)$/, "", path)
        job = ""; own = 0
        if (match(path, "/user([.]slice|@[0-9]+[.]service)/")) own = RSTART
        if (named("slurmstepd[.]scope/")) {
            path = substr(path, RSTART + RLENGTH)
            job = path; sub(/\/.*/, "", job)
            if (job == "system" || job == "") next
            path = substr(path, length(job) + 1)
            if (job ~ /^job_[0-9]+$/) job = substr(job, 5)
            else if (job !~ ("^" sluid "$")) job = "?"
        } else if (named("/uid_[0-9]+/job_[0-9]+(/|$)")) {
            path = substr(path, RSTART + 1); sub(/^[^\/]*\//, "", path)
            job = path; sub(/\/.*/, "", job)
            path = substr(path, length(job) + 1); sub(/^job_/, "", job)
        } else if (named("/job_[0-9]+(/|$)")) {
            job = "?"
        } else if (named("/" sluid "/step_")) {
            path = substr(path, RSTART + 1)
            job = path; sub(/\/.*/, "", job)
            path = substr(path, length(job) + 1)
        } else next
        print "cgroup", pid, job, path
    }
    END { if (saw) print "saw cgroups" }'
}
