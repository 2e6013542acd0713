#!/bin/sh
# Before each job, or at a node's boot: is a GPU in this machine that is known as a lemon?
#   slurm.conf:      Prolog=/etc/slurm/sentinel-prolog-gpus.sh   (Slurm runs it as root)
#   slurmd.service:  ExecStartPre=/etc/slurm/sentinel-prolog-gpus.sh
# Keep this file itself on a local disk. Ends with 1, upon which Slurm drains the node and holds the
# job, only where one is. No sentinel, no list, no answer of nvidia-smi, a file system that hangs: 0
# within a minute, and a line in slurmd's log. Calls no command of Slurm.
# Settings: change them here. Slurm hands a prolog no variable of slurmd's (_build_env() in
# src/plugins/prep/script/prep_script_slurmd.c), and none of the job's.
SENTINEL=${SENTINEL:-sentinel} # its path, where it lies in none of the directories below
SENTINEL_LEMONS=${SENTINEL_LEMONS:-} # a list made by `sentinel gpus export`, where the node sees it
SENTINEL_LEMONS_KEY=${SENTINEL_LEMONS_KEY:-} # the file with the key that signed it
SENTINEL_LEMONS_LIMIT=${SENTINEL_LEMONS_LIMIT:-45} # seconds
name=sentinel-prolog-gpus
limit=$SENTINEL_LEMONS_LIMIT
case $limit in 0* | *[!0-9]*)
    echo "SENTINEL_LEMONS_LIMIT=$limit is no number of seconds; 45 it is" >&2
    limit=45
    ;;
esac

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

ask "$limit" "$SENTINEL" gpus check \
    ${SENTINEL_LEMONS:+--list "$SENTINEL_LEMONS"} \
    ${SENTINEL_LEMONS_KEY:+--key-file "$SENTINEL_LEMONS_KEY"}
# A Python that cannot start (a broken installation) ends with 1 too, and says nothing here.
case $?:$said in "1:lemon GPU "*) exit 1 ;; esac
exit 0
