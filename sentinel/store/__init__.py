"""The state: what is remembered between passes, and the outbox. `opening.open_store` opens it."""
