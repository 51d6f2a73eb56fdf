Index: TypeAlias = int | Rep[Tensor0D[i32]] | Rep[Tensor0D[i64]]
Slice: TypeAlias = slice[Any, Any, Any]
Whole: TypeAlias = slice[None, None, None]
IndexMode: TypeAlias = Literal["error", "clip", "wrap", "fill"]
WriteMode: TypeAlias = Literal["error", "clip", "wrap", "drop"]
SumMode: TypeAlias = Literal["error", "clip", "drop"]
Filler: TypeAlias = float | View[Tensor0D[Any]] | None
Stage: TypeAlias = Literal["raw", "optimizable", "optimized", "compute", "schedule"]
class DataclassInstance(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]
class PythonFunction(Protocol):   # as a Callable is one, and a Rep is none
    @property
    def __code__(self) -> Any: ...
Static: TypeAlias = complex | str | bytes | Enum | tuple[Any, ...] | frozenset[Any] | type[Any] | Callable[..., Any] | DataclassInstance | None
class MemoryAnalysis:
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    is_complete: bool
    @property
    def peak_bytes(self) -> int: ...
class View(Generic[X_co]): ...   # covariant face of Rep, for signatures only
class Series(Generic[X_contra, X_co]): ...   # face of Rep, to tell tuples of any length from others
if not MYPY:
    class LoopByMapFoldOrScanOver(Generic[X]):   # what iterates, for pyright: a loop asks __get__, a protocol __call__, and no more than this name is said of one that does not fit
        @overload
        def __get__(self, x: Series[tuple[Never, ...], tuple[R, ...]], owner: Any = None, /) -> Callable[[], Iterator[Rep[R]]]: ...
        @overload
        def __get__(self, x: Rep[tuple[R, R]] | Rep[tuple[R, R, R]] | Rep[tuple[R, R, R, R]], owner: Any = None, /) -> Callable[[], Iterator[Rep[R]]]: ...
        @overload
        def __get__(self, x: View[tuple[Any, ...]], owner: Any = None, /) -> Callable[[], Iterator[Rep[Any]]]: ...
        @overload
        def __get__(self, x: object, owner: Any = None, /) -> Callable[[], LoopByMapFoldOrScan]: ...
        @overload
        def __call__(self: LoopByMapFoldOrScanOver[tuple[R, ...]]) -> Iterator[Rep[R]]: ...
        @overload
        def __call__(self: LoopByMapFoldOrScanOver[tuple[Any, ...]]) -> Iterator[Rep[Any]]: ...
class Attributes:   # unknown ones, for pyright: of a struct what to write, and None, which is no function, of others
    @overload
    def __get__(self, x: Rep[S], owner: Any = None, /) -> Callable[[WriteFieldsOf[S, Literal["as p[Class.field] for p.field"]]], Any]: ...
    @overload
    def __get__(self, x: object, owner: Any = None, /) -> None: ...
class WriteFieldsOf(Generic[S, Y]): ...   # in a message: what Rep, and how
class NotAnAttribute: ...   # for mypy's plugin: what a name that is no attribute has for a type
if MYPY:
    class Conversions:   # what Python asks of a value  # pyright: ignore[reportRedeclaration]
        def __float__(self) -> ReturnItFromTheStagedFunction: ...
        def __int__(self) -> ReturnItFromTheStagedFunction: ...
else:   # pyright prints the name of a method that has no self in one line, and of a type that does not fit in twelve
    class Conversions:
        def ReturnItFromTheStagedFunction() -> Any: ...   # pyright: ignore[reportSelfClsParameterName]
        def WriteNkRound() -> Any: ...   # pyright: ignore[reportSelfClsParameterName]
        __float__ = __int__ = __complex__ = ReturnItFromTheStagedFunction
        def WriteNkForNp() -> Any: ...   # pyright: ignore[reportSelfClsParameterName]
        __round__ = WriteNkRound
        __array__ = __array_ufunc__ = WriteNkForNp
class Rep(Conversions, View[X], Series[X, X], Generic[X]):
    if not MYPY:
        __getattr__: Attributes
    @overload
    def eval(self: Rep[Callable[[], R]]) -> R:
        """What a staged function of no parameters returns, computed now."""
    @overload
    def eval(self) -> X: ...
    def ir(self: View[Callable[..., Any]], *arguments: Argument, stage: Stage = "raw", **statics: Static) -> str:
        """The IR of a staged function for arguments of these shapes, at a stage of the compiler."""
    def llvm(self: View[Callable[..., Any]], *arguments: Argument, **statics: Static) -> str:
        """The LLVM IR of a staged function, compiled for arguments of these shapes."""
    def asm(self: View[Callable[..., Any]], *arguments: Argument, **statics: Static) -> str:
        """Its machine code, as assembly."""
    def memory_analysis(self: View[Callable[..., Any]], *arguments: Argument, **statics: Static) -> MemoryAnalysis:
        """What a call of a staged function takes of memory, in bytes."""
    def compile(self: View[Callable[..., Any]], *arguments: Argument, **statics: Static) -> None:
        """Compile a staged function for arguments of these shapes, without running it."""
    def partial(self: Rep[Callable[[Unpack[Ts]], R]], **statics: Static) -> Rep[Callable[[Unpack[Ts]], R]]:
        """The same function with these values of its static parameters."""
    def cache_size(self: View[Callable[..., Any]]) -> int:
        """How many compiled specialisations a staged function has; `set_cache_limit` bounds it."""
    def clear_cache(self: View[Callable[..., Any]]) -> None:
        """Drop all compiled specialisations of a staged function; the next calls compile anew."""
    __getitem__: Subscripts
    shape: ShapeOfRep
    @property
    def size(self: View[AnyTensor[Any]]) -> int:
        """How many elements there are: a symbolic integer while staging, as the extents of `shape` are."""
    @property
    def ndim(self: View[AnyTensor[Any]]) -> int:
        """How many axes there are."""
    def __len__(self: View[AnyTensor[Any] | tuple[Any, ...]]) -> int: ...
    # what Python asks of values, and a Rep has not yet; an error at run time too
    @overload  # type: ignore[overload-overlap]
    def __bool__(self: View[Callable[..., Any]]) -> Literal[True]: ...  # type: ignore[overload-overlap]
    @overload
    def __bool__(self) -> ChooseByCondOrSelect: ...
    if MYPY:
        if os.name == "mypy":   # false for pyright; mypy takes any tuple for one of Never
            @overload
            def __iter__(self: Series[tuple[Never, ...], tuple[R, ...]]) -> Iterator[Rep[R]]: ...
            @overload
            def __iter__(self: View[tuple[Any, ...]]) -> Iterator[Rep[Any]]: ...   # of several types, which `unpack` tells
            @overload
            def __iter__(self: View[AnyTensor[Any] | Struct | Callable[..., Any]]) -> LoopByMapFoldOrScan: ...
    else:
        __iter__: LoopByMapFoldOrScanOver[X]
