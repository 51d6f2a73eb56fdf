"""The text form of the IR: printing and parsing.

The form itself is in `docs/ir.md`.  Read `template` and `attributes` (with `types`, `literals`, `nest_syntax`,
`declarations`), which serve both directions; then `names`, `lines` and `printer`.  Reading: `lexer` and
`cursor`, then from the inside out `scope`, `values`, `operations` (with `reduction_syntax` and `control_flow_syntax`),
`functions`, `definitions` and `parser`; `recovery` is where reading goes on after an error, `spelling` how
messages name types.
"""

from .declarations import print_declaration
from .parser import parse_module
from .printer import print_function, print_instruction, print_module

__all__ = [
    "parse_module",
    "print_declaration",
    "print_function",
    "print_instruction",
    "print_module",
]
