# shellcheck shell=sh disable=SC2154 # probe.sh stands behind it, and sets what is not set here
# Sections about the host itself: memory controllers, RAID, NVMe, and tasks that do not go on.

# Counts of the memory controllers, arrays of md, and the states of NVMe controllers: a file of the
# kernel each, which everybody may read.
section_hardware() {
    [ -d "$sys/devices/system" ] || missing "the kernel shows no devices"
    for controller in "$sys"/devices/system/edac/mc/mc[0-9]*; do
        values "memory ${controller##*/}" "$controller" ce_count ue_count
        for dimm in "$controller"/dimm[0-9]* "$controller"/rank[0-9]*; do
            values "memory ${controller##*/}/${dimm##*/}" "$dimm" dimm_label dimm_ce_count dimm_ue_count
        done
    done
    for array in "$sys"/block/md*; do
        values "raid ${array##*/}" "$array/md" array_state level degraded sync_action metadata_version
    done
    for drive in "$sys"/class/nvme/nvme[0-9]*; do
        values "nvme ${drive##*/}" "$drive" state transport
    done
    echo end
}

# What each local NVMe drive warns of itself, by whichever tool is there.
section_smart() {
    drives=
    for drive in "$sys"/class/nvme/nvme[0-9]*; do
        read -r transport 2>/dev/null <"$drive/transport" || continue
        [ "$transport" != pcie ] || drives="$drives ${drive##*/}"
    done
    if [ -n "$drives" ]; then
        [ "$(id -u)" = 0 ] || denied "only root may ask a drive for its health"
        command -v nvme >/dev/null || command -v smartctl >/dev/null ||
            missing "neither nvme nor smartctl is installed"
    fi
    for drive in $drives; do
        # smartctl ends with a code of its own where the drive is not well.
        if command -v nvme >/dev/null; then said=$(nvme smart-log "/dev/$drive" 2>&1)
        else said=$(smartctl -A "/dev/$drive" 2>&1); fi
        found=$(printf '%s\n' "$said" | sed -n -e 's/^critical_warning[^:]*: *//p' \
            -e 's/^Critical Warning: *//p')
        echo "$drive ${found:-none $(printf '%s\n' "$said" | first)}"
    done
    echo end
}

# Whether something keeps this clock in step, by chrony, else by what the kernel was told. timedatectl asks
# systemd, which containers and some small systems do without (sd_booted(3)).
section_clock() {
    said='' asked=''
    if command -v chronyc >/dev/null; then asked=chronyc; fi
    if [ -n "$asked" ] && said=$(chronyc -n tracking 2>&1); then
        printf '%s\n' "$said" | sed -n -e 's/^Leap status *: */chrony /p' \
            -e 's/^System time *: \([0-9.]*\) seconds \([a-z]*\) of NTP time.*/offset \1 \2/p'
    elif command -v timedatectl >/dev/null && [ -d "$run/systemd/system" ]; then
        said=$(timedatectl status) || exit 1
        printf '%s\n' "$said" | sed -n -e 's/^ *System clock synchronized: */timedatectl /p' \
            -e 's/^ *NTP synchronized: */timedatectl /p'
    elif [ -n "$asked" ]; then
        printf 'chronyc: %s\n' "$(printf '%s\n' "$said" | first)" >&2
        exit 1
    else
        missing "chronyc is not installed, and no systemd runs to ask"
    fi
    echo end
}

# How much of each GPU's memory is in use.
section_gpu_memory() {
    need nvidia-smi
    nvidia-smi --query-gpu=uuid,memory.used --format=csv,noheader,nounits || exit 1
    echo end
}

# DCGM's daemon: its memory, whether it answers, and how long its log is. Only that of a system user:
# anybody may call a process so.
section_dcgm() {
    need ps
    all=$(ps -e -o pid=,uid=,rss=,comm=) || exit 1
    engine=$(printf '%s\n' "$all" | awk '$2 < 1000 && $4 == "nv-hostengine" { print "engine", $1, $3; exit }')
    for log in "$var"/log/nv-hostengine.log "$var"/log/nvidia-dcgm/*.log; do
        # shellcheck disable=SC2012 # the names are ours, and stat(1) has no common options
        [ ! -f "$log" ] || ls -ln "$log" | awk -v path="$log" '{ print "log", $5, path }'
    done
    if [ -n "$engine" ]; then
        echo "$engine"
        if command -v dcgmi >/dev/null; then
            patience=$((limit / 2))
            [ "$patience" -gt 0 ] || patience=1
            timeout -k 1 "$patience" dcgmi discovery -l >/dev/null 2>&1
            case $? in 124 | 137) echo "answer none $patience" ;; 0) echo "answer ok $patience" ;; esac
        fi
    fi
    echo end
}

# Threads in state D, with when they began and how often they gave up the processor: one whose number
# stays has not run. At most so many; the last line has the number of all. One that has gone on meanwhile is
# none: on a busy node they come and go all the time.
section_stalled() {
    need ps
    open_to_us
    all=$(ps -eL -o pid=,ppid=,lwp=,state=,wchan:64=,comm=) || exit 1
    all=$(printf '%s\n' "$all" | awk '$4 == "D" && $1 != 2 && $2 != 2') || exit 1
    seen=$(printf '%s\n' "$all" | head -n 200 | while read -r pid _ thread _ wait name; do
        [ -n "$pid" ] || continue
        record='' switches=''
        { while read -r line; do record="$record $line"; done <"$proc/$pid/task/$thread/stat"; } 2>/dev/null
        { while read -r key value; do
            case $key in voluntary_ctxt_switches:) switches=$value ;; esac
        done <"$proc/$pid/task/$thread/status"; } 2>/dev/null
        # After the name, which may hold anything: state, parent and so on; the 20th is when it began.
        # shellcheck disable=SC2086 # numbers
        set -- ${record##*)}
        [ $# -ge 20 ] || continue # it has ended
        shift 19
        [ -z "$switches" ] || printf '%s\n' "$pid $thread $1 $switches $wait $name"
    done)
    [ -z "$seen" ] || printf '%s\n' "$seen"
    count=$(printf '%s' "$seen" | awk 'END { print NR }')
    echo "all $(printf '%s' "$all" | awk -v seen="$count" 'END { print seen + (NR > 200 ? NR - 200 : 0) }')"
}
