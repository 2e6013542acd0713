"""The pure parsers of what GPU tools print."""
