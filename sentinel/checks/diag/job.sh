#!/bin/sh
# One `dcgmi diag` on one node: job.sh LEVEL OUT LIMIT. Writes OUT (what dcgmi printed), OUT.gpus
# (nvidia-smi -q -x: UUIDs and serials), OUT.err, and last of all OUT.rc (the exit code). As a
# batch job, or through ssh on a drained node. Its own limit comes before that of the job.
main() {
    exec </dev/null >/dev/null 2>&1
    level=$1 out=$2 limit=$3
    PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    umask 022
    set -C # where others may write too, a link must not lead root elsewhere
    mkdir -p "${out%/*}"
    timeout -k 5 60 nvidia-smi -q -x >"$out.gpus"
    timeout -k 30 "$limit" dcgmi diag -r "$level" -j >"$out.part" 2>"$out.err"
    code=$?
    mv "$out.part" "$out"
    echo "$code" >"$out.rc.part"
    mv "$out.rc.part" "$out.rc"
}
main "$@"
