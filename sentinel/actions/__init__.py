"""The explicit list of action kinds; each is one module or package, imported when used."""

GROUP = "sentinel.actions"

KINDS = {
    "clean": "sentinel.actions.clean:Clean",
    "clean_up": "sentinel.actions.clean_up:CleanUp",
    "diag": "sentinel.actions.diag:Diag",
    "drain": "sentinel.actions.drain:Drain",
    "probation": "sentinel.actions.probation:Probation",
    "reboot": "sentinel.actions.reboot:Reboot",
    "release": "sentinel.actions.probation:Release",
    "undrain": "sentinel.actions.undrain:Undrain",
    "cancel": "sentinel.actions.cancel:Cancel",
    "exclude": "sentinel.actions.exclude:Exclude",
    "hold": "sentinel.actions.hold:Hold",
    "killswitch": "sentinel.actions.killswitch:Killswitch",
    "requeue": "sentinel.actions.requeue:Requeue",
    "resubmit": "sentinel.actions.resubmit:Resubmit",
    "stacks": "sentinel.actions.stacks:Stacks",
}
