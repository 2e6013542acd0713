"""What GPU tools and the kernel print, understood; and what NVIDIA says to do about it. Pure."""
