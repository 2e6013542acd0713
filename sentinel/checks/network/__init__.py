"""The `network` kind: links of nodes that are down, gone, slow or full of errors."""

from sentinel.checks.network.check import NetworkCheck

__all__ = ["NetworkCheck"]
