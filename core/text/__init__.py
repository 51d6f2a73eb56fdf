"""The text form of the IR: printing and parsing.

The form itself is in `docs/ir.md`.  Read `template` and `attributes` (with `types`, `literals`, `indices`), which
serve both directions; then `printer`; then `lexer`, `cursor`, `operations` and `parser`.
"""

from .parser import parse_module
from .printer import (
    print_declaration,
    print_function,
    print_instruction,
    print_module,
    print_struct,
)

__all__ = [
    "parse_module",
    "print_declaration",
    "print_function",
    "print_instruction",
    "print_module",
    "print_struct",
]
