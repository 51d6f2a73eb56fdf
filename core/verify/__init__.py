"""The verifier: collects all violations of the rules of the IR, each with its instruction.

What is checked
---------------
Type        1. a type stands in the module under its name, which no other has, and is the same everywhere
            2. the fields of a struct have different names, and so have the cases of an enum
            3. an enum has values that are finite
            4. an opaque type that is used is defined
            5. a value of the type fits into the address space, and has no more than a million parts
Module      6. a function or variable stands in the module under its own name, which no other has
            7. a gradient's or tangent's primal exists, has a body in the end, and has that derivative; the
               declared type is the computed one
            8. a function has a body, or a declaration that gives it one or says it is elsewhere; not both
            9. attributes are known, and the rules of a function's derivatives are functions of the types that they need
Function   10. it has an entry block, whose arguments are the function's parameters
           11. every block ends with a terminator and has no other; bodies end with yield and nothing else does
           12. the returned type is the function's
           13. a terminator has as many successors as its op, of its own region, and never the first block
           14. what a successor is given, or what an enum's case carries, are the arguments it takes
Value      15. every operand is defined before its use on every path to it, in the same region or one around it
           16. no value is defined twice; no block, body or instruction stands in two places
           17. a result knows its instruction and its position, an argument has no instruction; a value knows the
               instructions that use it, and no others: what leaves the program is erased
           18. a closed body, which all are from stage optimized on, uses nothing from around it
Instruction
           19. an op has as many operands as its text form, all tensors unless it takes anything
           20. the op's type rule accepts the operands and gives the results' types
           21. what a call or reference names is in the module, with its type
           22. an op stands only in stages that have it: builtins and what else is written out in stage raw,
               nests and matrix products in stage compute, kernels and what has a place in stage schedule,
               tensor ops that become those before
           23. an op has its bodies, of one block each, and no others
           24. the body of a structured op takes and yields what the op says
           25. a literal holds one element or all of them, and of bool only zeros and ones
Nest       26. the body takes the coordinates and a scalar per operand
           27. the body consists of scalar elementwise ops and literals, and yields one scalar per output
           28. an index that is read comes from an operand of integers, which for an access stands earlier
Schedule   29. every buffer has a place: a result of the function, or behind the arena's head, aligned
Stage      30. after stage raw every derivative has its body, every function a single block and no rules
Kernel     31. the body takes a buffer for each operand, result and scratch buffer, and yields nothing
           32. it consists of loops, loads, stores, literals, elementwise ops, and what computes with lanes and indices
           33. values in it are scalars, vectors and buffers

Blocks that nothing leads to are checked like all others, but rule 15 asks only for the order inside them.  What
is too broken to be checked is a violation, never another error.

Read `module`, `types`, `function`, then `terminator`, `instruction`, `stage`, `nest` and `kernel`.
"""

from .module import verify, violations

__all__ = ["verify", "violations"]
