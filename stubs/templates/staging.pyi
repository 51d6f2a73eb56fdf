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
