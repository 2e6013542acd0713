"""Nodes: asked over ssh or srun in one round trip each, tested, and remembered."""
