"""Which tests are to notice a fault in which module, and which faults none can notice."""

TESTS: dict[str, tuple[str, ...]] = {
    "sentinel/actions/guard.py": ("tests/actions/test_guard.py",),
    "sentinel/alerting/state_machine.py": ("tests/alerting/test_state_machine.py",),
    "sentinel/checks/filesystems/verdict.py": ("tests/checks/fs/test_verdict.py",),
    "sentinel/checks/log/progress.py": (
        "tests/checks/log/test_judge.py",
        "tests/checks/log/test_secondary.py",
    ),
    "sentinel/clean/steps.py": ("tests/clean/test_steps.py", "tests/clean/test_rules.py"),
    "sentinel/clean/trackers.py": ("tests/clean/test_pointers.py",),
    "sentinel/gpu/dcgm/verdict.py": ("tests/gpu/test_dcgm.py",),
}

SURVIVORS: dict[tuple[str, str, str], str] = {
    (
        "sentinel/checks/filesystems/verdict.py",
        "commands=next_commands(sight.path, bool(sight.answer and sight.answer.hung))",
        "(sight.answer.hung)",
    ): "for the type only: what was not asked is not bad",
    (
        "sentinel/alerting/state_machine.py",
        "if alert is None or not policy.flap.changes:",
        "(not policy.flap.changes)",
    ): "for the type only: what has ended was an alert before",
    (
        "sentinel/clean/trackers.py",
        "real = os.path.realpath(path, strict=True)",
        "(False)",
    ): "os.stat(2) in the next line says the same of what is not there",
}
"""Module, line and what stands in place: why no test can tell."""
