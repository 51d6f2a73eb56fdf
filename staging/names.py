"""Names of functions and structs in the text of the IR."""

from __future__ import annotations


def identifier(name: str) -> str:
    """`name` as the text form can write it."""
    plain = "lambda" if name == "<lambda>" else name
    cleaned = "".join(c if c.isalnum() or c in "_." else "_" for c in plain)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"_{cleaned}"
