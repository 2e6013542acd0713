"""`sentinel init`: from nothing to the first mail, and back again.

`survey` looks at what runs and where; `tell` finds a way to people; `ways` finds what can run a
pass; `record` remembers what was made, for `--undo`; `rehearsal` shows the mail about a death;
`proof` says what is watched, how, and what is not.
"""
