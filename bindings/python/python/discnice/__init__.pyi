from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Literal, Optional, TypeVar

from ._discnice import flush as flush
from ._discnice import notices as notices
from ._discnice import set_critical as set_critical
from ._discnice import set_job_name as set_job_name
from ._discnice import set_priority as set_priority
from ._discnice import set_resources as set_resources

T = TypeVar("T")
Outcome = Literal["too soon", "went", "suspended", "held", "skipped"]

def configure(
    *,
    alpha: Optional[float] = None,
    beta: Optional[float] = None,
    false_stop_hours: Optional[float] = None,
    average_over: Optional[float] = None,
    hung: Optional[float] = None,
    probation: Optional[float] = None,
) -> None: ...
def testpoint(*metrics: float, index: int = 0) -> Outcome: ...

class Job:
    index: int
    counters: dict[str, float]
    waited: float
    def __init__(self, *names: str, index: int = 0) -> None: ...
    def __enter__(self) -> Job: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exception: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
    def add(self, **progress: float) -> Outcome: ...

def polite(
    iterable: Iterable[T],
    *,
    amount: Optional[Callable[[T], float]] = None,
    index: int = 0,
) -> Iterator[T]: ...
