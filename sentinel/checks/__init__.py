"""The explicit list of check kinds; each is one module or package, imported when used."""

GROUP = "sentinel.checks"

KINDS = {
    "chain": "sentinel.checks.chain:ChainCheck",
    "drained": "sentinel.checks.drained:Drained",
    "exec": "sentinel.checks.exec:Exec",
    "fs": "sentinel.checks.fs:Fs",
    "job": "sentinel.checks.job:JobCheck",
    "log": "sentinel.checks.log:Log",
    "memory": "sentinel.checks.memory:Memory",
    "nodes": "sentinel.checks.nodes:Nodes",
    "service": "sentinel.checks.service:Service",
    "slurm": "sentinel.checks.slurm:SlurmCheck",
}
