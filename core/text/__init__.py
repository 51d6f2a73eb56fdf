"""The text form of the IR: printing and parsing.

Read `printer`, then `lexer`, `cursor`, `parser`; `template` and `attributes` serve both directions.
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
