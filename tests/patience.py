"""How slow a machine may be before a test says that something takes too long."""

PATIENCE = 5
"""Bounds on time are written for an idle core; other machines are slower, and do other things as well.

What the bounds are to find grows faster than in proportion, and takes hundreds of times as long.
"""
