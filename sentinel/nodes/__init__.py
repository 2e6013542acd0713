"""Asks nodes over ssh or srun in one round trip each, tests them, and remembers them."""
