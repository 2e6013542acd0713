"""Configuration to ports, checks, channels and actions: the only place where all meet."""
