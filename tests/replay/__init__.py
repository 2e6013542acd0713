"""Logs of well-known trainers, written at accelerated time and watched by the real check."""
