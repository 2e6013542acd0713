"""The common part of `fs`, `quota` and `du`: the observation of paths, the verdict, limits,
forecast and report."""
