# shellcheck shell=sh
# The job that the kernel counts a process to: `cgroup PID JOB /REST`, from lines of grep over
# /proc/*/cgroup (processes_by_cgroup searches them). `saw cgroups` comes last, or the search was cut.
#
# The outermost name counts, since below it users may give any. In the slurmstepd.scope of a slice
# (cgroup v2; NODE_slurmstepd.scope where a host has several slurmd) all but `system` is a job's: job_N,
# or since 26.05 its SLUID (src/plugins/cgroup/v2/cgroup_v2.c, _set_int_cg_ns(), print_sluid()).
# In cgroup v1 it is uid_N/job_N (v1/xcgroup.c). A form that is not known, such as the job_N of another
# batch system, is `?`. What lies below user.slice or user@UID.service is none: a user's own systemd
# gives scopes there any name.
#
# CgroupSlice and CgroupPrepend may be any, and a service may be delegated to a user. So a name is
# believed only where each folder down to the job's is root's, as slurmd makes them: what lies in a
# folder of somebody else is none, and where that cannot be seen the job is `?`.

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
processes_by_cgroup() {
    search_processes "$1" cgroup '0::/job_0/end' -E "$job_cgroups" | cgroups "$1/self/mountinfo"
}

# Without a table of mounts (proc_pid_mountinfo(5)) the names alone are read.
cgroups() {
    awk -v mounts="${1:-}" '
    function named(form) { return match(path, form) && (!own || RSTART < own) }
    # Where each hierarchy is mounted first, and which of its folders that shows.
    function read_mounts(   line, field, n, at, type, option) {
        while ((getline line < mounts) > 0) {
            n = split(line, field, " ")
            for (at = 7; at < n && field[at] != "-"; at++) ;
            type = field[at + 1]
            if (type !~ /^cgroup2?$/) continue
            n = type == "cgroup" ? split(field[at + 3], option, ",") : 1
            if (type == "cgroup2") option[1] = ""
            for (at = 1; at <= n; at++) if (!(option[at] in point))
                { point[option[at]] = field[5]; top[option[at]] = field[4] }
        }
    }
    # The folder as this host shows it; empty where it does not, or where a shell might misread it.
    # All folders from its mount on are to be looked at.
    function folder_of(hierarchy, name,   base, mount, folder) {
        sub(/,.*/, "", hierarchy)
        base = top[hierarchy] == "/" ? "" : top[hierarchy]
        if (!(hierarchy in point) || index(name "/", base "/") != 1) return ""
        mount = point[hierarchy]
        name = mount substr(name, length(base) + 1)
        if (name !~ /^[A-Za-z0-9_.@:+\/\\-]+$/ || name ~ /\/[.][.](\/|$)/) return ""
        for (folder = name; !(folder in wanted) && length(folder) >= length(mount); )
            { wanted[folder] = length(mount); sub(/\/[^\/]*$/, "", folder) }
        return name
    }
    function ask(   line, field) {
        asked = asked " 2>/dev/null"
        while ((asked | getline line) > 0) {
            split(line, field, " ")
            if (match(line, " /")) owner[substr(line, RSTART + 1)] = field[3]
        }
        close(asked)
        asked = ""
    }
    # "yes" if the mount and all folders below it down to this one are of root, "no" if one is not,
    # "" if that cannot be seen.
    function verdict(folder,   whole, shortest) {
        if (folder == "") return ""
        whole = "yes"; shortest = wanted[folder]
        for (; length(folder) >= shortest; sub(/\/[^\/]*$/, "", folder)) {
            if (!(folder in owner)) whole = ""
            else if (owner[folder] != 0) return "no"
        }
        return whole
    }
    function tell(   at, folder, count) {
        for (folder in wanted) {
            asked = (asked == "" ? "LC_ALL=C ls -ldn" : asked) " \047" folder "\047"
            if (++count % 200 == 0) ask()
        }
        if (asked != "") ask()
        for (at = 1; at <= told; at++) {
            if (!(place[at] in judged)) judged[place[at]] = verdict(place[at])
            if (judged[place[at]] == "no") continue
            print "cgroup", pids[at], (judged[place[at]] == "yes" ? jobs[at] : "?"), rests[at]
        }
    }
    BEGIN {
        c = "[0-9A-HJKMNP-TV-Z]"; for (i = 0; i < 13; i++) sluid = sluid c; sluid = "s" sluid
        if (mounts != "") read_mounts()
    }
    /^\(standard input\):/ { saw = 1; next }
    {
        pid = $0; sub(/\/cgroup:.*/, "", pid); sub(/.*\//, "", pid)
        path = $0; sub(/^[^:]*:[^:]*:[^:]*:/, "", path); sub(/ \(deleted\)$/, "", path)
        all = path; job = ""; own = 0
        if (match(path, "/user([.]slice|@[0-9]+[.]service)/")) own = RSTART
        if (named("[.]slice/([^/]*_)?slurmstepd[.]scope/")) {
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
        } else if (named("/(job_[0-9]+|" sluid "/step_[^/]+)(/|$)")) {
            job = "?"
        } else next
        if (job ~ /^[0-9]+$/ && length(job) > 10) job = "?"
        if (mounts == "") { print "cgroup", pid, job, path; next }
        split($0, line, ":")
        name = folder_of(line[3], path == all ? all : substr(all, 1, length(all) - length(path)))
        pids[++told] = pid; jobs[told] = job; rests[told] = path; place[told] = name
    }
    END { tell(); if (saw) print "saw cgroups" }'
}

# The slurmstepd of each step: `daemon PID JOB.STEP`, and last `saw daemons`. Anybody may call a process
# so, and a program that gives its user the rights of root (sudo), too: the program itself counts. Only
# root may see that; others have its user alone. The argument is where /proc is mounted.
daemons() {
    search_processes "$1" comm slurmstepd -l '^slurmstepd' |
        sed -n -e 's|^.*/\([0-9]*\)/comm$|\1|p' -e 's|^(standard input)$|saw|p' | while read -r pid; do
        if [ "$pid" = saw ]; then echo "saw daemons"; continue; fi
        at=$1/$pid real=
        { while read -r key id _; do [ "$key" != Uid: ] || real=$id; done; } 2>/dev/null <"$at/status"
        [ "$real" = 0 ] || continue
        program=$(readlink "$at/exe" 2>/dev/null)
        case $(id -u):${program% (deleted)} in
        *:*/slurmstepd*) ;; # slurmstepd-wlm of Debian
        0:) if [ -e "$at/exe" ]; then break; else continue; fi ;;
        *:?*) continue ;;
        esac
        title=$({ tr '\0' ' ' <"$at/cmdline" && printf '\nend\n'; } 2>/dev/null |
            sed -n -e 's/^slurmstepd: \[\([^]]*\)\].*/\1/p' -e '$s/^end$/end/p')
        case $title in
        *end) title=${title%end} ;;
        *) if [ -e "$at/comm" ]; then break; else continue; fi ;;
        esac
        [ -z "$title" ] || printf 'daemon %s %s' "$pid" "$title"
    done
}
