"""Compilation from stage to stage: which passes run when, and what runs them.

Read `stages` (the list, and the driver that follows it), then `differentiate` and `lowering`: the changes of stage as
passes.
"""
