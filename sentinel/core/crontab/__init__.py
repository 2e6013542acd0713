"""Directories of scripts in place of a crontab: when each is due, and what to do about it."""
