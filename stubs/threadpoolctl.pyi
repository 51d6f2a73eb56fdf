# What jit.runtime.blas calls; the package has no annotations of its own.
from typing import Any

def threadpool_info() -> list[dict[str, Any]]: ...
