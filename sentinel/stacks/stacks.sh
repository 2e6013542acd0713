# shellcheck shell=sh disable=SC2154 # what is set before it
# Tells where every process of a job stands on this node. POSIX sh; py-spy is all it needs.
#
# Set before it: mark, job, user (the job's, or empty), tools (a path of py-spy a line), native,
# limit (seconds for all), conf (slurm.conf, or empty), asker (the node that asks NCCL's RAS, or empty), evidence (1: the kernel's log and GPUs too). Prints, behind `MARK NODE NUMBER`, pieces of one compressed text,
# so that what srun mixes from many nodes can be told apart; then `MARK NODE end PIECES`.
# waits.sh and cgroups.sh stand before it.
#
# A process in state D is never traced. Reading its environment, and the path that it waits for,
# may have to wait for the lock on its memory too: only SIGKILL ends that, so timeout(1) sends it.

LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
tab=$(printf '\t') newline='
'
TOGETHER=32
# Bytes of one process's stacks. Names and depth are the user's: without a limit they take the memory
# and the /tmp of a node that other people's jobs run on.
MOST=8388608

# -- which processes -------------------------------------------------------------------------

# First who named the processes, then PID STEP LOCAL GLOBAL of each: from slurmd, else from the kernel.
# `cut` instead of a process: neither has told all of them.
pids() {
    if [ -n "$conf" ] && [ -r "$conf" ]; then export SLURM_CONF="$conf"; fi
    witness=slurmd
    found=$(timeout -k 1 3 scontrol listpids "$job" 2>&1)
    case $? in
    124 | 137) found= ;; # slurmd did not answer to the end, so some would be missing
    *) found=$(printf '%s\n' "$found" |
        awk -v job="$job" '$1 ~ /^[0-9]+$/ && $1 > 0 && $2 == job { print $1, $3, $4, $5 }') || found= ;;
    esac
    [ -n "$found" ] || { found=$(counted) && witness=kernel; }
    told witness "$witness" "$(id -u)" "$(id -un | plain 60)"
    case $found in
    *cut) echo cut ;;
    *) printf '%s\n' "$found" | sort -n -u -k 1,1 || echo cut ;;
    esac
}

# What the kernel counts to the tasks of the job, with step and local number. There is none where no
# slurmstepd of the job is left, and who sees the first process sees those. What a process inherited
# proves nothing: anybody may export any id.
counted() {
    found=$(processes_by_cgroup /proc | awk -v job="$job" '
        $1 == "saw" { print "whole"; next }
        $3 == job && $4 ~ /^\/step_[^\/]+\/(user\/)?task_[0-9]+(\/|$)/ {
            match($4, /task_[0-9]+/); task = substr($4, RSTART + 5, RLENGTH - 5)
            split(substr($4, 7), step, "/"); print $2, step[1], task, "-"
        }')
    case $found in
    whole) [ -r /proc/1/comm ] && case $(daemons /proc) in *" $job".*) false ;; *"saw daemons") ;; *) false ;; esac ||
        echo cut ;;
    *whole) printf '%s\n' "${found%whole}" | of_user ;;
    *) echo cut ;;
    esac
}

of_user() {
    # A name may be digits, too.
    uid=$(id -u -- "$user" 2>/dev/null) || case $user in *[!0-9]*) ;; *) uid=$user ;; esac
    while read -r pid rest && [ -n "$pid" ]; do
        if [ -z "$uid" ] || grep -q -s "^Uid:$tab$uid$tab" "/proc/$pid/status"; then
            echo "$pid $rest"
        fi
    done
}

# state, parent, session of a process, as `set --` wants them; fails when it is gone.
stat_of() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    line=${line##*) }
    echo "${line%% *} $(echo "$line" | cut -d ' ' -f 2,4)"
}

ours() { [ "$1" = "$session" ] || [ "$2" = "${SLURM_STEP_ID:-none}" ]; }

# -- one process -----------------------------------------------------------------------------

one() {
    pid=$1 step=$2 task=$3 rank=$4
    # shellcheck disable=SC2046 # three words
    set -- $(stat_of "$pid") && [ $# = 3 ] || return 0
    ! ours "$3" "$step" || return 0
    told proc "$pid" "$2" "$step" "$task" "$rank" "$1" "$(plain 60 <"/proc/$pid/comm" 2>/dev/null)"
    told exe "$pid" "$(readlink "/proc/$pid/exe" 2>/dev/null | plain 300)"
    case $1 in Z | X) return ;; esac
    spent "$pid"
    thread=$(waiting "$pid")
    [ -z "$thread" ] || { sleep 0.3 2>/dev/null || sleep 1; thread=$(waiting "$pid"); }
    inheritance "$pid"
    if [ -n "$thread" ]; then blocked "$pid" "$thread"; return; fi
    case $1 in T | t) return ;; esac
    call "$pid" "$pid"
    if ! readlink "/proc/$pid/exe" >/dev/null; then
        told failed "$pid" 13 "Permission denied"
    elif python "$pid"; then told python "$pid" && dump "$pid"
    else told other "$pid" && debug "$pid"; fi
}

# Processor time in ticks and bytes read and written until now, with the node's clock: what moves
# from one look to the next. Without the right to read its bytes they are left empty.
spent() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 0
    { read -r up _ </proc/uptime; } 2>/dev/null || up=
    pid_=$1 bytes=
    # shellcheck disable=SC2086 # numbers
    set -- ${line##*) }
    shift 11
    if { read -r _ read_ && read -r _ written; } 2>/dev/null <"/proc/$pid_/io"; then
        bytes=$((read_ + written))
    fi
    told spent "$pid_" "$(($1 + $2))" "$ticks" "$up" "$bytes"
}

# The first thread in state D; the main thread has the process's own number.
waiting() {
    for at in "/proc/$1/task/$1" "/proc/$1/task"/*; do
        { read -r line <"$at/stat"; } 2>/dev/null || continue
        line=${line##*) }
        if [ "${line%% *}" = D ]; then echo "${at##*/}"; return; fi
    done
}

inheritance() {
    timeout -s KILL 1 tr '\000' '\n' <"/proc/$1/environ" 2>/dev/null | plain_lines |
        sed -n -E "s/^(RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|SLURM_PROCID|SLURM_STEP_ID|SLURM_NTASKS|SLURM_STEP_NUM_TASKS|SLURM_STEP_TASKS_PER_NODE|SLURM_STEP_NODELIST|SLURM_DISTRIBUTION|OMPI_COMM_WORLD_RANK|PMIX_RANK|PMI_RANK|TORCH_FR_DUMP_TEMP_FILE|TORCH_NCCL_DEBUG_INFO_TEMP_FILE)=/env$tab$1$tab\1$tab/p"
}

plain_lines() { tr -c '\040-\176\n' ' ' | cut -c 1-4000; }

python() {
    program=$(readlink "/proc/$1/exe" 2>/dev/null)
    case ${program##*/} in python* | pypy*) return 0 ;; esac
    timeout -s KILL 1 grep -q -s libpython "/proc/$1/maps"
}

dump() {
    [ -n "$tool" ] || return 0
    how=--nonblocking
    [ "$native" = 0 ] || how=--native
    for _ in once again; do # unpaused, a stack may change under py-spy's eyes
        out=$({
            timeout -k 1 "$each" "$tool" dump --json "$how" --pid "$1" 2>"$work/$1.err"
            echo $? >"$work/$1.code"
        } | head -c "$MOST")
        read -r code <"$work/$1.code" || code=28
        [ "$code" != 0 ] || break
        [ "$code" != 124 ] || break
    done
    [ "$native" = 0 ] || go_on "$1"
    if [ "${#out}" = "$MOST" ]; then
        told failed "$1" 27 "its stacks are longer than $MOST bytes"
    elif [ "$code" = 0 ]; then
        told stack "$1" "$(printf '%s' "$out" | tr '\n\t' '  ' | sed 's/  */ /g')"
    else
        told failed "$1" "$code" "$(tr '\n' ' ' <"$work/$1.err" | plain 400)"
    fi
}

# gdb stops what it looks at, so only when native stacks are asked for.
debug() {
    [ "$native" = 1 ] && command -v gdb >/dev/null || return 0
    timeout -k 1 "$each" gdb -p "$1" -batch -nx -ex bt </dev/null 2>/dev/null | grep '^#' | head -n 40 |
        while read -r line; do told frame "$1" "$(printf '%s' "$line" | plain 300)"; done
    go_on "$1"
}

# A tracer that was killed may leave a stop behind; what ran before must run again.
go_on() {
    # shellcheck disable=SC2046
    set -- "$1" $(stat_of "$1")
    [ "${2:-}" != T ] || kill -CONT "$1"
}

# -- all of them -----------------------------------------------------------------------------

choose() {
    tool='' why='py-spy is not installed on this node'
    for found in "$@"; do
        found=$(command -v "$found" 2>/dev/null)
        if [ -z "$found" ] || [ ! -x "$found" ]; then continue; fi
        version=$(timeout -k 1 5 "$found" --version 2>&1 | head -n 1 | plain 60)
        case $version in
        py-spy*) tool=$found && return ;;
        *) why="$found does not run here: $version" ;;
        esac
    done
}

# py-spy may also lie beside the Python that runs. What lies there is its user's: root never runs it,
# whoever owns it, since a mount of the user's (FUSE) may name any owner and mode.
beside() {
    [ "$(id -u)" != 0 ] || return 0
    echo "$1" | while read -r pid _; do
        found=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
        command=$(timeout -s KILL 1 tr '\000' '\n' <"/proc/$pid/cmdline" 2>/dev/null | head -n 1)
        for place in "$found" "$command"; do
            case $place in /*/python*) echo "${place%/*}/py-spy" ;; esac
        done
    done | sort -u | head -n 20 | while read -r found; do
        readlink -e "$found"
    done
}

# What NCCL's RAS knows of the whole job, asked by its owner on one node: text from 2.24 on, JSON
# from 2.28.7 on (src/ras/client_support.cc). Its port may be another job's: only a listener that is
# a process of this one is asked.
ras() {
    [ "$asker" = "${SLURMD_NODENAME:-$(uname -n)}" ] && command -v bash >/dev/null || return 0
    echo "$1" | while read -r pid _; do
        [ "$(stat -c %u "/proc/$pid" 2>/dev/null)" = "$(id -u)" ] || continue
        address=$(timeout -s KILL 1 tr '\000' '\n' <"/proc/$pid/environ" 2>/dev/null |
            sed -n 's/^NCCL_RAS_ADDR=//p' | head -n 1)
        port=${address##*:} host=${address%:*}
        case $port in '' | *[!0-9]*) port=28028 host=localhost ;; esac
        listens "$pid" "$port" || continue
        # shellcheck disable=SC2016 # for the shell within
        answer=$(timeout -k 1 "$each" bash -c 'exec 3<>"/dev/tcp/$0/$1" &&
            printf "CLIENT PROTOCOL 2\nTIMEOUT 4\nSET FORMAT json\nVERBOSE STATUS\n" >&3 &&
            head -c 16777216 <&3' "${host:-localhost}" "$port" 2>/dev/null | packed)
        told ras "$answer"
        return
    done
}

# Whether the process has a socket that listens on that port.
listens() {
    sockets=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v port="$(printf ':%04X' "$2")" \
        '$4 == "0A" && substr($2, length($2) - 4) == port { print "socket:[" $10 "]" }')
    [ -n "$sockets" ] || return 1
    find "/proc/$1/fd" -type l -exec readlink {} + 2>/dev/null | grep -q -x -F "$sockets"
}

# The last records of the kernel from warnings on, whole ones, as syslog(2) tells them: each line
# begins with the stamp of its record. busybox knows no other way, and no -S.
kernel_end() {
    timeout -k 1 3 dmesg -S -r >"$work/dmesg" 2>"$work/dmesg.err" ||
        { grep -q BusyBox "$work/dmesg.err" && timeout -k 1 3 dmesg -r >"$work/dmesg"; } ||
        { cat "$work/dmesg.err"; return; }
    awk 'function stamp(line) { return substr(line, 1, index(line, "]")) }
        /^<[0-4]>\[/ { said[++n] = $0 }
        END {
            first = n + 1
            for (i = n; i > 0 && n - i < 200; i--) {
                size += length(said[i]) + 1
                if (size > 32768) break
                if (stamp(said[i]) != stamp(said[i - 1])) first = i
            }
            for (i = first; i <= n; i++) print said[i]
        }' "$work/dmesg"
}

# What a reboot or a reset would take away: the end of the kernel's log, and the GPUs' own numbers.
# No processes: their command lines are nobody's business.
lasting() {
    told kernel "$(kernel_end | packed)"
    command -v nvidia-smi >/dev/null || return 0
    told gpus "$(timeout -k 1 6 nvidia-smi --format=csv --query-gpu=index,uuid,pci.bus_id,utilization.gpu,power.draw,power.limit,temperature.gpu,memory.used,clocks_throttle_reasons.active,ecc.errors.uncorrected.volatile.total 2>&1 | head -c 32768 | packed)"
}

# Beside the stacks: a driver or a port that never answers must not keep them back. What it has told
# by the end is told.
aside() {
    ( "$@" >"$work/aside.$1"
        mv "$work/aside.$1" "$work/told.$1" ) </dev/null >/dev/null 2>&1 &
}

told_aside() {
    while [ ! -e "$work/told.$1" ] && [ "$(date +%s)" -lt "$deadline" ]; do
        sleep 0.1 2>/dev/null || sleep 1
    done
    cat "$work/told.$1" 2>/dev/null || cat "$work/aside.$1"
}

packed() { base64 | tr -d '\n'; }

collect() {
    told node "$(uname -n)" "$(date +%s)"
    all=$(pids)
    printf '%s\n' "${all%%"$newline"*}"
    all=${all#*"$newline"}
    case $newline$all$newline in
    *"${newline}cut$newline"*) told cut && return ;;
    *"$newline"[0-9]*) ;;
    *) told none && return ;;
    esac
    tools="$tools
$(beside "$all")" IFS=$newline
    # shellcheck disable=SC2086 # a path a line
    set -f && choose $tools
    set +f && unset IFS
    if [ -n "$tool" ]; then told tool "$tool" "$version"; else told no-tool "$why"; fi
    told scope "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null)"
    [ "$evidence" != 1 ] || aside lasting
    aside ras "$all"
    every "$all"
    told_aside ras
    [ "$evidence" != 1 ] || told_aside lasting
}

# A process's lines end with `whole`. They are kept in memory first: where they do not fit into the
# file, the file stays empty and the process is named as one that could not be read.
every() {
    started=0 count=0
    set -f && IFS=$newline
    # shellcheck disable=SC2086 # a process a line
    set -- $1
    set +f && unset IFS
    for process in "$@"; do
        count=$((count + 1))
        # shellcheck disable=SC2086 # four words
        ( out=$(one $process 2>/dev/null)
            pid=${process%% *}
            printf '%s\n' "$out" "whole$tab$pid" >"$work/$pid.out" || : >"$work/$pid.out"
            mv "$work/$pid.out" "$work/$pid.done" ) </dev/null >/dev/null 2>&1 &
        started=$((started + 1))
        [ $((started % TOGETHER)) != 0 ] || await
    done
    await
    for process in "$@"; do
        pid=${process%% *}
        if [ "$(tail -n 1 "$work/$pid.done" 2>/dev/null)" = "whole$tab$pid" ]; then
            cat "$work/$pid.done"
        elif [ -e "$work/$pid.done" ]; then unread 28 "its stack did not fit into ${work%/*}: no space left"
        else unread 124 "no answer within $limit s"; fi
    done
    told seen "$count"
}

# A process that is there and of which nothing is known: the exit code and the reason.
unread() {
    # shellcheck disable=SC2086 # four words
    set -- "$1" "$2" $process
    told proc "$3" 0 "$4" "$5" "$6" '?' ''
    told failed "$3" "$1" "$2"
}

await() {
    while [ "$(find "$work" -name '*.done' | wc -l)" -lt "$started" ]; do
        [ "$(date +%s)" -lt "$deadline" ] || return
        sleep 0.03 2>/dev/null || sleep 1
    done
}

# A directory with room for the stacks of a node of many ranks (4 MiB), or else the last that can be
# made at all.
workplace() {
    for place in "${TMPDIR:-/tmp}" /tmp /dev/shm /var/tmp; do
        made=$(mktemp -d "$place/sentinel-stacks.XXXXXX" 2>/dev/null) || continue
        [ -z "$work" ] || rm -rf "$work"
        work=$made
        if head -c 4194304 /dev/zero >"$work/room" 2>/dev/null; then rm -f "$work/room" && return; fi
        rm -f "$work/room"
    done
    [ -n "$work" ]
}

main() {
    ticks=$(getconf CLK_TCK 2>/dev/null || echo 100)
    session=$(cut -d ' ' -f 6 </proc/$$/stat)
    deadline=$(($(date +%s) + limit)) each=$((limit > 4 ? limit - 2 : 2))
    work=''
    trap 'rm -rf "$work"' EXIT
    trap 'exit 143' TERM INT HUP
    workplace || { echo "no place for temporary files: /tmp, /dev/shm and /var/tmp are closed" >&2; exit 73; }
    collect | gzip -c | base64 -w 400 | awk -v head="$mark ${SLURMD_NODENAME:-$(uname -n)}" \
        '{ print head, NR, $0 } END { print head, "end", NR }'
}
