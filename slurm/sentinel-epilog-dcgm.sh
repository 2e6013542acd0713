#!/bin/sh
# After each job: a quick dcgmi diag of the GPUs that it had, on this node.
#   slurm.conf: Epilog=/etc/slurm/sentinel-epilog-dcgm.sh        (Slurm runs it as root)
# Ends with 1, upon which Slurm drains the node, only for a confirmed fault of the hardware. No
# sentinel, no dcgmi, no host engine, a busy GPU, a time-out: 0, and a line in slurmd's log.
# Calls no command of Slurm (slurm.conf(5), Prolog and Epilog), and leaves other jobs' GPUs alone.
# Settings: SENTINEL, SENTINEL_DIAG_LEVEL (1), SENTINEL_DIAG_LIMIT (seconds, 90; keep it below
# slurm.conf's PrologEpilogTimeout), SENTINEL_DIAG_ARCHIVE (a directory).
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
limit=${SENTINEL_DIAG_LIMIT:-90}
# A shell cannot count with `90s` or `08`: no GPU would ever be tested.
case $limit in 0* | *[!0-9]*)
    echo "SENTINEL_DIAG_LIMIT=$limit is no number of seconds; 90 it is" >&2
    limit=90
    ;;
esac
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0

said=$(timeout -k 10 $((limit + 15)) "${SENTINEL:-sentinel}" diag here --gpus "$SLURM_JOB_GPUS" \
    --level "${SENTINEL_DIAG_LEVEL:-1}" --limit "$limit" \
    ${SENTINEL_DIAG_ARCHIVE:+--archive "$SENTINEL_DIAG_ARCHIVE"})
code=$?
[ -z "$said" ] || printf '%s\n' "$said"
# A Python that cannot start (a broken installation, behind a wrapper that talks) ends with 1 too.
case $code:$said in 1:*"dcgmi diag -r "*": fail: "*) exit 1 ;; esac
exit 0
