#!/bin/sh
# Records what each GPU of a job does, every 15 seconds, one file a node: DIR/dmon-JOB-NODE.log.
# In the job, before the training begins:
#   srun --overlap --ntasks-per-node=1 /path/to/sentinel-dmon.sh /gpfs/work/logs &
# It ends with the job. `sentinel check gpu --dmon '/gpfs/work/logs/dmon-*.log'` reads the files.
dir=${1:-.}
every=${SENTINEL_DMON_EVERY:-15}
file=$dir/dmon-${SLURM_JOB_ID:-0}-$(hostname -s).log
# power and temperature, utilisation, PCIe throughput; with date and time. Where others may write too, a
# link could lead to any file of yours, and a FIFO would wait for ever: dd of coreutils opens neither.
nvidia-smi dmon -s put -o DT -d "$every" |
    dd of="$file" oflag=append,nofollow,nonblock conv=notrunc status=none
