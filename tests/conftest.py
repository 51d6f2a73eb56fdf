"""Profiles of the property tests: `default` draws the same in every run, `fuzz` many more and new ones."""

from __future__ import annotations

from hypothesis import settings

collect_ignore = ["ir/lit.cfg.py"]  # lit's, not a module

settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=2000)
settings.load_profile("default")
