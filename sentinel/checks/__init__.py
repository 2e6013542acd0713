"""The explicit list of check kinds; each is one module or package, imported when used."""

GROUP = "sentinel.checks"

KINDS = {
    "diag": "sentinel.checks.diag:Diag",
    "checkpoint": "sentinel.checks.checkpoint:Checkpoint",
    "clean": "sentinel.checks.clean.check:Clean",
    "chain": "sentinel.checks.chain:ChainCheck",
    "cron": "sentinel.checks.cron:CronCheck",
    "drained": "sentinel.checks.drained:Drained",
    "du": "sentinel.checks.du.check:DuCheck",
    "exec": "sentinel.checks.exec:Exec",
    "fs": "sentinel.checks.fs:Fs",
    "gpu": "sentinel.checks.gpu:GpuCheck",
    "job": "sentinel.checks.job:JobCheck",
    "log": "sentinel.checks.log:Log",
    "memory": "sentinel.checks.memory:Memory",
    "network": "sentinel.checks.network:NetworkCheck",
    "nodes": "sentinel.checks.nodes:Nodes",
    "quota": "sentinel.checks.quota.check:QuotaCheck",
    "sensors": "sentinel.checks.sensors:SensorsCheck",
    "service": "sentinel.checks.service:Service",
    "slurm": "sentinel.checks.slurm:SlurmCheck",
}
