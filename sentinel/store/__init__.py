"""Stores the state: the memory between passes, and the outbox. `opening.open_store` opens it."""
