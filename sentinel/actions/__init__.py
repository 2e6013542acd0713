"""The explicit list of action kinds. Each is one module or package, which is imported when it is
used."""

GROUP = "sentinel.actions"

KINDS = {
    "clean": "sentinel.actions.clean:CleanAction",
    "clean_up": "sentinel.actions.clean_up:CleanUpAction",
    "diag": "sentinel.actions.diag:DiagAction",
    "drain": "sentinel.actions.drain:DrainAction",
    "probation": "sentinel.actions.probation:ProbationAction",
    "reboot": "sentinel.actions.reboot:RebootAction",
    "release": "sentinel.actions.probation:ReleaseAction",
    "undrain": "sentinel.actions.undrain:UndrainAction",
    "cancel": "sentinel.actions.cancel:CancelAction",
    "exclude": "sentinel.actions.exclude:ExcludeAction",
    "hold": "sentinel.actions.hold:HoldAction",
    "killswitch": "sentinel.actions.killswitch:KillswitchAction",
    "requeue": "sentinel.actions.requeue:RequeueAction",
    "resubmit": "sentinel.actions.resubmit:ResubmitAction",
    "stacks": "sentinel.actions.stacks:StacksAction",
}
