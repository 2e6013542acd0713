"""What each quota tool prints, understood: one file a tool. Pure."""
