class ValueInfo:
    name: str
    shape: tuple[int, ...]
    dtype: type[DType]
    @property
    def bytes(self) -> int: ...
class Residual(ValueInfo):
    kind: str
    number: int
    op: str | None
    location: str | None
class HalfSignature:
    expects: tuple[ValueInfo, ...]
    returns: tuple[ValueInfo, ...]
class Residuals(tuple[AnyTensor[Any], ...]):
    def numpy(self) -> list[np.ndarray[Any, Any]]:
        """Copies of the residuals as arrays."""
    def with_arrays(self, arrays: Iterable[np.ndarray[Any, Any]], /) -> Residuals:
        """Residuals of the same halves with these arrays as data."""
class Saved(tuple[Residual, ...]):
    @property
    def total(self) -> int:
        """The bytes of all together."""
class Halves(Generic[HALF, OTHER]):
    forward: Rep[HALF]
    backward: Rep[OTHER]
    residuals: tuple[Residual, ...]
    forward_signature: HalfSignature
    backward_signature: HalfSignature
    @property
    def saved(self) -> Saved:
        """The residuals that are neither arguments nor results."""
class Split(Generic[HALF, OTHER]):
    forward: Rep[HALF]
    backward: Rep[OTHER]
    def at(self, *arguments: Argument, **statics: Static) -> Halves[HALF, OTHER]:
        """The halves for arguments of these shapes."""
def saved(of: View[Callable[..., Any]], /, *arguments: Argument, wrt: Any = None, save: SavePolicy = "auto", **statics: Static) -> Saved: ...
class LinearMap(Generic[GIVEN, R, MADE]):
    def __call__(self, *tangents: GIVEN.args, **none: GIVEN.kwargs) -> R:
        """The tangent of the value along these tangents."""
    def transpose(self, cotangent: R, /) -> MADE:
        """The cotangents of the arguments."""
class Linearization(Generic[OTHER, GIVEN, R, MADE]):
    @overload
    def __call__(self, *arguments: Rep[Any], **statics: Static) -> tuple[Rep[R], LinearMap[..., Rep[R], Any]]: ...
    @overload
    def __call__(self: Linearization[tuple[Unpack[Ts]], GIVEN, R, MADE], *arguments: Unpack[Ts], **statics: Static) -> tuple[R, LinearMap[GIVEN, R, MADE]]: ...
