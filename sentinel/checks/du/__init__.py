"""Measures trees of directories, for file systems without quotas."""
