#!/bin/sh
# One `dcgmi diag` on one node: job.sh LEVEL OUT LIMIT. Writes OUT (what dcgmi printed), OUT.gpus
# (nvidia-smi -q -x: UUIDs and serials), OUT.err, and last of all OUT.rc (the exit code). As a
# batch job, or through ssh on a drained node. Its own limit comes before that of the job.
main() {
    exec </dev/null >/dev/null 2>&1
    level=$1 out=$2 limit=$3
    PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    umask 022
    mkdir -p "${out%/*}"
    # Where others may write too, a link must not lead root elsewhere: noclobber opens the disk that one leads to,
    # and mv puts a file into the directory.
    work=$(mktemp -d "$out.XXXXXX") && cd "$work" || return
    timeout -k 5 60 nvidia-smi -q -x >gpus
    timeout -k 30 "$limit" dcgmi diag -r "$level" -j >said 2>err
    echo "$?" >rc
    mv -T gpus "$out.gpus"
    mv -T err "$out.err"
    mv -T said "$out"
    mv -T rc "$out.rc"
    rm -rf "$work"
}
main "$@"
