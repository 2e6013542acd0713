"""True hangs of a gloo training, and what sentinel says of them: `python -m tests.hangs`.

Needs PyTorch (`uv sync --group hangs`, or `--python` of an environment that has it); no part of the
test suite, which replays the recordings' shapes (tests/stacks/parse/test_looks.py).
"""
