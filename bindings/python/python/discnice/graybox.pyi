from collections.abc import Iterable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, NamedTuple, Optional, TypeVar, Union

from ._discnice import Grant

Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]
P = TypeVar("P", bound=Path)

class Region(NamedTuple):
    offset: int
    length: int
    cached_bytes: int

class Residency(NamedTuple):
    size: int
    means: Literal["cachestat", "mincore", "probe", "unknown"]
    regions: list[Region]
    pages_read: int
    @property
    def cached_bytes(self) -> Optional[int]: ...
    @property
    def cached_fraction(self) -> Optional[float]: ...

def residency(path: Path, *, unit: Optional[int] = None) -> Residency: ...
def order(paths: Iterable[P], by: Literal["cached", "layout", "compose"] = "compose") -> list[P]: ...

class Piece(NamedTuple):
    path: Path
    offset: int
    length: int
    cached_bytes: int

def plan(paths: Iterable[Path], *, unit: Optional[int] = None, align: int = 1) -> list[Piece]: ...

def order_pieces(pieces: Iterable[Sequence[Any]]) -> list[Piece]: ...

class Memory:
    view: memoryview
    def __init__(self, grant: Grant) -> None: ...
    def __len__(self) -> int: ...
    def release(self) -> None: ...
    def __enter__(self) -> memoryview: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

def gb_alloc(minimum: int, maximum: int, multiple: int = 1) -> Optional[Memory]: ...
