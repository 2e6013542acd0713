#!/bin/sh
# After each job: a quick dcgmi diag of the GPUs that it had, on this node.
#   slurm.conf: Epilog=/etc/slurm/sentinel-epilog-dcgm.sh        (Slurm runs it as root)
# Keep this file itself on a local disk. Ends with 1, upon which Slurm drains the node, only for a
# confirmed fault of the hardware. No sentinel, no dcgmi, no host engine, a busy GPU, a time-out, a
# file system that hangs: 0, and a line in slurmd's log.
# Calls no command of Slurm (slurm.conf(5), Prolog and Epilog), and leaves other jobs' GPUs alone.
# Settings: change them here. Slurm hands an epilog no variable of slurmd's (_build_env() in
# src/plugins/prep/script/prep_script_slurmd.c), and none of the job's.
SENTINEL=${SENTINEL:-sentinel} # its path, where it lies in none of the directories below
SENTINEL_DIAG_LEVEL=${SENTINEL_DIAG_LEVEL:-1}
SENTINEL_DIAG_LIMIT=${SENTINEL_DIAG_LIMIT:-90} # seconds, 30 below slurm.conf's PrologEpilogTimeout
SENTINEL_DIAG_ARCHIVE=${SENTINEL_DIAG_ARCHIVE:-} # a directory; empty: none
name=sentinel-epilog-dcgm
limit=$SENTINEL_DIAG_LIMIT
# A shell cannot count with `90s` or `08`: no GPU would ever be tested.
case $limit in 0* | *[!0-9]*)
    echo "SENTINEL_DIAG_LIMIT=$limit is no number of seconds; 90 it is" >&2
    limit=90
    ;;
esac
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0

# -- the same lines stand in the prolog and in the epilog ----------------------------------------
# A program or a list on a shared file system that hangs waits in state D, where no signal reaches
# it: who reads its words then waits for ever, and Slurm drains the node. So it runs in the background, writes
# into local files, is waited for with a limit, and abandoned; while one still hangs, no other starts.
# slurmd hands over no PATH. That of bash then ends with `.`, which may be /var/tmp (_set_work_dir()
# in src/slurmd/slurmd/slurmd.c), where anybody puts programs that root would run: hence `cd /`.
cd /
given=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH # what this shell itself needs is local
export PATH

# ask SECONDS COMMAND...: ends as the command does, with 124 where it gave no answer; sets $said.
ask() {
    seconds=$1 said=
    shift
    place=/run/$name
    [ -w /run ] || place=/tmp/$name
    hanging && return 124
    work=$(mktemp -d "$place.XXXXXX") || return 124
    command exec 9>"$work/alive" || { rm -rf "$work" && return 124; } # exec alone would end this shell
    flock -n 9
    (
        PATH=$given
        timeout -k 2 "$seconds" "$@" >"$work/said" 2>"$work/errors"
        echo $? >"$work/code.part" && mv "$work/code.part" "$work/code"
    ) </dev/null >/dev/null 2>&1 &
    exec 9>&-
    left=$((seconds * 5 + 20))
    until [ -s "$work/code" ] || [ "$left" -le 0 ]; do
        sleep 0.2
        left=$((left - 1))
    done
    said=$(head -c 4000 "$work/said")
    head -c 4000 "$work/errors" >&2
    [ -z "$said" ] || printf '%s\n' "$said"
    code=124
    [ ! -s "$work/code" ] || read -r code <"$work/code"
    if flock -w 2 "$work/alive" true; then # its shell may just be ending
        rm -rf "$work"
    else
        echo "$name: it hangs, also when killed: abandoned, and this node is not judged" >&2
        code=124
    fi
    return "$code"
}

# Whether an abandoned one is still there: it holds the lock of its own directory.
hanging() {
    for old in "$place".*; do
        [ -d "$old" ] || continue
        [ -n "$(find "$old" -prune -user "$(id -u)" -mmin "+$((seconds / 60 + 1))")" ] || continue
        if flock -n "$old/alive" true; then
            rm -rf "$old"
        else
            echo "$name: an earlier one still hangs ($old): not started, node not judged" >&2
            return 0
        fi
    done
    return 1
}
# ------------------------------------------------------------------------------------------------

ask $((limit + 15)) "$SENTINEL" diag here --gpus "$SLURM_JOB_GPUS" \
    --level "$SENTINEL_DIAG_LEVEL" --limit "$limit" \
    ${SENTINEL_DIAG_ARCHIVE:+--archive "$SENTINEL_DIAG_ARCHIVE"}
# A Python that cannot start (a broken installation, behind a wrapper that talks) ends with 1 too.
case $?:$said in 1:*"dcgmi diag -r "*": fail: "*) exit 1 ;; esac
exit 0
