"""Steps of least squares: Gauss and Newton's method, damped as Levenberg and Marquardt do.

Sources: Levenberg 1944; Marquardt 1963; Nocedal & Wright 2006, chapter 10.
"""

from __future__ import annotations

from typing import Any

from .callables import StagedFunction, check_staged
from .jacobians import jacobian
from .linear_algebra import solve
from .reps import as_rep
from .shaping import eye
from .staging.primitive import rank_error, tensor_of
from .staging.staged_functions import PythonFunction
from .static_parameters import passing_statics
from .tensors import DTYPES
from .wrappers import wrapper_of


@passing_statics
def gauss_newton(of: StagedFunction) -> StagedFunction:
    """`x, residuals = step(x, damping, *data)`: a step of the vector x that makes Σ of(x, *data)² smaller.

    With the Jacobian J of the residuals r it solves (JᵀJ + damping · I) d = Jᵀr, and takes d off x.  `damping` is a
    scalar of their type: 0 for Gauss and Newton's method; with more of it steps are shorter, as Levenberg's are.
    The residuals are those before the step.
    Raises: RankError for parameters that are no vector.
    """
    check_staged(of, "gauss_newton")
    first, *rest = of.stageable.parameter_names
    slopes = jacobian(of=wrapper_of(of, lambda *given: as_rep(of(*given)).reshape(-1)), wrt=0)

    def step(x: Any, damping: Any, *data: Any) -> Any:
        spec = tensor_of(as_rep(x).expression, "gauss_newton")
        if spec.rank != 1:
            raise rank_error(
                f"gauss_newton changes a vector of parameters, not a {spec.words}",
                "of several tensors, the function can cut them out of one",
            )
        residuals, j = as_rep(of(x, *data)), slopes(x, *data)
        normal = j.T @ j + damping * eye(j.shape[1], dtype=DTYPES[spec.dtype])
        return x - solve(normal, residuals.reshape(-1) @ j), residuals

    names = (first, "damping", *rest)
    declared = (of.declared[0], None, *of.declared[1:])
    name = f"{of.stageable.name}_step"
    return StagedFunction(PythonFunction(step, name, names, declared, None, is_wrapper=True))
