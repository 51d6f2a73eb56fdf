"""Error recovery of the parser: skips to the next instruction, block or definition.

Line breaks mean nothing in the language, but people and printers begin an instruction on a line of its
own.  After an error that is believed; without an error nothing here is asked.
"""

from __future__ import annotations

from collections.abc import Container

from .cursor import Cursor

DEFINING = {"struct": "$", "enum": "$", "type": "$", "var": "@", "func": "@"}
"""The words that begin a definition, and the sigil of the name that follows; nothing else looks like it."""

DECLARING = ("gradient", "adjoint", "tangent", "extern", "jvp", "vjp")

_TARGET_WORDS = ("branch", "then", "else")


def starts_definition(cursor: Cursor) -> bool:
    """Whether a definition of the module begins here."""
    token = cursor.token
    sigil = DEFINING.get(token.text)
    if sigil is not None:
        following = cursor.ahead(1)
        return following.kind == "name" and following.text[0] == sigil
    if token.text == "[":
        return cursor.ahead(1).text in DECLARING and cursor.begins_line()
    return token.text[:1] == "!" and cursor.begins_line()


def skip_to_definition(cursor: Cursor, start: int) -> None:
    """Go on at the next definition after the one that began at token `start`, or at the end."""
    if cursor.position <= start:
        cursor.go(start)
        cursor.next()
    while cursor.token.kind != "end" and not starts_definition(cursor):
        cursor.next()


def skip_instruction(cursor: Cursor, start: int, opcodes: Container[str]) -> None:
    """Go on behind the instruction that began at token `start`, its bodies included."""
    if cursor.tokens[start].text != "}":
        cursor.go(start)  # from its beginning, to count the braces
        if cursor.is_name("%"):
            cursor.skip(_names(cursor))
            cursor.accept("=")
        if cursor.token.kind == "word" or (cursor.position == start and not cursor.at("{")):
            cursor.next()
    depth = 0
    while cursor.token.kind != "end" and not starts_definition(cursor):
        text = cursor.token.text
        if text == "{" and _opens_region(cursor):
            skip_braces(cursor)
            continue
        if text == "{":
            depth += 1
        elif text == "}":
            if not depth or cursor.begins_line():
                return
            depth -= 1
        elif cursor.is_name("%"):
            length = _names(cursor)
            if cursor.ahead(length).text == "=":
                return
            cursor.skip(length)
            continue
        elif _starts_operation(cursor, opcodes) or _starts_block(cursor):
            return
        cursor.next()


def skip_to_body(cursor: Cursor) -> None:
    """Go on at the brace of a function whose type has an error, or at the next definition."""
    while cursor.token.kind != "end" and not starts_definition(cursor):
        if cursor.at("{") and cursor.ahead(1).text[:1] == "'":
            return
        cursor.next()


def skip_argument(cursor: Cursor) -> bool:
    """Go on at the comma or parenthesis after an argument with an error; whether there is one."""
    depth = 0
    while cursor.token.kind != "end" and cursor.token.text not in ("=", "}"):
        text = cursor.token.text
        if not depth and text in (",", ")"):
            return True
        if text == ":" or (text[:1] == "%" and cursor.begins_line()):
            return False
        depth += (text in ("(", "[")) - (text in (")", "]"))
        cursor.next()
    return False


def skip_header(cursor: Cursor) -> list[str]:
    """Go on at the first instruction of the block whose header has an error.

    The names of values that stand in the rest of the header.
    """
    names: list[str] = []
    while cursor.token.kind != "end" and not cursor.at("}") and not starts_definition(cursor):
        if cursor.is_name("%"):
            if cursor.ahead(_names(cursor)).text == "=":
                break
            names.append(cursor.name("%", "a value"))
        elif cursor.begins_line() and cursor.token.kind == "word":
            break
        else:
            cursor.next()
    return names


def skip_braces(cursor: Cursor) -> None:
    """Go on behind the brace that closes the one at the cursor."""
    depth = 0
    while cursor.token.kind != "end" and not starts_definition(cursor):
        token = cursor.next()
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0:
                return


def _opens_region(cursor: Cursor) -> bool:
    return cursor.ahead(1).text[:1] in ("'", "}")


def _starts_operation(cursor: Cursor, opcodes: Container[str]) -> bool:
    token = cursor.token
    return token.kind == "word" and token.text in opcodes and cursor.begins_line()


def _names(cursor: Cursor) -> int:
    """The number of tokens of `%a, %b`, which are results if `=` follows."""
    count = 1
    while cursor.ahead(count).text == "," and cursor.ahead(count + 1).text[:1] == "%":
        count += 2
    return count


def _starts_block(cursor: Cursor) -> bool:
    if not cursor.is_name("'"):
        return False
    before = cursor.tokens[cursor.position - 1]
    return before.text not in _TARGET_WORDS and before.text[:1] != "?"
