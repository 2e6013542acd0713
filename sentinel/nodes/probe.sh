# shellcheck shell=sh disable=SC2154 # what is set before it
# Tells how a node is, in one go, with what every node has. POSIX sh; nothing is installed.
#
# Set before it: mark, sections, paths (a line each), limit (seconds a tool has), since_boot,
# since_source, since, sys, proc, told_place (empty: chosen here), and waits.sh; `text` is all of
# that and this. Prints, for each section,
#   MARK SECTION STATE LINES [pid=N] [since=EPOCH] WHY
# and its LINES, each behind a blank, so that nothing found on the node can look like a mark.
#
# Whatever may hang runs in the background, in a shell of its own, under timeout(1) and a lock
# that the kernel drops when the last process of it is gone: a second probe sees the lock and
# starts nothing. No such process holds the pipes of this session.

LC_ALL=C TZ=UTC0 PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL TZ PATH

# -- sections: print, and end with one of these -------------------------------------------------

denied() { echo "$*" >&2; exit 77; }
missing() { echo "$*" >&2; exit 69; }
need() { command -v "$1" >/dev/null || missing "$1 is not installed"; }

open_to_us() {
    { read -r _ <"$proc/1/stat"; } 2>/dev/null ||
        denied "/proc hides the processes of others (hidepid)"
}

section_identity() {
    uname -n
    uname -r
    cat "$proc/sys/kernel/random/boot_id" "$proc/uptime" || exit 1
    date +%s
    id -u
}

# Facts of the kernel only: neither a name service nor a process's own memory is needed.
section_processes() {
    need ps
    open_to_us
    exec ps -e -ww -o pid=,ppid=,uid=,state=,lstart=,comm=
}

# These need both, and may wait for either.
section_commands() {
    need ps
    exec ps -e -ww -o pid=,user:64=,args=
}

section_blocked() {
    need ps
    open_to_us
    all=$(ps -eL -o pid=,ppid=,lwp=,state=,wchan:64=,comm=) || exit 1
    printf '%s\n' "$all" | awk '$4 == "D"'
}

# At most so many: each may take a second. See waits.sh.
section_waits() {
    need ps
    open_to_us
    all=$(ps -eL -o pid=,ppid=,lwp=,state=) || exit 1
    all=$(printf '%s\n' "$all" | awk '$4 == "D" && $1 != 2 && $2 != 2 && n++ < 5 { print $1, $3 }') || exit 1
    printf '%s\n' "$all" | while read -r pid thread; do
        [ -z "$pid" ] || blocked "$pid" "$thread" | grep '^waits'
    done
    :
}

section_mounts() { exec cat "$proc/self/mounts"; }

section_memory() {
    cat "$proc/meminfo" || exit 1
    sed -n 's/^oom_kill /OomKills: /p' "$proc/vmstat"
}

section_disk() {
    path=$(printf '%s\n' "$paths" | sed -n "$1p")
    exec stat -f -c '%S %b %f %a %c %d %T' -- "$path"
}

section_infiniband() {
    [ -d "$sys/class/infiniband" ] || missing "no InfiniBand driver is loaded"
    for port in "$sys"/class/infiniband/*/ports/*; do
        device=${port%/ports/*}
        for file in "$port"/state "$port"/phys_state "$port"/rate "$port"/link_layer \
            "$port"/counters/* "$port"/hw_counters/*; do
            if [ -f "$file" ] && read -r value <"$file"; then
                echo "${device##*/} ${port##*/} ${file##*/} $value"
            fi
        done 2>/dev/null
    done
}

# Ethernet and bonds, and the PCIe links and errors of GPUs and network cards (no virtual functions).
section_network() {
    [ -d "$sys/class/net" ] || missing "the kernel shows no network interfaces"
    for link in "$sys"/class/net/*; do
        if [ -d "$link/bonding" ]; then
            for slave in "$link"/lower_*; do
                [ ! -d "$slave" ] || echo "net ${link##*/} slave ${slave##*/lower_}"
            done
        elif [ ! -e "$link/device" ] || [ -e "$link/device/physfn" ]; then
            continue
        fi
        values "net ${link##*/}" "$link" operstate speed carrier_changes \
            statistics/rx_crc_errors statistics/rx_missed_errors statistics/tx_carrier_errors
    done
    for device in "$sys"/bus/pci/devices/*; do
        { read -r class <"$device/class"; } 2>/dev/null || continue
        case $class in 0x0200* | 0x0207* | 0x0300* | 0x0302* | 0x1200*) ;; *) continue ;; esac
        [ ! -e "$device/physfn" ] || continue
        for name in "$device"/infiniband/* "$device"/net/*; do
            if [ -d "$name" ]; then echo "pci ${device##*/} name ${name##*/}" && break; fi
        done
        values "pci ${device##*/}" "$device" class current_link_width max_link_width \
            current_link_speed max_link_speed
        for kind in correctable nonfatal fatal; do
            [ ! -f "$device/aer_dev_$kind" ] || while read -r what count; do
                case $what in TOTAL_*) echo "pci ${device##*/} aer_$kind $count" ;; esac
            done <"$device/aer_dev_$kind"
        done
    done
    :
}

# Bytes that went over the network and to and from disks since the boot: what a job that reads or loads
# moves. Ports count words of 4 bytes (Documentation/ABI/stable/sysfs-class-infiniband); vmstat counts KiB.
section_traffic() {
    for link in "$sys"/class/net/*; do
        [ "${link##*/}" = lo ] ||
            values "net ${link##*/}" "$link" statistics/rx_bytes statistics/tx_bytes
    done
    for port in "$sys"/class/infiniband/*/ports/*; do
        values "port ${port##*/}" "$port" counters/port_rcv_data counters/port_xmit_data
    done
    sed -n 's/^pgpg/disk vmstat pgpg/p' "$proc/vmstat"
}

# Temperatures and fans by what the kernel's drivers show, and how often heat slowed the processors.
section_hwmon() {
    [ -d "$sys/class/hwmon" ] || missing "the kernel shows no sensors"
    for chip in "$sys"/class/hwmon/*; do
        { read -r name <"$chip/name"; } 2>/dev/null || continue
        device=$(readlink "$chip/device")
        for file in "$chip"/temp*_input "$chip"/temp*_crit "$chip"/temp*_crit_alarm \
            "$chip"/temp*_label "$chip"/fan*_input "$chip"/fan*_alarm "$chip"/fan*_label; do
            if [ -f "$file" ] && read -r value <"$file"; then
                echo "${chip##*/} ${device##*/} $name ${file##*/} $value"
            fi
        done 2>/dev/null
    done
    for kind in core package; do
        sum=0 read_one=
        for file in "$sys"/devices/system/cpu/cpu*/thermal_throttle/"$kind"_throttle_count; do
            { read -r value <"$file" && sum=$((sum + value)) && read_one=1; } 2>/dev/null
        done
        [ -z "$read_one" ] || echo "throttled $kind $sum"
    done
}

# What the board's management controller measures, and the last of what it has written down.
section_ipmi() {
    need ipmitool
    ipmitool sdr elist || exit 1
    ipmitool sel elist last 5 2>/dev/null | sed 's/^/event /'
    :
}

# The first line of each of these files below a directory that has one.
values() {
    whose=$1 place_of=$2
    shift 2
    for file in "$@"; do
        if [ -f "$place_of/$file" ] && read -r value <"$place_of/$file"; then
            echo "$whose ${file##*/} $value"
        fi
    done 2>/dev/null
}

# Two witnesses: the daemons of steps, and the kernel's own bookkeeping. What processes inherited, maybe
# from a step that is over, is no more than a doubt: anybody may export any id.
section_steps() {
    found=$(daemons "$proc")
    with_its_end "saw daemons" "$found" || exit 1
    found=$(processes_by_cgroup "$proc" | sort -u)
    with_its_end "saw cgroups" "$found" || exit 1
    [ "$(id -u)" = 0 ] || { echo "blind environments: only root may read them"; return; }
    found=$(search_processes "$proc" environ SLURM_JOB_ID=0 -m 1 -z '^SLURM_JOB_ID=[0-9]' |
        tr '\n\0' ' \n' |
        sed -n -e '/:SLURM_JOB_ID=[0-9]\{11,\}/d' \
            -e 's|^[^:]*/\([0-9]*\)/environ:SLURM_JOB_ID=\([0-9]*\).*|environment \1 \2|p' \
            -e 's|^(standard input):.*|saw environments|p')
    with_its_end "saw environments" "$found" || exit 1
}

# Prints the lines of a search with the one that is its end as the last; fails where that is missing.
with_its_end() {
    printf '%s\n' "$2" | grep -v -x -F "$1"
    case $2 in *"$1"*) echo "$1" ;; *) echo "the search of /proc was cut" >&2 && return 1 ;; esac
}

# No names: nvidia-smi may print them as their users chose them, newlines too, which forge rows.
section_gpu_processes() {
    need nvidia-smi
    exec nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits
}

# A whole page is one whatever the exit code, which stands behind it (14: an infoROM is corrupted).
section_gpus() {
    need nvidia-smi
    # In the background, so that its own number is known: it may hang where this shell is ended.
    nvidia-smi -q -x >"$work/gpus.page" &
    echo "$! $(date +%s)" >"$place/$(lock_of gpus).running"
    wait $! && code=0 || code=$?
    page=$(cat "$work/gpus.page") || exit 1
    printf '%s\n' "$page"
    [ "$code" -ne 0 ] || return 0
    case $page in
    *"</nvidia_smi_log>"*) 
        case $code in 14) code="14: the infoROM of a GPU is corrupted" ;; esac
        echo "nvidia-smi ended with exit code $code"
        ;;
    *) exit "$code" ;;
    esac
}

# How busy each GPU was in the last seconds: the page of XML has one number of this moment only.
section_gpu_use() {
    need nvidia-smi
    exec nvidia-smi -q -d UTILIZATION
}

section_nvlink() {
    need nvidia-smi
    exec nvidia-smi nvlink -e
}

# The kernel's log: exact from /dev/kmsg, else by time from syslog(2), else what journald shows.
section_kernel() {
    read -r boot <"$proc/sys/kernel/random/boot_id"
    [ "$boot" = "$since_boot" ] || since=-1 since_source=
    kernel_kmsg || kernel_syslog || kernel_journal ||
        denied "the kernel's log is closed to this user (kernel.dmesg_restrict), or was cleared"
}

kernel_kmsg() {
    [ -r /dev/kmsg ] || return 1
    dd if=/dev/kmsg iflag=nonblock bs=8192 >"$work/kmsg" 2>"$work/kmsg.err"
    grep -q 'temporarily unavailable' "$work/kmsg.err" || return 1
    [ "$since_source" = kmsg ] || since=-1
    echo kmsg
    awk -F '[,;]' -v since="$since" '/^[0-9]+,[0-9]+,/ && $2 + 0 > since + 0' "$work/kmsg" | last
}

# By syslog(2), where each line begins with the stamp of its record. In the text of an old dmesg a
# newline in the name of a file begins a record. busybox knows no other way, and no -S.
kernel_syslog() {
    dmesg -S -r >"$work/syslog" 2>"$work/syslog.err" ||
        { grep -q BusyBox "$work/syslog.err" && dmesg -r >"$work/syslog" 2>/dev/null; } || return 1
    grep -q '^<[0-9]*>\[ *[0-9]' "$work/syslog" || return 1
    echo syslog
    [ "$since_source" = dmesg ] || since=-1
    # A record of several lines has one stamp.
    awk -v since="$since" '/^<[0-9]+>\[ *[0-9]+\.[0-9]+\]/ { split($0, part, /[][ ]+/)
            newer = part[2] * 1000000 > since + 0.5 } newer' "$work/syslog" | last
}

# What programs have written to /dev/kmsg has the transport of the kernel, but not its facility.
kernel_journal() {
    journal_json --output-fields=MESSAGE,PRIORITY,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP ||
        journal_json || return 1 # systemd before 236 prints all fields
    [ -s "$work/journal" ] || return 1
    echo journal
    [ "$since_source" = journal ] || since=-1
    awk -v since="$since" 'match($0, /"__MONOTONIC_TIMESTAMP" *: *"[0-9]+"/) {
            at = substr($0, RSTART, RLENGTH); gsub(/[^0-9]/, "", at)
            if (at + 0 > since + 0) print }' "$work/journal" | last
}

journal_json() {
    journalctl -b -a -q --no-pager -o json "$@" _TRANSPORT=kernel SYSLOG_FACILITY=0 \
        >"$work/journal" 2>/dev/null
}

last() { tail -n 5000; }

# -- running them ----------------------------------------------------------------------------

# One section in a shell of its own; the process that may hang keeps this shell's number.
section() {
    echo "$$ $(date +%s)" >"$place/$2.running"
    ulimit -f 16384 # blocks of 512 bytes
    case $1 in
    disk.*) section_disk "${1#disk.}" ;;
    *) "section_$1" ;;
    esac
}

# A directory that only this user can put anything into; names the host, as containers that
# stand in for nodes may share /run.
workplace() {
    user=$(id -u) host=$(uname -n)
    place=/tmp/sentinel-$user.$host
    [ "$user" != 0 ] || place=/run/sentinel.$host
    place=${told_place:-$place}
    mkdir -m 700 "$place" 2>/dev/null
    ours "$place" || another_place || return 1
    find "$place" -name 'call.*' -mmin +60 -exec rm -rf {} + 2>/dev/null
    work=$place/call.$$
    rm -rf "$work" && mkdir "$work" && echo full >"$work/is-not" && export place work
}

# Whether a directory is this user's own and closed to others, no link.
ours() {
    # shellcheck disable=SC2012 # the name is ours, and stat(1) has no common options
    owned=$(ls -ldn "$1" 2>/dev/null | awk '{ print substr($1, 1, 10), $3 }')
    [ "$owned" = "drwx------ $user" ]
}

# Where somebody sits in the place of ours: a directory with a name at random, which later probes find
# again, since it holds the locks. Others may plant names; only one that is ours is taken.
another_place() {
    [ -e "$place" ] || [ -L "$place" ] || return 1
    # shellcheck disable=SC2012
    holder_id=$(ls -ldn "$place" 2>/dev/null | awk '{ print $3 }')
    squatter="$place belongs to uid ${holder_id:-?} and is not ours alone"
    for other in "$place".*; do
        if ours "$other"; then place=$other && return; fi
    done
    place=$(mktemp -d "$place.XXXXXXXX" 2>/dev/null) && ours "$place"
}

# Which sections ask the same tool, and so wait for one another.
lock_of() {
    case $1 in
    gpus | gpu_use | gpu_processes | gpu_memory | nvlink) echo nvidia-smi ;;
    disk.*) echo "disk.$(printf '%s\n' "$paths" | sed -n "${1#disk.}p" | cksum | tr ' ' -)" ;;
    *) echo "$1" ;;
    esac
}

start() {
    (
        exec </dev/null >"$work/$1.out" 2>"$work/$1.err" 9>>"$place/$2.lock"
        if enter "$2"; then
            # Quoted for the inner shell.
            # shellcheck disable=SC2016
            printf '%s\n' "$text" |
                timeout -k 1 "$limit" sh -c 'text=$(cat); eval "$text"; "$@"' sentinel section "$1" "$2"
            code=$?
            case $code in 124 | 137) ;; *) : >"$place/$2.running" ;; esac
        else
            code=busy
        fi
        exec 9>&- # from here on only what was left behind holds the lock
        echo "$code" >"$work/$1.code"
    ) &
}

# Take the lock, or wait for as long as another probe may rightly hold it.
enter() {
    ! flock -n 9 || return 0
    patience=$((limit + 2))
    if holder "$1"; then patience=$((patience + began - $(date +%s))); fi
    [ "$patience" -gt 0 ] && flock -w "$patience" 9
}

# Who holds a lock, and since when, as far as it is known and still there.
holder() {
    read -r pid began 2>/dev/null <"$place/$1.running" && [ -n "$began" ] && [ -d "$proc/$pid" ]
}

# Wait until a section has ended, or what holds its lock has had more than its time.
await() {
    while [ ! -s "$work/$1.code" ]; do
        now=$(date +%s)
        [ "$now" -lt "$deadline" ] || return
        if holder "$2" && [ $((now - began)) -gt $((limit + 2)) ]; then return; fi
        sleep 0.05 2>/dev/null || sleep 1
    done
}

report() {
    code=$(cat "$work/$1.code" 2>/dev/null)
    why=$(cat "$work/$1.err" "$work/$1.out" 2>/dev/null | first)
    judge "$1" "$2"
    : >"$work/body"
    if [ "$state" = ok ] && ! { tr -d '\000' <"$work/$1.out" >"$work/plain" &&
        awk '{ print " " $0 }' "$work/plain" >"$work/body"; }; then
        state=failed why="it was read, and could not be passed on"
    fi
    [ "$state" = ok ] || : >"$work/body"
    echo "$mark $1 $state $(awk 'END { print NR }' "$work/body") $why"
    cat "$work/body"
}

judge() {
    state=failed
    case $code in
    0) state=ok why= ;;
    77) state=denied ;;
    69) state=missing ;;
    153) why="it printed more than 8 MiB" ;;
    124 | 137) hung "$2" -w 1 || state=late why="no answer within $limit s; it was ended" ;;
    busy | '') hung "$2" -n || why="it could not be started" ;;
    *) why="exit code $code: $why" ;;
    esac
}

# Whether something that cannot be ended still holds the lock; how to look is flock's option.
hung() {
    lock=$1
    shift
    ! (flock "$@" 9) 9>>"$place/$lock.lock" || return 1
    state=hung why="not even SIGKILL ends it"
    [ "$code" != busy ] || why="an earlier one does not end; none was started"
    if holder "$lock"; then why="pid=$pid since=$began $why"; fi
}

first() { head -n 1 | cut -c 1-300 | tr -cd '\040-\176'; } # busybox's tr knows no [:print:]

main() {
    echo "$mark begin 1"
    squatter=''
    if ! command -v flock >/dev/null || ! command -v timeout >/dev/null; then
        echo "$mark trouble flock and timeout are needed (util-linux, coreutils)"
    elif ! workplace; then
        echo "$mark trouble $place is not ours alone, or cannot be made"
    else
        [ -z "$squatter" ] || echo "$mark squatter ok 0 $squatter"
        for one in $sections; do start "$one" "$(lock_of "$one")"; done
        deadline=$(($(date +%s) + 2 * limit + 3))
        for one in $sections; do
            lock=$(lock_of "$one")
            await "$one" "$lock"
            report "$one" "$lock"
        done
        rm -rf "$work"
    fi
    echo "$mark end"
}
