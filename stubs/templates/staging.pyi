class Spec:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> type[DType]: ...
def spec(shape: tuple[int, ...], dtype: type[DType], /) -> Spec: ...
Argument: TypeAlias = AnyTensor[Any] | Struct | Spec | View[Callable[..., Any]]
def set_cache_limit(count: int, /) -> int:
    """Let every staged function keep at most `count` compiled specialisations; the limit before is returned.

    A function that has more drops those that were not used for longest when it next compiles one.
    """
def foreign(function: str | int | Callable[..., Any], signature: Rep[Callable[[Unpack[Ts]], R]], /, *, vjp: Callable[..., Any] | None = None) -> Rep[Callable[[Unpack[Ts]], R]]:
    """A C function, `int32_t f(const T *input…, T *output…)`, as a staged function: by pointer, or by a symbol's name.

    `signature` is a staged function of the same parameters, which says the types and shapes of the results and is never
    run.  `vjp` takes the arguments and the cotangent of the result, and returns a tuple of those of the arguments.
    """
def callback(function: Callable[..., Any], signature: Rep[Callable[[Unpack[Ts]], R]], /, *, vjp: Callable[..., Any] | None = None) -> Rep[Callable[[Unpack[Ts]], R]]:
    """A function of Python on NumPy arrays as a staged function, called back from compiled code: some 10 µs a call."""
def debug_nans() -> AbstractContextManager[None]:
    """Calls of staged functions find out where a NaN or infinity among their results comes from: a `NonFiniteError`.

    Inside, on this thread, functions are run by the reference evaluator: some 1,000 times slower than compiled code.
    """
def check(condition: bool | Rep[Tensor0D[boolean]], message: str, /) -> None:
    """Stop the program with a `CheckError` that says `message`, unless `condition` is true when this runs.

    In a staged function the error names the line of the check; a Python bool is looked at at once.
    """
def print(*values: object, sep: str = " ", end: str = "\n") -> None:
    """Write values to `sys.stdout` when this runs, as Python's `print` does: Reps, and what is known already.

    What is no Rep is written as it is when the function is staged.  Outside of staged functions it is Python's `print`.
    """
