"""Alerts from first sight to end: who hears of what, when, and what keeps it from being told."""
