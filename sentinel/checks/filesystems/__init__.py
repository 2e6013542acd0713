"""What `fs`, `quota` and `du` share: a look at paths, its verdict, limits, forecast and report."""
