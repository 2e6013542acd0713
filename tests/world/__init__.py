"""What the world showed: public reports, recorded outputs and directory forms, each with the answer
that a careful operator would give. `python -m tests.world` runs all and counts by subject.

A subject is one test module here, its files in a folder of the same name. A row says where the form
was met, what is right, and what a wrong answer would cost.
"""
