"""Disks as numbers: quotas and targets as tools print them, forecasts, what may be cleaned. Pure."""
