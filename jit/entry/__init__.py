"""The native entry: how Python calls compiled code in nanoseconds.

Read `signature` (what goes in and out), `emit` (the entry as LLVM text, from `arguments`, `outputs`
and `results`), `state` (the Python objects it needs), `bind` (address to callable), `layout` (what
is assumed of CPython and NumPy), `selftest` (whether that holds), `fallback` (the same entry in
Python, where it does not).
"""

from .bind import bind, drop_kept_results, rebind
from .emit import EntryText, entry_text
from .selftest import is_supported, unsupported_reason
from .signature import Leaf, Node, Record, Several, Signature

__all__ = [
    "EntryText",
    "Leaf",
    "Node",
    "Record",
    "Several",
    "Signature",
    "bind",
    "drop_kept_results",
    "entry_text",
    "is_supported",
    "rebind",
    "unsupported_reason",
]
