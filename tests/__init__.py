"""Tests of sentinel; the folders mirror the package."""
