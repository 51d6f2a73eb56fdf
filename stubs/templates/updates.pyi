KeyEntry: TypeAlias = Index | slice[Any, Any, Any] | EllipsisType | View[AnyTensor[Integer]] | AnyTensor[Integer] | list[int]
Key: TypeAlias = KeyEntry | tuple[KeyEntry, ...] | View[AnyTensor[Logical]] | AnyTensor[Logical]
class PartView(Generic[X_co]): ...   # covariant faces, for signatures only
class RefView(Generic[X_co]): ...
class At(Generic[X]):
    """What `x.at` is: `x.at[key]` is a part of x."""
    def __getitem__(self, key: Key, /) -> Part[X]: ...
