"""Opens the audit log of the configured state, without importing the modules for actions."""

from sentinel.config.settings import Settings
from sentinel.core.ports import AuditLog
from sentinel.store.opening import open_sql_audit_log
from sentinel.wiring import app


def open_audit_log(settings: Settings, *, dry_run: bool = False) -> AuditLog:
    """The audit log and the ledger of nodes in the state. A dry run does not create a state."""
    if not dry_run:
        return open_sql_audit_log(app.get_state_location(settings), later=True)
    there = app.has_state(settings)
    with app.guard_state_reads(settings):
        return open_sql_audit_log(app.get_state_location(settings) if there else "")
