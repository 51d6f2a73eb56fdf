"""Programs that are legal and that nobody would write: what passes must bear, and quickly."""

from __future__ import annotations

import random
from collections.abc import Callable

HEAD = """module "m"
stage raw
var @g: i64
"""


def _function(lines: list[str], result: str = "i64", parameters: str = "%c: bool, %n: i64") -> str:
    types = ", ".join(part.split(": ")[1] for part in parameters.split(", "))
    body = "\n".join(lines)
    return f"{HEAD}func @main: ({types}) -> {result} {{\n'entry({parameters}):\n{body}\n}}\n"


def irreducible() -> str:
    """A cycle with two entries, that counts."""
    return _function(
        """conditional %c: bool then 'a(%n: i64) else 'b(%n: i64)
'a(%x: i64):
    %i = subtract %x: i64, 1: i64
    %p = greaterThan %i: i64, 0: i64
    conditional %p: bool then 'b(%i: i64) else 'out(%i: i64)
'b(%y: i64):
    %j = subtract %y: i64, 2: i64
    %g = literal @g: *i64
    store %j: i64 to %g: *i64
    %q = greaterThan %j: i64, 0: i64
    conditional %q: bool then 'a(%j: i64) else 'out(%j: i64)
'out(%z: i64):
    return %z: i64""".splitlines()
    )


def irreducible_pair() -> str:
    """Two cycles with two entries each, one after the other, of which the second needs what the first takes."""
    lines: list[str] = []
    for k, (start, count) in enumerate((("%n", "%n"), ("%x0", "%x0"))):
        lines += [
            f"%c{k} = lessThan {count}: i64, 4: i64",
            f"conditional %c{k}: bool then 'h{k}({start}: i64) else 'b{k}({start}: i64)",
            f"'h{k}(%x{k}: i64):",
            f"%p{k} = lessThan %x{k}: i64, {6 + k}: i64",
            f"conditional %p{k}: bool then 'b{k}(%x{k}: i64) else 'o{k}()",
            f"'b{k}(%y{k}: i64):",
            f"%z{k} = add %y{k}: i64, 1: i64",
            f"branch 'h{k}(%z{k}: i64)",
            f"'o{k}():",
        ]
    return _function([*lines, "%s = multiply %x0: i64, %x1: i64", "return %s: i64"])


def tangled(blocks: int = 250, seed: int = 1) -> str:
    """Branches anywhere, almost surely irreducible in many ways; fuel makes it end."""
    choose = random.Random(seed)
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        a, b = choose.randrange(blocks), choose.randrange(blocks)
        bit = choose.randrange(1, 50)
        lines += [
            f"'b{k}(%x{k}: i64):",
            f"%y{k} = subtract %x{k}: i64, 1: i64",
            f"%m{k} = modulo %y{k}: i64, {bit}: i64",
            f"%p{k} = greaterThan %m{k}: i64, {bit // 2}: i64",
            f"%f{k} = lessThan %y{k}: i64, 0: i64",
            f"conditional %f{k}: bool then 'out(%y{k}: i64) else 'c{k}()",
            f"'c{k}():",
            f"conditional %p{k}: bool then 'b{a}(%y{k}: i64) else 'b{b}(%y{k}: i64)",
        ]
    lines += ["'out(%z: i64):", "return %z: i64"]
    return _function(lines)


def chain(blocks: int = 1000) -> str:
    """One block after the other, all with an argument."""
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        lines += [
            f"'b{k}(%x{k}: i64):",
            f"%y{k} = add %x{k}: i64, 1: i64",
            f"branch 'b{k + 1}(%y{k}: i64)",
        ]
    return _function([*lines, f"'b{blocks}(%z: i64):", "return %z: i64"])


def empty_chain(blocks: int = 1000) -> str:
    """The same without anything in the blocks."""
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        lines += [f"'b{k}(%x{k}: i64):", f"branch 'b{k + 1}(%x{k}: i64)"]
    return _function([*lines, f"'b{blocks}(%z: i64):", "return %z: i64"])


def backward_chain(blocks: int = 1000) -> str:
    """The same, the last block first in the text."""
    lines = [f"branch 'b{blocks - 1}(%n: i64)", "'out(%z: i64):", "return %z: i64"]
    for k in range(blocks):
        after = f"b{k - 1}" if k else "out"
        lines += [f"'b{k}(%x{k}: i64):", f"branch '{after}(%x{k}: i64)"]
    return _function(lines)


def ladder(blocks: int = 200) -> str:
    """Choices in a row: three blocks each, and values that all join."""
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        lines += [
            f"'b{k}(%x{k}: i64):",
            f"%p{k} = greaterThan %x{k}: i64, {k % 7}: i64",
            f"conditional %p{k}: bool then 't{k}() else 'e{k}()",
            f"'t{k}():",
            f"%t{k} = add %x{k}: i64, 1: i64",
            f"branch 'b{k + 1}(%t{k}: i64)",
            f"'e{k}():",
            f"%e{k} = multiply %x{k}: i64, 3: i64",
            f"branch 'b{k + 1}(%e{k}: i64)",
        ]
    return _function([*lines, f"'b{blocks}(%z: i64):", "return %z: i64"])


def known_ladder(blocks: int = 200) -> str:
    """Choices in a row of which each is known once the one before is."""
    return ladder(blocks).replace("branch 'b0(%n: i64)", "branch 'b0(1: i64)")


def early_returns(blocks: int = 500) -> str:
    """Many ways out."""
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        lines += [
            f"'b{k}(%x{k}: i64):",
            f"%p{k} = equal %x{k}: i64, {k}: i64",
            f"conditional %p{k}: bool then 'r{k}() else 'b{k + 1}(%x{k}: i64)",
            f"'r{k}():",
            f"return %x{k}: i64",
        ]
    return _function([*lines, f"'b{blocks}(%z: i64):", "return %z: i64"])


def nested_loops(depth: int = 150) -> str:
    """Loops of blocks inside each other, each run once."""
    lines = ["branch 'h0(%n: i64)"]
    for k in range(depth):
        lines += [
            f"'h{k}(%x{k}: i64):",
            f"%p{k} = greaterThan %x{k}: i64, 100: i64",
            f"conditional %p{k}: bool then 'o{k}() else 'h{k + 1}(%x{k}: i64)",
        ]
    lines += [
        f"'h{depth}(%x{depth}: i64):",
        f"%s{depth} = add %x{depth}: i64, 1000: i64",
        f"branch 'h{depth - 1}(%s{depth}: i64)",
    ]
    for k in reversed(range(1, depth)):
        lines += [f"'o{k}():", f"branch 'h{k - 1}(%x{k}: i64)"]
    return _function([*lines, "'o0():", "return %x0: i64"])


def loops_in_a_row(blocks: int = 250) -> str:
    """Each of two blocks, the header and the body."""
    lines = ["branch 'h0(%n: i64)"]
    for k in range(blocks):
        lines += [
            f"'h{k}(%x{k}: i64):",
            f"%p{k} = lessThan %x{k}: i64, {k + 2}: i64",
            f"conditional %p{k}: bool then 'b{k}() else 'h{k + 1}(%x{k}: i64)",
            f"'b{k}():",
            f"%y{k} = add %x{k}: i64, 1: i64",
            f"branch 'h{k}(%y{k}: i64)",
        ]
    return _function([*lines, f"'h{blocks}(%z: i64):", "return %z: i64"])


def complete(blocks: int = 18) -> str:
    """Every block leads to every other, by choices made one after the other."""
    lines = ["branch 'b0(%n: i64)"]
    for k in range(blocks):
        lines += [
            f"'b{k}(%x{k}: i64):",
            f"%y{k} = subtract %x{k}: i64, 1: i64",
            f"%f{k} = lessThan %y{k}: i64, 0: i64",
            f"conditional %f{k}: bool then 'out(%y{k}: i64) else 'c{k}_0()",
        ]
        for j in range(blocks):
            after = f"'c{k}_{j + 1}()" if j + 1 < blocks else f"'b0(%y{k}: i64)"
            lines += [
                f"'c{k}_{j}():",
                f"%m{k}_{j} = modulo %y{k}: i64, {j + 2}: i64",
                f"%q{k}_{j} = equal %m{k}_{j}: i64, 1: i64",
                f"conditional %q{k}_{j}: bool then 'b{j}(%y{k}: i64) else {after}",
            ]
    return _function([*lines, "'out(%z: i64):", "return %z: i64"])


def wide(blocks: int = 60, arguments: int = 60) -> str:
    """Blocks that pass many values on."""
    first = ", ".join("%n: i64" for _ in range(arguments))
    lines = [f"branch 'b0({first})"]
    for k in range(blocks):
        taken = ", ".join(f"%x{k}_{j}: i64" for j in range(arguments))
        turned = ", ".join(f"%x{k}_{(j + 1) % arguments}: i64" for j in range(arguments))
        lines += [
            f"'b{k}({taken}):",
            f"%p{k} = greaterThan %x{k}_0: i64, {k}: i64",
            f"conditional %p{k}: bool then 'b{k + 1}({taken}) else 'b{k + 1}({turned})",
        ]
    taken = ", ".join(f"%z{j}: i64" for j in range(arguments))
    return _function([*lines, f"'b{blocks}({taken}):", "return %z0: i64"])


def self_loop() -> str:
    return _function(["branch 'a(%n: i64)", "'a(%x: i64):", "branch 'a(%x: i64)"])


def endless_pair() -> str:
    """Two blocks that go to each other, with a store on the way."""
    return _function(
        """branch 'a(%n: i64)
'a(%x: i64):
    %y = add %x: i64, 1: i64
    branch 'b()
'b():
    %g = literal @g: *i64
    store %y: i64 to %g: *i64
    branch 'a(%y: i64)""".splitlines()
    )


def endless_irreducible() -> str:
    """A cycle with two entries and no way out."""
    return _function(
        """conditional %c: bool then 'a() else 'b()
'a():
    branch 'b()
'b():
    conditional %c: bool then 'a() else 'b()""".splitlines()
    )


def endless_choice() -> str:
    """An infinite loop on one side."""
    return _function(
        """conditional %c: bool then 'a() else 'b(%n: i64)
'a():
    conditional true: bool then 'a() else 'b(%n: i64)
'b(%x: i64):
    return %x: i64""".splitlines()
    )


def while_true() -> str:
    """The same as a structured op, with a store inside, and dead code after it."""
    return _function(
        """%k = while carrying 0: i64 {
'c(%i: i64):
    %t = literal true: bool
    yield %t: bool
} do {
'b(%j: i64):
    %m = add %j: i64, 1: i64
    %g = literal @g: *i64
    store %m: i64 to %g: *i64
    yield %m: i64
}
%s = add %k: i64, %n: i64
return %s: i64""".splitlines()
    )


def unreachable() -> str:
    """Blocks that nothing leads to: a cycle, one that leads into live code, one that uses live values."""
    return _function(
        """%v = add %n: i64, 1: i64
branch 'live(%v: i64)
'dead(%a: i64):
    %b = multiply %a: i64, %v: i64
    branch 'live(%b: i64)
'live(%x: i64):
    return %x: i64
'round(%d: i64):
    %e = negate %d: i64
    conditional %c: bool then 'round(%e: i64) else 'dead(%e: i64)
'island():
    branch 'island()
'choice():
    conditional true: bool then 'live(1: i64) else 'dead(2: i64)""".splitlines()
    )


def recursion() -> str:
    """Functions that call themselves and each other, with effects, in blocks and bodies."""
    return f"""{HEAD}func @self: (i64) -> i64 {{
'entry(%n: i64):
    %g = literal @g: *i64
    store %n: i64 to %g: *i64
    %m = subtract %n: i64, 1: i64
    %p = greaterThan %m: i64, 0: i64
    conditional %p: bool then 'a() else 'b()
'a():
    %x = apply @self(%m): (i64) -> i64
    return %x: i64
'b():
    return %n: i64
}}
func @even: (i64) -> i64 {{
'entry(%n: i64):
    %p = greaterThan %n: i64, 0: i64
    %r = if %p: bool -> i64 {{
    't():
        %m = subtract %n: i64, 1: i64
        %x = apply @odd(%m): (i64) -> i64
        yield %x: i64
    }} else {{
    'e():
        yield 0: i64
    }}
    return %r: i64
}}
func @odd: (i64) -> i64 {{
'entry(%n: i64):
    %g = literal @g: *i64
    %o = load %g: *i64
    %q = add %o: i64, %n: i64
    store %q: i64 to %g: *i64
    %x = apply @even(%n): (i64) -> i64
    %y = add %x: i64, 1: i64
    return %y: i64
}}
func @never: (i64) -> i64 {{
'entry(%n: i64):
    %x = apply @never(%n): (i64) -> i64
    return %x: i64
}}
func @main: (bool, i64) -> i64 {{
'entry(%c: bool, %n: i64):
    %a = apply @self(%n): (i64) -> i64
    %b = apply @even(%n): (i64) -> i64
    %g = literal @g: *i64
    %o = load %g: *i64
    %s = add %a: i64, %b: i64
    %r = add %s: i64, %o: i64
    return %r: i64
}}
"""


def ring(functions: int = 150) -> str:
    """Functions that call each other in a ring."""
    parts = [HEAD]
    for k in range(functions):
        parts.append(f"""func @f{k}: (i64) -> i64 {{
'entry(%n: i64):
    %m = subtract %n: i64, 1: i64
    %p = greaterThan %m: i64, 0: i64
    %r = if %p: bool -> i64 {{
    't():
        %x = apply @f{(k + 1) % functions}(%m): (i64) -> i64
        yield %x: i64
    }} else {{
    'e():
        yield %m: i64
    }}
    return %r: i64
}}
""")
    parts.append("""func @main: (bool, i64) -> i64 {
'entry(%c: bool, %n: i64):
    %x = apply @f0(%n): (i64) -> i64
    return %x: i64
}
""")
    return "".join(parts)


def nested(kind: str, depth: int = 300) -> str:
    """Structured ops inside each other."""
    opening, closing = {
        "if": ("%y{k} = if %c: bool -> i64 {{\n't():", "}} else {{\n'e():\nyield %n: i64\n}}"),
        "for": (
            "%y{k} = for 0: i64 upto 1: i64 carrying %n: i64 {{\n'b(%i{k}: i64, %x{k}: i64):",
            "}}",
        ),
        "while": (
            "%y{k} = while carrying %n: i64 {{\n'c(%i{k}: i64):\n"
            "%m{k} = lessThan %i{k}: i64, 0: i64\nyield %m{k}: bool\n}} do {{\n'b(%j{k}: i64):",
            "}}",
        ),
    }[kind]
    lines = [opening.format(k=k) for k in range(depth)]
    lines.append(f"%y{depth} = add %n: i64, 1: i64")
    for k in reversed(range(depth)):
        lines += [f"yield %y{k + 1}: i64", closing.format(k=k)]
    return _function([*lines, "return %y0: i64"])


def straight(length: int = 2000) -> str:
    """Instructions that all need the one before."""
    lines = [f"%x{k + 1} = add %x{k}: i64, %n: i64" for k in range(length)]
    return _function(["%x0 = negate %n: i64", *lines, f"return %x{length}: i64"])


def cells(count: int = 400) -> str:
    """Memory for many values, stored and loaded in turn."""
    lines: list[str] = []
    for k in range(count):
        lines += [f"%p{k} = allocateStack i64 count 1", f"store %n: i64 to %p{k}: *i64"]
    lines.append("%s0 = negate %n: i64")
    for k in range(count):
        lines += [f"%l{k} = load %p{k}: *i64", f"%s{k + 1} = add %s{k}: i64, %l{k}: i64"]
    return _function([*lines, f"return %s{count}: i64"])


def heaps(count: int = 400) -> str:
    """Memory that is taken, used and given back many times."""
    lines = ["%one = literal 1: i64", "%s0 = negate %n: i64"]
    for k in range(count):
        lines += [
            f"%p{k} = allocateHeap i64 count %one: i64",
            f"store %n: i64 to %p{k}: *i64",
            f"%l{k} = load %p{k}: *i64",
            f"deallocate %p{k}: *i64",
            f"%s{k + 1} = add %s{k}: i64, %l{k}: i64",
        ]
    return _function([*lines, f"return %s{count}: i64"])


def pointers_to_pointers(depth: int = 60) -> str:
    """A cell whose pointer is in a cell whose pointer is in a cell …"""
    stars, lines = "", ["%p0 = allocateStack i64 count 1", "store %n: i64 to %p0: *i64"]
    for k in range(1, depth):
        stars += "*"
        lines += [
            f"%p{k} = allocateStack {stars}i64 count 1",
            f"store %p{k - 1}: {stars}i64 to %p{k}: {stars}*i64",
        ]
    for k in reversed(range(1, depth)):
        kept = "*" * (k + 1)
        lines.append(f"%q{k - 1} = load {'%p' if k == depth - 1 else '%q'}{k}: {kept}i64")
    return _function([*lines, "%r = load %q0: *i64", "return %r: i64"])


def known_loops(count: int = 300) -> str:
    """Loops that do not run, each known to once the one before is gone."""
    lines = ["%x0 = literal 0: i64"]
    for k in range(count):
        lines += [
            f"%x{k + 1} = for 0: i64 upto %x{k}: i64 carrying %x{k}: i64 {{",
            f"'b(%i{k}: i64, %v{k}: i64):",
            f"%w{k} = add %v{k}: i64, 1: i64",
            f"yield %w{k}: i64",
            "}",
        ]
    return _function([*lines, f"return %x{count}: i64"])


ENDING: dict[str, Callable[[], str]] = {
    "irreducible": irreducible,
    "irreducible pair": irreducible_pair,
    "tangled": tangled,
    "chain": chain,
    "empty chain": empty_chain,
    "backward chain": backward_chain,
    "ladder": ladder,
    "known ladder": known_ladder,
    "early returns": early_returns,
    "nested loops": nested_loops,
    "loops in a row": loops_in_a_row,
    "complete": complete,
    "wide": wide,
    "unreachable": unreachable,
    "recursion": recursion,
    "ring": ring,
    "nested if": lambda: nested("if"),
    "nested for": lambda: nested("for"),
    "nested while": lambda: nested("while"),
    "straight": straight,
    "cells": cells,
    "heaps": heaps,
    "pointers to pointers": pointers_to_pointers,
    "known loops": known_loops,
}
"""By name; `@main(%c: bool, %n: i64)` of each ends for small n."""

ENDLESS: dict[str, Callable[[], str]] = {
    "self loop": self_loop,
    "endless pair": endless_pair,
    "endless irreducible": endless_irreducible,
    "endless choice": endless_choice,
    "while true": while_true,
}
