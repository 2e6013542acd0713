#!/bin/sh
# Before each job, or at a node's boot: is a GPU in this machine that is known as a lemon?
#   slurm.conf:      Prolog=/etc/slurm/sentinel-prolog-gpus.sh   (Slurm runs it as root)
#   slurmd.service:  ExecStartPre=/etc/slurm/sentinel-prolog-gpus.sh
# Ends with 1, upon which Slurm drains the node and holds the job, only where one is. No sentinel,
# no list, no answer of nvidia-smi: 0, and a line in slurmd's log. Calls no command of Slurm.
# Settings: SENTINEL, SENTINEL_LEMONS (a list made by `sentinel gpus export`, on a file system
# that the node sees), SENTINEL_LEMONS_KEY (the file with the key that signed it).
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

said=$(timeout -k 10 45 "${SENTINEL:-sentinel}" gpus check \
    ${SENTINEL_LEMONS:+--list "$SENTINEL_LEMONS"} \
    ${SENTINEL_LEMONS_KEY:+--key-file "$SENTINEL_LEMONS_KEY"})
code=$?
[ -z "$said" ] || printf '%s\n' "$said"
# A Python that cannot start (a broken installation) ends with 1 too, and says nothing here.
case $code:$said in "1:lemon GPU "*) exit 1 ;; esac
exit 0
