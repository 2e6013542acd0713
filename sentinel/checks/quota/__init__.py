"""Quotas and storage targets: which tool is asked, and what its answer means."""
