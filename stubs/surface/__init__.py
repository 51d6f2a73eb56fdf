"""The sections of the typed public surface, from which `generate.py` writes the stub.

Python has no type-level arithmetic: whatever depends on a rank, on an arity or on a literal index is
listed case by case.  Three devices keep the lists short, a fourth keeps their messages short; read
them before changing anything.

1. Associated types.  Each TensorKD names its related types as arguments of its base, so that one
   signature can speak of "the same shape as booleans" or "one rank higher" without listing ranks:
       class Tensor2D(Batched[D, UP, MASK, ELEM], Generic[D, I, J])
         D     element type
         UP    one more leading dimension        Tensor3D[D, Any, I, J]
         MASK  result of a comparison            Tensor2D[boolean, I, J]
         ELEM  one row (ranks >= 1 only)         Tensor1D[D, J]
   The row of a row is written Batched[.., Batched[.., Y]].
2. View.  `Rep[X]` is invariant: a covariant Rep would let a shared type variable be solved to a
   common base, and rank errors would pass.  Its base `View[X]` is covariant and occurs in signatures
   only, to ask for a property (`self: View[AnyTensor[Float]]` is "any staged float tensor"), while
   the class variable X still gives the exact result.  mypy checks such a self type, whereas it
   ignores the bound of a type variable that is solved through `self`.
3. Reduce.  `x.sum` is typed as a property that returns a callable object, so that all reductions
   share one table; so are `mean` and its like as functions.
4. Refusal.  Where no overload fits, mypy complains about the first one that would fit if all Reps
   were alike, or prints the whole table (186 lines for `gradient`) if there is none; pyright speaks
   of the last one that gets furthest.  So a table whose arguments must fit each other starts with an
   overload that nobody can call, as it wants a `Rep[_TensorLikeTheFirst]`: the name is the message
   (`expressions.refused`).  It ends with the likeliest case.

Reading order: expressions (types as text), tensors, staged, staging, functions, differentiation, jacobians, sampling.
What needs no generating is ordinary stub text in `templates/`.
"""
