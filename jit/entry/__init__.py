"""The native entry: how Python calls compiled code in nanoseconds.

Read `signature` (what goes in and out), `entry_function` (the entry as LLVM text, from `arguments`, `outputs`
and `results`), `state` (the Python objects it needs), `bind` (address to callable), `layout` (what
is assumed of CPython and NumPy), `selftest` (whether that holds), `fallback` (the same entry in
Python, where it does not).
"""

from .bind import bind, drop_kept_results, rebind
from .entry_function import EntryText, entry_text
from .selftest import is_supported, unsupported_reason
from .signature import ArrayNode, Node, RecordNode, Signature, TupleNode

__all__ = [
    "ArrayNode",
    "EntryText",
    "Node",
    "RecordNode",
    "Signature",
    "TupleNode",
    "bind",
    "drop_kept_results",
    "entry_text",
    "is_supported",
    "rebind",
    "unsupported_reason",
]
