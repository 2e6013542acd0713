"""Nouns and rules that several rooms share. This package does no input or output, reads no clock,
and imports nothing else of sentinel."""
