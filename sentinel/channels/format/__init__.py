"""Formats messages: as a summary, as text, as HTML, and as blocks for chats."""
