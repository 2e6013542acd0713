"""Reads what GPU tools and the kernel print, and knows what NVIDIA says to do about it. Pure."""
