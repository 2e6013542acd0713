"""`sentinel init`: sets up sentinel up to the first mail, and can undo it.

`survey` finds out what runs and where. `tell` finds a channel to people. `ways` finds what can run
a pass. `record` stores what was created, for `--undo`. `rehearsal` shows the mail about a death.
`proof` says what is watched, how, and what is not.
"""
