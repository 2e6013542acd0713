# shellcheck shell=sh
# Ends, or lists, what jobs that are over left behind on this node. POSIX sh, procps, awk.
#   sh -s list|end JOB,JOB FIRST_UID [SECONDS]
# A line each: may PID UID COMMAND, or kept PID WHY COMMAND. end: also ended PID, left PID.
# Exit code 0: nothing of theirs is left that may be ended; 1: something is; 3: nobody can see.

LC_ALL=C PATH=$PATH:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
verb=$1 jobs=$2 first=$3 seconds=${4:-5}

# What the kernel and the processes themselves say: which job each belongs to.
facts() {
    ps -e -o pid=,ppid=,uid=,state=,args= | sed 's/^/p /'
    grep -s 'job_[0-9]' /proc/[0-9]*/cgroup /dev/null |
        sed -n 's|^/proc/\([0-9]*\)/cgroup:.*/job_\([0-9]*\).*|c \1 \2|p'
    grep -s -l -E '/(session-[^/]*\.scope|user@[0-9]*\.service)' /proc/[0-9]*/cgroup /dev/null |
        sed -n 's|^/proc/\([0-9]*\)/.*|s \1|p'
    grep -s -z '^SLURM_JOB_ID=[0-9]' /proc/[0-9]*/environ /dev/null | tr '\n\0' ' \n' |
        sed -n 's|^.*/proc/\([0-9]*\)/environ:SLURM_JOB_ID=\([0-9]*\).*|e \1 \2|p'
}

# A process is of the job that the kernel counts it to; else of the slurmstepd above it; else of
# the one whose id it inherited. Nobody's login is touched, whatever it carries.
judged() {
    awk -v jobs="$jobs" -v first="$first" '
    BEGIN { count = split(jobs, list, ","); for (i = 1; i <= count; i++) wanted[list[i]] = 1 }
    $1 == "c" { cgroup[$2] = $3 }
    $1 == "s" { session[$2] = 1 }
    $1 == "e" { inherited[$2] = $3 }
    $1 == "p" {
        pid = $2; parent[pid] = $3; uid[pid] = $4; state[pid] = $5
        name[pid] = $6; sub(/:$/, "", name[pid]); sub(/.*\//, "", name[pid])
        if ($6 ~ /^(slurmstepd:|[^ ]*\/slurmstepd)$/ && $7 ~ /^\[[0-9]+\./)
            { split(substr($7, 2), part, "."); step[pid] = part[1] }
    }
    function over(pid,   at, hops) {
        login = ""; daemon = ""
        for (at = pid; at > 1 && hops++ < 100; at = parent[at]) {
            if (step[at] != "" && daemon == "") daemon = step[at]
            if (name[at] ~ /^(sshd|sshd-session|login)$/ && login == "") login = name[at]
        }
        return cgroup[pid] != "" ? cgroup[pid] : daemon != "" ? daemon : inherited[pid]
    }
    END {
        for (pid in uid) {
            if (!(over(pid) in wanted) || state[pid] ~ /^[ZX]/) continue
            why = ""
            if (uid[pid] + 0 < first + 0 || uid[pid] == 65534) why = "system"
            else if (session[pid] || login != "") why = "login"
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
    before=$(facts | judged)
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

main() {
    seen || {
        echo "the processes of this node cannot be seen" >&2
        exit 3
    }
    case $verb in
    end) end_them ;;
    list) facts | judged ;;
    *) exit 64 ;;
    esac
}
main
