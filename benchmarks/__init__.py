"""Runnable comparisons; `make bench` prints ratios measured in one run."""
