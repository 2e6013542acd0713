# shellcheck shell=sh disable=SC2154 # cgroups.sh stands before it
# Ends, or lists, what jobs that are over left behind on this node. POSIX sh, procps, awk.
#   sh -s list|end JOB,JOB FIRST_UID UID,UID [SECONDS]
# A job is its id, or its SLUID. UIDs: users who have no other job here; only theirs are ended by
# what they inherited alone.
# A line each: may PID UID COMMAND, or kept PID WHY COMMAND. end: also ended PID, left PID.
# Exit code 0: nothing of theirs is left that may be ended; 1: something is; 3: nobody can see.

LC_ALL=C PATH=$PATH:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
verb=$1 jobs=$2 first=$3 alone=$4 seconds=${5:-5}

# Search a file of all processes. One that is just going away is no failure (2), but a search that
# could not be done at all is: then nobody knows whose the processes are.
among() {
    file=$1
    shift
    grep -s "$@" /proc/[0-9]*/"$file" /dev/null
    [ $? -le 2 ] || echo blind
}

# What the kernel and the processes themselves say: which job each belongs to.
facts() {
    ps -e -o pid=,ppid=,uid=,state=,args= | sed 's/^/p /'
    among cgroup -E "$job_cgroups" | cgroups || echo blind
    among cgroup -l -E '/(session-[^/]*\.scope|user@[0-9]*\.service)' |
        sed -n -e 's|^/proc/\([0-9]*\)/.*|s \1|p' -e '/^blind$/p' || echo blind
    among environ -z '^SLURM_JOB_ID=[0-9]' | tr '\n\0' ' \n' |
        sed -n -e 's|^/proc/\([0-9]*\)/environ:SLURM_JOB_ID=\([0-9]*\).*|e \1 \2|p' \
            -e 's|^blind *$|blind|p' || echo blind
    echo whole
}

# A process is of the job that the kernel counts it to; else of the slurmstepd above it; else of
# the one whose id it inherited. That proves little: the components of a heterogeneous job inherit
# the first one's, and anybody may export any. So it counts only for users whose processes belong
# to no other job here. Nobody's login is touched, whatever it carries.
judged() {
    awk -v jobs="$jobs" -v first="$first" -v alone="$alone" '
    BEGIN {
        count = split(jobs, list, ","); for (i = 1; i <= count; i++) wanted[list[i]] = 1
        count = split(alone, list, ","); for (i = 1; i <= count; i++) lonely[list[i]] = 1
    }
    $1 == "blind" { blind = 1 }
    $1 == "whole" { whole = 1 }
    $1 == "cgroup" { cgroup[$2] = ($2 in cgroup) && cgroup[$2] != $3 ? "?" : $3 }
    $1 == "s" { session[$2] = 1 }
    $1 == "e" { inherited[$2] = $3 }
    $1 == "p" {
        pid = $2; parent[pid] = $3; uid[pid] = $4; state[pid] = $5
        name[pid] = $6; sub(/:$/, "", name[pid]); sub(/.*\//, "", name[pid])
        if ($6 ~ /^(slurmstepd:|[^ ]*\/slurmstepd)$/ && $7 ~ /^\[[0-9]+\./)
            { split(substr($7, 2), part, "."); step[pid] = part[1] }
    }
    function counted(pid,   at, hops) {
        login = ""; daemon = ""
        for (at = pid; at > 1 && hops++ < 100; at = parent[at]) {
            if (step[at] != "" && daemon == "") daemon = step[at]
            if (name[at] ~ /^(sshd|sshd-session|login)$/ && login == "") login = name[at]
        }
        return cgroup[pid] != "" ? cgroup[pid] : daemon
    }
    END {
        if (blind || !whole || !(1 in uid)) exit 3
        for (pid in uid) {
            job = counted(pid)
            if (job != "" && !(job in wanted)) delete lonely[uid[pid]]
        }
        for (pid in uid) {
            job = counted(pid); told = job != ""
            if (!told) job = inherited[pid]
            if (!(job in wanted) || state[pid] ~ /^[ZX]/) continue
            why = ""
            if (uid[pid] + 0 < first + 0 || uid[pid] == 65534) why = "system"
            else if (session[pid] || login != "") why = "login"
            else if (!told && !(uid[pid] in lonely)) why = "inherited"
            print (why == "" ? "may " pid " " uid[pid] : "kept " pid " " why) " " name[pid]
        }
    }'
}

# Told anew each time: a number may have become another process meanwhile.
victims() { facts | judged | sed -n 's/^may \([0-9]*\) .*/\1/p'; }

signalled() {
    for pid in $(victims); do kill -s "$1" "$pid" 2>/dev/null; done
}

gone() {
    waited=0
    while [ -n "$(victims)" ]; do
        [ "$waited" -lt "$1" ] || return 1
        sleep 1
        waited=$((waited + 1))
    done
}

end_them() {
    before=$(facts | judged) || unseen
    printf '%s\n' "$before" | grep '^kept '
    signalled TERM
    gone "$seconds" || { signalled KILL && gone 3; }
    left=$(victims)
    for pid in $(printf '%s\n' "$before" | sed -n 's/^may \([0-9]*\) .*/\1/p'); do
        # shellcheck disable=SC2086,SC2116 # words, one blank between
        case " $(echo $left) " in
        *" $pid "*) echo "left $pid" ;;
        *) printf '%s\n' "$before" | sed -n "s/^may $pid /ended $pid /p" ;;
        esac
    done
    [ -z "$left" ]
}

# Without the first process the list is not that of this node: no ps, or hidepid (proc(5)).
# shellcheck disable=SC2009 # by its number, of which pgrep knows nothing
seen() { ps -e -o pid= | grep -q '^ *1 *$'; }

unseen() {
    echo "the processes of this node cannot be seen" >&2
    exit 3
}

main() {
    seen || unseen
    case $verb in
    end) end_them ;;
    list) facts | judged || unseen ;;
    *) exit 64 ;;
    esac
}
main
