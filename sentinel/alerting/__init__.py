"""Alerts from the first observation to the end: who is notified, when, and why somebody is not."""
