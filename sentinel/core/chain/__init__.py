"""A chain of small jobs in place of cron: what there should be in the queue, and what is missing.

Pure decisions. Two strands by default: each is a chain of its own that takes every second slot
and mends the other, so that a link which is cancelled or held ends nothing.
"""
