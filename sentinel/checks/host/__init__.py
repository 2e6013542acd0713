"""The `host` check: what the kernel and the host say of memory, drives and tasks."""

from sentinel.checks.host.check import HostCheck

__all__ = ["HostCheck"]
