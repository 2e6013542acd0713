"""Runs checks, writes their results to the state, and delivers the messages that are due."""
