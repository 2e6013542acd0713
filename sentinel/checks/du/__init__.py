"""How much lies in trees of directories, for what has no quota."""
