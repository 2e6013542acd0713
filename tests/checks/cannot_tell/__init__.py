"""What every kind of check answers when what it asks is gone, cut off, refused, slow or new.

`python -m tests.checks.cannot_tell` puts each fault of `world.FAULTS` in the place of every source
that a kind declares (`SOURCES`), and prints the answers; docs/cannot-tell.md is made from it. In
each case something is truly wrong, so that no answer may be ok.
"""
