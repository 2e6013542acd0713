"""The explicit list of check kinds; each is one module or package, imported when used."""

GROUP = "sentinel.checks"

KINDS = {
    "diag": "sentinel.checks.diag:DiagCheck",
    "checkpoint": "sentinel.checks.checkpoint:CheckpointCheck",
    "clean": "sentinel.checks.clean.check:CleanCheck",
    "chain": "sentinel.checks.chain:ChainCheck",
    "cron": "sentinel.checks.cron:CronCheck",
    "drained": "sentinel.checks.drained:DrainedCheck",
    "du": "sentinel.checks.du.check:DuCheck",
    "exec": "sentinel.checks.exec:ExecCheck",
    "fs": "sentinel.checks.fs:FsCheck",
    "gpu": "sentinel.checks.gpu:GpuCheck",
    "host": "sentinel.checks.host:HostCheck",
    "idle": "sentinel.checks.idle:IdleCheck",
    "job": "sentinel.checks.job:JobCheck",
    "log": "sentinel.checks.log:Log",
    "memory": "sentinel.checks.memory:MemoryCheck",
    "network": "sentinel.checks.network:NetworkCheck",
    "nodes": "sentinel.checks.nodes:NodesCheck",
    "quota": "sentinel.checks.quota.check:QuotaCheck",
    "sensors": "sentinel.checks.sensors:SensorsCheck",
    "service": "sentinel.checks.service:ServiceCheck",
    "slurm": "sentinel.checks.slurm:SlurmCheck",
}
