#!/bin/sh
# Records what each GPU of a job does, every 15 seconds, one file a node: DIR/dmon-JOB-NODE.log.
# In the job, before the training begins:
#   srun --overlap --ntasks-per-node=1 /path/to/sentinel-dmon.sh /gpfs/work/logs &
# It ends with the job. `sentinel check gpu --dmon '/gpfs/work/logs/dmon-*.log'` reads the files.
dir=${1:-.}
every=${SENTINEL_DMON_EVERY:-15}
file=$dir/dmon-${SLURM_JOB_ID:-0}-$(hostname -s).log
if [ -L "$file" ]; then # where others may write too, it could lead to any file of yours
    echo "$file is a link: nothing is recorded through it" >&2
    exit 73
fi
# power and temperature, utilisation, PCIe throughput; with date and time
exec nvidia-smi dmon -s put -o DT -d "$every" >>"$file"
