"""Reads files that users may have put somewhere, with no more rights than those users have.

This module imports nothing, because the child that opens the files loads it."""
