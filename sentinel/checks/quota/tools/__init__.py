"""Reads the output of each quota tool, one module for each. Pure."""
