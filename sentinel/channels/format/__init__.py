"""What a message says, as a summary, text, HTML and blocks for chats."""
