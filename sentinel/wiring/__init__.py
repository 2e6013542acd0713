"""Makes ports, checks, channels and actions from the configuration: the only place where all of
them meet."""
