from collections.abc import Iterable
from os import PathLike
from typing import NamedTuple, Optional, Union

from ._discnice import Stats as Stats
from ._discnice import median as median
from ._discnice import timer as timer

class Split(NamedTuple):
    low_count: int
    cut: float
    low_mean: float
    high_mean: float
    explained_fraction: float

class Refreshed(NamedTuple):
    files: int
    bytes: int
    left: list[str]
    notes: list[str]

Path = Union[str, bytes, PathLike[str], PathLike[bytes]]

def split(values: Iterable[float]) -> Optional[Split]: ...
def cluster(values: Iterable[float]) -> tuple[list[float], list[float]]: ...
def correlation(x: Iterable[float], y: Iterable[float]) -> Optional[float]: ...
def discard_outliers(values: Iterable[float], limit: float = 3.0) -> list[float]: ...
def refresh(
    path: Path, *, dry_run: bool = False, force: bool = False, order: Iterable[Path] = ()
) -> Refreshed: ...
