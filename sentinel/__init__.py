"""sentinel: the watchdog for Slurm clusters that train large models."""

import time

__version__ = "0.1.0"

LOADED_AT = time.time()
"""When this process began to load the package; what was installed later is not what it runs."""
