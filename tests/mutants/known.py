"""Which modules get faults, which tests are to notice them, and which faults none can notice."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

RULES = {
    "judges": (
        "sentinel/**/judge.py", "sentinel/**/verdict*.py", "sentinel/**/proof*.py",
        "sentinel/checks/log/progress.py", "sentinel/checks/job/succession.py",
        "sentinel/checks/trainings.py", "sentinel/nodes/history.py", "sentinel/training.py",
    ),
    "ends, drains, reboots, submits": ("sentinel/actions/*.py", "sentinel/chain/work.py"),
    "deletes": ("sentinel/clean/*.py",),
    "tells or keeps silent": ("sentinel/alerting/*.py",),
    "leads": (
        "sentinel/store/lease.py", "sentinel/store/failover.py", "sentinel/store/spare_journals.py",
        "sentinel/store/sql.py", "sentinel/store/sqlite.py", "sentinel/store/postgres.py",
    ),
    "lets in": (
        "sentinel/web/auth.py", "sentinel/web/login.py", "sentinel/web/link_pages.py",
        "sentinel/web/rate_limit.py", "sentinel/trust.py", "sentinel/user_files/identity.py",
    ),
}  # fmt: skip
"""What a module does that a silent fault would make harmful: the files that do it."""

MEASURED = tuple(
    f"sentinel/{name}.py"
    for name in (
        "actions/clean_up", "actions/executor", "actions/guard", "alerting/incidents",
        "alerting/matchers", "alerting/orders", "alerting/outbox", "alerting/silences", "chain/work",
        "checks/checkpoint/judge", "checks/drained/proof", "checks/drained/verdict",
        "checks/gpu/judge", "checks/job/judge", "checks/job/succession", "checks/quota/judge",
        "checks/trainings", "clean/tree", "nodes/history", "store/failover", "store/lease",
        "store/spare_journals", "store/sql", "training", "web/auth", "web/login",
    )
)  # fmt: skip
"""Of these, docs/planted-faults.md counts the faults. Where one judges wrongly, somebody loses data, a job or a
warning."""

LEFT_OUT = {
    "sentinel/init/proof.py": "shows what init has set up; decides nothing",
    "sentinel/alerting/settings.py": "fields alone",
}
"""Files that a rule names, and why no fault is planted there."""

TESTS: dict[str, tuple[str, ...]] = {
    "sentinel/actions/change_window.py": (
        "tests/actions/test_change_window.py",
        "tests/actions/test_executor.py",
    ),
    "sentinel/actions/clean_up.py": (
        "tests/actions/test_clean_up.py",
        "tests/actions/test_kinds.py",
        "tests/world/test_slurm_hunted_fifth.py",
    ),
    "sentinel/actions/exclude.py": (
        "tests/actions/test_exclude.py",
        "tests/actions/test_exclude_looks.py",
        "tests/actions/test_kinds.py",
    ),
    "sentinel/actions/reboot.py": (
        "tests/actions/test_change_window.py",
        "tests/actions/test_kinds.py",
        "tests/actions/test_reboot.py",
    ),
    "sentinel/actions/job_requests.py": ("tests/actions/test_job_requests.py",),
    "sentinel/checks/checkpoint/judge.py": ("tests/checks/checkpoint",),
    "sentinel/checks/drained/proof.py": ("tests/checks/drained",),
    "sentinel/checks/drained/verdict.py": ("tests/checks/drained",),
    "sentinel/checks/filesystems/verdict.py": ("tests/checks/fs/test_verdict.py",),
    "sentinel/alerting/orders.py": (
        "tests/alerting/test_incidents.py",
        "tests/alerting/test_orders.py",
    ),
    "sentinel/alerting/silences.py": (
        "tests/alerting/test_handover.py",
        "tests/alerting/test_incidents.py",
        "tests/alerting/test_pending_notifications.py",
        "tests/alerting/test_silences.py",
        "tests/alerting/test_slurm_maintenance.py",
    ),
    "sentinel/checks/job/judge.py": ("tests/checks/job",),
    "sentinel/checks/job/succession.py": (
        "tests/checks/job/test_after_end.py",
        "tests/checks/job/test_revival.py",
        "tests/checks/job/test_rhythm.py",
        "tests/checks/job/test_succession.py",
    ),
    "sentinel/checks/quota/judge.py": (
        "tests/checks/quota/test_judge.py",
        "tests/world/test_disks.py",
    ),
    "sentinel/checks/log/progress.py": (
        "tests/checks/log/test_judge.py",
        "tests/checks/log/test_secondary.py",
    ),
    "sentinel/clean/tree.py": (
        "tests/clean/test_ages.py",
        "tests/clean/test_held.py",
        "tests/clean/test_owners.py",
        "tests/clean/test_pointers.py",
        "tests/clean/test_races.py",
        "tests/clean/test_root_owner.py",
        "tests/clean/test_steps.py",
        "tests/clean/test_tree.py",
        "tests/world/test_hunted_past_bounds.py",
    ),
    "sentinel/clean/gone_marks.py": (
        "tests/clean/test_ages.py",
        "tests/clean/test_gone_marks.py",
        "tests/clean/test_tree.py",
    ),
    "sentinel/clean/removal_doubts.py": (
        "tests/clean/test_ages.py",
        "tests/clean/test_owners.py",
        "tests/clean/test_races.py",
        "tests/clean/test_removal_doubts.py",
    ),
    "sentinel/clean/root_path.py": ("tests/clean/test_owners.py", "tests/clean/test_tree.py"),
    "sentinel/clean/steps.py": ("tests/clean/test_steps.py", "tests/clean/test_rules.py"),
    "sentinel/clean/trackers.py": ("tests/clean/test_pointers.py",),
    "sentinel/gpu/dcgm/verdict.py": ("tests/gpu/test_dcgm.py",),
    "sentinel/store/lease.py": ("tests/store/test_lock.py",),
    "sentinel/store/failover.py": (
        "tests/store/test_buffered.py",
        "tests/store/test_failover.py",
        "tests/store/test_full_disk.py",
        "tests/store/test_postgres.py",
        "tests/store/test_spare_journals.py",
        "tests/store/test_standby.py",
    ),
    "sentinel/store/sql.py": (
        "tests/store/test_contract.py",
        "tests/store/test_copies.py",
        "tests/store/test_damage.py",
        "tests/store/test_lead.py",
        "tests/store/test_lease.py",
        "tests/store/test_postgres.py",
        "tests/store/test_samples.py",
        "tests/store/test_session.py",
        "tests/store/test_sqlite.py",
        "tests/store/test_unreadable.py",
    ),
    "sentinel/store/spare_journals.py": (
        "tests/store/test_failover.py",
        "tests/store/test_spare_journals.py",
        "tests/store/test_squatters.py",
        "tests/store/test_url.py",
    ),
    "sentinel/trust.py": ("tests/test_trust.py",),
    "sentinel/web/auth.py": ("tests/web/test_auth.py",),
    "sentinel/web/login.py": ("tests/web/test_login.py",),
}
"""Where the rule of `find_tests` would take too many, or the wrong ones."""


@cache
def find_modules() -> tuple[str, ...]:
    """The files that the rules name, as paths from the root."""
    found = {
        str(path.relative_to(ROOT))
        for globs in RULES.values()
        for glob in globs
        for path in ROOT.glob(glob)
        if path.name != "__init__.py"
    }
    return tuple(sorted(found - LEFT_OUT.keys()))


def find_tests(module: str) -> tuple[str, ...]:
    """The files of tests that import the module; where none of its room does, all of its room too."""
    if known := TESTS.get(module):
        return known
    name = module.removesuffix(".py").replace("/", ".")
    found = tuple(path for path, imported in _read_imports().items() if name in imported)
    room = str(Path("tests", *Path(module).parts[1:-1]))
    return found if any(path.startswith(room) for path in found) else (*found, room)


@cache
def _read_imports() -> dict[str, frozenset[str]]:
    """What each file of tests imports: modules, and names of them that may be modules."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
            elif isinstance(node, ast.Import):
                names |= {one.name for one in node.names}
        found[str(path.relative_to(ROOT))] = frozenset(names)
    return found


SURVIVORS: dict[tuple[str, str, str], str] = {
    (
        "sentinel/actions/clean_up.py",
        'mark=" ".join([str("DRAIN" in node.flags), *reason_params(node).values()]),',
        "('DRAIN' not in node.flags)",
    ): "marks are only compared, and both texts change with the flag",
    (
        "sentinel/actions/jobs.py",
        "if job is None or objection:",
        "(objection)",
    ): "for the type only: a job that is gone is an objection",
    (
        "sentinel/actions/jobs.py",
        'return f"it belongs to {visible(job.user)}" if job and owner not in (None, job.user) else ""',
        "(owner not in (None, job.user))",
    ): "for the type only: of a job that is gone something else was said before",
    (
        "sentinel/checks/checkpoint/judge.py",
        "risk is not None and risk > late_after and duration_text(risk) != duration_text(late_after)",
        "(risk >= late_after)",
    ): "what is equal has the same text",
    (
        "sentinel/checks/drained/verdict.py",
        'if probe is None or not isinstance(probe.processes, tuple) or not hasattr(probe.steps, "blind"):',
        "(not isinstance(probe.processes, tuple) or not hasattr(probe.steps, 'blind'))",
    ): "for the type only: what is known to hang was told by a probe",
    (
        "sentinel/checks/job/succession.py",
        "requeued = SubmitDelay(get_elapsed_s(last.at, now), at, told_at > 0, True, told_at)",
        "(1)",
    ): "no message was sent in the first second of 1970",
    (
        "sentinel/checks/job/succession.py",
        "starts = [(run.started_at_s or 0, None)]",
        "(1)",
    ): "both are long before any end",
    (
        "sentinel/web/login.py",
        'return ""',
        "return 'planted'",
    ): "what does not begin with a slash leads to the first page, as nothing does",
    (
        "sentinel/alerting/incidents.py",
        "kind: str, subject: str, severity: Status, status: Status, gpus: float = 0, hours: float = 0",
        "(1)",
    ): "a training counts as one GPU at least, so a default of 0 and of 1 are the same",
    (
        "sentinel/alerting/incidents.py",
        'for path in (alert.key.subject, str(alert.values.get("path") or "")):',
        "(alert.values.get('path'))",
    ): "only what begins with a slash is a path: the text of None is none either",
    (
        "sentinel/alerting/incidents.py",
        'elif rule.link == "path" and alert.severity is Status.CRITICAL:',
        "(alert.severity is Status.CRITICAL)",
    ): "else a rule of nodes gets the path / where there is no subject, and no node has that name",
    (
        "sentinel/alerting/matchers.py",
        "yield from (fits_words(m.name, m.word, label_value(alert, m.name)) for m in found or ())",
        "(found)",
    ): "for the type only: where nothing was found, the False before it has ended the question",
    (
        "sentinel/store/sql.py",
        "if self._backend.needs_session and self._locked_in != self._session.number:",
        "(self._locked_in != self._session.number)",
    ): "a lock of the kernel is taken again by its holder: the same one",
    (
        "sentinel/store/spare_journals.py",
        'name = "said-" + blake2b(what.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()',
        "(7)",
    ): "a name that processes of one version share for an hour",
    (
        "sentinel/chain/work.py",
        "sys.stderr.flush()",
        "pass",
    ): "standard error keeps nothing back behind the end of a line",
    (
        "sentinel/checks/quota/judge.py",
        "free=max(0, space.hard_end - space.used) if space.hard_end else 0,",
        "(1)",
    ): "without a limit the size is 0, and then nobody asks what is free",
    (
        "sentinel/checks/quota/judge.py",
        "if found is None or found.used_percent is None:",
        "(found is None)",
    ): "for the type only: the fullest is one whose share is known",
    (
        "sentinel/checks/gpu/judge.py",
        "sram = gpu.ecc_life.sram_uncorrected or 0",
        "(1)",
    ): "one error is below the threshold as none is, and its number is told only above it",
    (
        "sentinel/store/lease.py",
        "if not self.is_held and _try_flock(file, fcntl.LOCK_SH)",
        "(_try_flock(file, fcntl.LOCK_SH))",
    ): "the holder's own lock refuses the shared one too: flock(2) is of an open file",
    (
        "sentinel/store/lease.py",
        'return decode_stored(os.pread(file, 65536, 0).decode("utf-8", "replace"), Lease)',
        "(65537)",
    ): "no holder's name is that long",
    (
        "sentinel/store/lease.py",
        "while (file := self._try_open_lock()) is None and time.monotonic() < deadline:",
        "(time.monotonic() <= deadline)",
    ): "the clock counts nanoseconds, and shows the very moment hardly ever",
    (
        "sentinel/training.py",
        'text = Reason.TEXT[number] if 0 < number < len(Reason.TEXT) else "another rank stops"',
        "(0 <= number < len(Reason.TEXT))",
    ): "words are only asked for where there is a reason, and 0 is none",
    (
        "sentinel/training.py",
        "if self._kill and self._looks_at_files and self._exists(self._kill):",
        "(self._looks_at_files and self._exists(self._kill))",
    ): "nothing is found under an empty path",
    (
        "sentinel/training.py",
        "if self._save and self._looks_at_files:",
        "(self._looks_at_files)",
    ): "nothing is found under an empty path",
    (
        "sentinel/training.py",
        "if took > self._first:",
        "(took >= self._first)",
    ): "two that took the same time are first and second in either order",
    (
        "sentinel/alerting/silences.py",
        'parse_moment(window.until or "", zone, "until").timestamp()',
        "(window.until)",
    ): "for the type only: a window that begins at a moment ends at one",
    (
        "sentinel/alerting/state_machine.py",
        "if alert is None or not policy.flap.changes:",
        "(not policy.flap.changes)",
    ): "for the type only: what has ended was an alert before",
    (
        "sentinel/actions/reboot.py",
        "return before.isdigit() and (node.boot_time or 0) > int(before) + SAME_BOOT_S",
        "(1)",
    ): "both are long before any boot",
    (
        "sentinel/actions/resubmit.py",
        'per_hour=3, share=Share(100), per_node=Rate("1 in 30d"), cooldown=Duration(0)',
        "(101)",
    ): "more than all is all",
    (
        "sentinel/actions/resubmit.py",
        'per_hour=3, share=Share(100), per_node=Rate("1 in 30d"), cooldown=Duration(0)',
        "(1000)",
    ): "more than all is all",
    (
        "sentinel/clean/removal_doubts.py",
        "if os.access(name, os.W_OK, dir_fd=fd, effective_ids=True, follow_symlinks=False):",
        "(False)",
    ): "whom this would open a file for, open(2) asks again by the effective user",
    (
        "sentinel/clean/removal_doubts.py",
        "if os.access(name, os.W_OK, dir_fd=fd, effective_ids=True, follow_symlinks=False):",
        "(True)",
    ): "a link is opened by nobody: O_NOFOLLOW",
    (
        "sentinel/clean/tree.py",
        "NOBODY_KNOWN = -1",
        "(10)",
    ): "no uid is below 0",
    (
        "sentinel/clean/tree.py",
        "NOBODY_KNOWN = -1",
        "(2)",
    ): "no uid is below 0",
    (
        "sentinel/clean/tree.py",
        "MAX_DEPTH = 400",
        "(401)",
    ): "one level more costs one descriptor more, and 1,024 may be open",
    (
        "sentinel/clean/tree.py",
        "for name, part in zip(gone, step.parts, strict=True):",
        "(False)",
    ): "one name for each part: what is renamed has all of them, and what has our name has one part",
    (
        "sentinel/clean/tree.py",
        "if time.monotonic() > deadline:",
        "(time.monotonic() >= deadline)",
    ): "the clock counts nanoseconds, and shows the very moment hardly ever",
    (
        "sentinel/web/auth.py",
        'yield urlsafe_b64decode(value + "=" * (-len(value) % 4))',
        "(40)",
    ): "base64 passes over more padding than is needed",
    (
        "sentinel/clean/trackers.py",
        "real = os.path.realpath(path, strict=True)",
        "(False)",
    ): "os.stat(2) in the next line says the same of what is not there",
}
"""Module, line and what stands in place: why no test can tell."""
