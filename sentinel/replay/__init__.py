"""Plays the past of the state through another configuration: what it would have told, and whom."""
