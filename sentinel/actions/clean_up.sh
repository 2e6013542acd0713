# shellcheck shell=sh disable=SC2154 # cgroups.sh stands before it
# Ends, or lists, what jobs that are over left behind on this node. POSIX sh, procps, awk.
#   sh -s list|end JOB,JOB FIRST_UID UID,UID [SECONDS]
# A job is its id, or its SLUID. UIDs: users whose processes of these jobs were seen; only theirs are
# ended.
# A line each: may PID UID COMMAND, or kept PID WHY COMMAND. end: also ended PID, left PID.
# Exit code 0: nothing of theirs is left that may be ended; 1: something is; 3: the processes cannot
# be seen, and stderr says why; then "signals were sent before" tells that some have got one.

LC_ALL=C PATH=$PATH:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
verb=$1 jobs=$2 first=$3 uids=$4 seconds=${5:-5}

# Which job each process belongs to. Each source ends with a mark of its own, which has passed through
# every tool behind it: whatever dies half-way, loses it.
facts() {
    { ps -e -o pid=,ppid=,uid=,state=,args= && echo whole; } | sed 's/^/p /'
    daemons /proc
    processes_by_cgroup /proc
    search_processes /proc cgroup '0::/session-0.scope' \
        -l -E '/(session-[^/]*\.scope|user@[0-9]*\.service)' |
        sed -n -e 's|^/proc/\([0-9]*\)/.*|s \1|p' -e 's|^(standard input)$|saw sessions|p'
}

# A process is of the job that the kernel counts it to, else of the slurmstepd above it, else of none:
# an id that it inherited proves nothing, since anybody may export any. Nobody's login is touched.
judged() {
    awk -v jobs="$jobs" -v first="$first" -v uids="$uids" -v self="$$" '
    BEGIN {
        count = split(jobs, list, ","); for (i = 1; i <= count; i++) wanted[list[i]] = 1
        count = split(uids, list, ","); for (i = 1; i <= count; i++) users[list[i]] = 1
    }
    $1 == "saw" { saw[$2] = 1 }
    $1 == "p" && $2 == "whole" { saw["processes"] = 1; next }
    # In two steps: mawk makes cgroup[$2] before it looks whether it is there.
    $1 == "cgroup" { if (($2 in cgroup) && cgroup[$2] != $3) cgroup[$2] = "?"; else cgroup[$2] = $3 }
    $1 == "s" { session[$2] = 1 }
    $1 == "daemon" { split($3, part, "."); step[$2] = part[1] }
    $1 == "p" {
        pid = $2; parent[pid] = $3; uid[pid] = $4; state[pid] = $5
        name[pid] = $6; sub(/:$/, "", name[pid]); sub(/.*\//, "", name[pid])
    }
    function counted(pid,   at, hops) {
        login = ""; daemon = ""
        for (at = pid; at > 1 && hops++ < 100; at = parent[at]) {
            if (step[at] != "" && daemon == "") daemon = step[at]
            # Anybody may call a process so; one of those above a login is that of root.
            if (name[at] ~ /^(sshd|sshd-session|login)$/ && uid[at] == 0) login = name[at]
        }
        return cgroup[pid] != "" ? cgroup[pid] : daemon
    }
    END {
        # Without the first process the list is not that of this node (hidepid, see proc(5)).
        if (!("processes" in saw) || !(1 in uid) || !(self in uid)) why = "ps gives no whole list"
        else if (!("cgroups" in saw)) why = "the search of /proc/*/cgroup for jobs was cut"
        else if (!("sessions" in saw)) why = "the search of /proc/*/cgroup for logins was cut"
        else if (!("daemons" in saw)) why = "the search of /proc/*/comm for slurmstepd was cut"
        if (why != "") { print why; exit 3 }
        for (pid in uid) {
            job = counted(pid)
            if (!(job in wanted) || state[pid] ~ /^[ZX]/) continue
            why = ""
            if (uid[pid] + 0 < first + 0 || uid[pid] == 65534) why = "system"
            else if (session[pid] || login != "") why = "login"
            else if (!(uid[pid] in users)) why = "unseen"
            print (why == "" ? "may " pid " " uid[pid] : "kept " pid " " why) " " name[pid]
        }
        print "judged"
    }'
}

newline='
'

# The processes as they are now, in $list; a number may have become another process meanwhile. Where
# they cannot be seen, nobody may say that nothing is left: this ends the script. `judged` is the last
# line of a whole answer: an awk that dies, or says nothing, proves nothing.
look() {
    list=$(facts | judged) || unseen "$list"
    case $list in
    judged) list= ;;
    *"$newline"judged) list=${list%"$newline"judged} ;;
    *) unseen "what awk said of them was cut" ;;
    esac
    victims=$(printf '%s\n' "$list" | sed -n 's/^may \([0-9]*\) .*/\1/p') || unseen "sed failed"
}

send() {
    look
    for pid in $victims; do kill -s "$1" "$pid" 2>/dev/null && sent=1; done
}

# Whether nothing is left within so many seconds.
gone() {
    waited=0
    while look && [ -n "$victims" ]; do
        [ "$waited" -lt "$1" ] || return 1
        sleep 1
        waited=$((waited + 1))
    done
}

end_them() {
    look
    before=$list
    printf '%s\n' "$before" | grep '^kept '
    send TERM
    gone "$seconds" || { send KILL; gone 3; }
    left=$victims
    for pid in $(printf '%s\n' "$before" | sed -n 's/^may \([0-9]*\) .*/\1/p'); do
        # shellcheck disable=SC2086,SC2116 # words, one blank between
        case " $(echo $left) " in
        *" $pid "*) echo "left $pid" ;;
        *) printf '%s\n' "$before" | sed -n "s/^may $pid /ended $pid /p" ;;
        esac
    done
    [ -z "$left" ]
}

unseen() {
    [ -z "$sent" ] || echo "signals were sent before"
    echo "the processes of this node cannot be seen${1:+: $1}" >&2
    exit 3
}

main() {
    sent=
    case $verb in
    end) end_them ;;
    list)
        look
        [ -z "$list" ] || printf '%s\n' "$list"
        ;;
    *) exit 64 ;;
    esac
}
main
