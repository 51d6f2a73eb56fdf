"""Profiles of the property tests: `default`, and `fuzz` with many more programs (`make fuzz`)."""

from __future__ import annotations

from hypothesis import settings

collect_ignore = ["ir/lit.cfg.py"]  # lit's, not a module

settings.register_profile("default", deadline=None)
settings.register_profile("fuzz", deadline=None, max_examples=2000)
settings.load_profile("default")
