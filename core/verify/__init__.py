"""Whether a module keeps the rules of the IR.  All violations are collected, each with its instruction.

What is checked
---------------
Module      1. a struct has a name that is a word, fields of different names, and is the same everywhere
            2. a function stands in the module under its own name
Declaration 3. a gradient's primal exists and has that gradient; the declared type is the computed one
            4. a function has a body or a declaration that gives it one, and not both
Function    5. it has an entry block, whose arguments are the function's parameters
            6. every block ends with a terminator and has no other; a function's blocks end with return
            7. the returned type is the function's
Value       8. every operand is defined before its use, in the same region or one around it
            9. no value, and no block of a region, is defined twice
           10. a result knows its instruction and its position, an argument has no instruction
Instruction 11. an op has as many operands as its text form, all tensors unless it is about aggregates
           12. the op's type rule accepts the operands and gives the results' types
           13. a call names a function of the module, with its type
           14. an op stands only in stages that have it: nests and matrix products from stage compute on,
               loops and what has a place in stage schedule, tensor ops that become those before
           15. a nest has one body of one block, other ops have none
           16. a literal holds one element or all of them
Nest       17. the body takes the coordinates and a scalar per operand, and uses nothing else
           18. the body consists of scalar elementwise ops and literals, and yields one scalar per output
           19. an index that is read comes from an operand of integers, which for an access stands earlier
Schedule   20. the loops of a nest visit every axis once; a vector runs along one of them
           21. every buffer has a place: a result of the function, or behind the arena's head, aligned
           22. the BLAS has the element type of a product

Read `module`, then `instruction` and `nest`.
"""

from .module import verify, violations

__all__ = ["verify", "violations"]
