"""Background jobs that step aside when others need the machine.

The job reports its progress; when the progress lags behind what the job can do
undisturbed, somebody else is using what it needs, and it is suspended for a while::

    import discnice

    for path in discnice.polite(paths):
        index(path)

or, with counters of its own::

    with discnice.Job() as job:
        for path in paths:
            job.add(files=1, bytes=index(path))

Nothing here raises because of the machine: without its directories or its shared
memory a job runs unregulated, and :func:`notices` says so.
"""

import os
import sys

from . import _discnice
from ._discnice import flush, notices, set_critical, set_job_name, set_priority, set_resources

__all__ = [
    "Job",
    "configure",
    "flush",
    "notices",
    "polite",
    "set_critical",
    "set_job_name",
    "set_priority",
    "set_resources",
    "testpoint",
]

# The interpreter runs many jobs; the script's path tells them apart.
if sys.argv and sys.argv[0] not in ("", "-c", "-m"):
    # A path of any bytes: what is no UTF-8 in it stands there as an escape.
    set_job_name(os.path.realpath(sys.argv[0]).encode(errors="backslashreplace").decode())


def configure(
    *,
    alpha=None,
    beta=None,
    false_stop_hours=None,
    average_over=None,
    hung=None,
    probation=None,
):
    """Set parameters of the regulation, once and before the first testpoint.

    ``alpha`` is the probability of suspending a job that is not disturbed (0.05),
    ``beta`` that of letting a job that is disturbed go on (0.2; above alpha, below
    0.5). A job that nothing disturbs is suspended at most once in ``false_stop_hours``, on
    average (1; 0 for the paper's sign test alone). Targets are averaged over ``average_over`` testpoints (10000). A thread that
    makes no testpoint for ``hung`` seconds (10) loses its turn and is not judged. A job
    without known targets runs only part of the time for ``probation`` seconds (3600).

    Raises ValueError for values that cannot be used, RuntimeError after a testpoint or
    a second time; nothing is changed then.
    """
    wanted = {
        "alpha": alpha,
        "beta": beta,
        "false-stop-hours": false_stop_hours,
        "average-over": average_over,
        "hung": hung,
        "probation": probation,
    }
    _discnice.configure([(name, value) for name, value in wanted.items() if value is not None])


def testpoint(*metrics, index=0):
    """Report cumulative counters and return when it is fine to go on.

    ``index`` names the set of metrics, such as a phase of the job; a set always has the
    same number of metrics, 1 to 16. Returns the outcome: ``"went"``, ``"too soon"``,
    ``"suspended"``, ``"held"`` or ``"skipped"``. What a signal's handler raises, as for Ctrl-C,
    ends the wait.
    """
    return _discnice.testpoint(index, metrics)[0]


class Job:
    """Named counters with a testpoint at each addition; a context manager.

    All counters are named at the first addition or at construction. Leaving the block
    saves the learned targets.
    """

    def __init__(self, *names, index=0):
        self.index = index
        self.counters = dict.fromkeys(names, 0.0)
        #: Seconds that this job was made to wait.
        self.waited = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        flush()

    def add(self, **progress):
        """Add progress by name and make a testpoint; returns its outcome."""
        if not self.counters:
            self.counters = dict.fromkeys(progress, 0.0)
        for name, amount in progress.items():
            if name not in self.counters:
                known = ", ".join(self.counters)
                raise KeyError(f"no counter {name!r}; this job has {known}")
            self.counters[name] += amount
        outcome, seconds = _discnice.testpoint(self.index, list(self.counters.values()))
        self.waited += seconds
        return outcome


def polite(iterable, *, amount=None, index=0):
    """Yield the items of ``iterable``, with a testpoint after each.

    The progress is the number of items, and with ``amount``, a function of an item,
    also the sum of its values, such as file sizes. It is called before the item is
    yielded, so the loop may delete the file.
    """
    done = total = 0.0
    for item in iterable:
        if amount is not None:
            total += amount(item)
        yield item
        done += 1
        _discnice.testpoint(index, [done] if amount is None else [done, total])
