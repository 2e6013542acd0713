"""A chain of small jobs in place of cron: what there should be in the queue, and what is missing.

Pure decisions. Three strands by default: each is a chain of its own that takes every third slot
and mends the others. While a link starts, two more wait: it may be lost before it has submitted
anything, and so may one of those, and the chain goes on.
"""
