"""Tools for layers of your own that find out what the kernel hides: a timer, statistics, clusters.

::

    from discnice import toolbox

    start = toolbox.timer()
    read(page)
    times.append(toolbox.timer() - start)
    ...
    fast, slow = toolbox.cluster(times)     # cached, and not
"""

import os
from collections import namedtuple

from . import _discnice
from ._discnice import Stats, median, timer

__all__ = [
    "Refreshed",
    "Split",
    "Stats",
    "cluster",
    "correlation",
    "discard_outliers",
    "median",
    "refresh",
    "split",
    "timer",
]

#: Two clusters: values in the low one, the greatest value that is in it, both means, and the share
#: of the variance that the split explains. Noise of a single cluster explains about two thirds.
Split = namedtuple("Split", "low_count cut low_mean high_mean explained_fraction")

#: What a refresh did: files and bytes rewritten, a line for each member that was left as it is, and
#: a line for each name beside the directory to look at.
Refreshed = namedtuple("Refreshed", "files bytes left notes")


def split(values):
    """Split values in two with the least variance within; ``None`` without two different ones."""
    found = _discnice.cluster(list(values))
    return None if found is None else Split(*found)


def cluster(values):
    """Return the low and the high values as two lists, each in its order.

    All are low if there are no two different ones. :func:`split` tells how far apart they are.
    """
    values = list(values)
    found = split(values)
    if found is None:
        return values, []
    return [v for v in values if v <= found.cut], [v for v in values if v > found.cut]


def correlation(x, y):
    """Pearson's correlation of two series, from -1 to 1; ``None`` if one never varies."""
    return _discnice.correlation(list(zip(x, y)))


def discard_outliers(values, limit=3.0):
    """Return the values within ``limit`` scaled median absolute deviations of the median."""
    return _discnice.discard_outliers(list(values), limit)


def refresh(path, *, dry_run=False, force=False, order=()):
    """Rewrite the files of a directory and all below it in layout order, as ``discnice refresh``.

    ``order`` names paths below it in the order wanted; the others follow, small files first. The
    directory is complete at every moment. Raises PermissionError, with the reasons, if it must not
    be refreshed, and OSError.
    """
    names = [os.fsdecode(name) for name in order]
    return Refreshed(*_discnice.refresh(os.fsdecode(path), dry_run, force, names))
