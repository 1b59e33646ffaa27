#!/usr/bin/env python3
"""How many pages can probing get right at best, if each miss reads a page?

The file of figure 1: pieces of one access unit, read at random places until half of it is cached.
A look at a cached page is free and shows the whole run around it; a look at one that is not cached
costs a miss and shows nothing else. Where nothing is cached the past says nothing about what
follows, so the file falls apart into stretches between pages known not to be cached, and what is
done about one does not depend on the others.

For a price of a miss, in wrong pages, dynamic programming finds the least cost (wrong pages, and
misses paid for) over all strategies. With so many misses a page, no strategy can have
fewer wrong pages than this cost less the price of the misses; the highest of these bounds, over all
prices, is printed. The finer the steps, the lower what is printed, and the longer it takes.

usage: probing_optimum.py [ACCESS-UNIT-MiB [STEPS-IN-AN-ACCESS-UNIT]]
"""
import math
import sys

# 0.1 % of the file in pages of 4 KiB.
MISSES_PER_MIB = 256 / 1000


class File:
    """Chances in a half-cached file; lengths in steps, of which a piece has `piece`."""

    def __init__(self, piece, longest):
        start = 1 - math.exp(-math.log(2) / piece)
        # Chance that the last piece of a run starts so many steps after the first.
        last = [1.0]
        for steps in range(1, 12 * piece):
            gaps = range(1, min(piece, steps) + 1)
            last.append(sum((1 - start) ** (gap - 1) * start * last[steps - gap] for gap in gaps))
        # Chance that a run of a length starts at a step.
        ends = (1 - start) ** piece
        self.run = {piece + steps: start * chance * ends for steps, chance in enumerate(last)}
        # Chance that the step so far behind one that is not cached is not cached either.
        self.absent = [1.0]
        for steps in range(1, longest + 1):
            shorter = (length for length in self.run if length < steps)
            behind = sum(self.run[length] * self.absent[steps - 1 - length] for length in shorter)
            self.absent.append((1 - start) * self.absent[-1] + behind)

    def runs_over(self, at, end):
        """The runs that contain the step `at` and end before `end`: (before, length, chance), where
        `before` steps lie between step 0, not cached, and the run."""
        for before in range(at):
            for length, chance in self.run.items():
                if before + length + 1 > end:
                    break
                if before + length >= at:
                    yield before, length, self.absent[before] * chance


def least_costs(file, longest, price):
    """Least cost of a stretch between two steps that are not cached, by their distance."""
    absent, costs = file.absent, []
    for length in range(longest + 1):
        # Nothing done: all of it is called absent.
        least = sum(1 - absent[at] * absent[length - at] / absent[length] for at in range(1, length))
        least = least if least > 1e-12 else 0.0
        for at in range(1, length // 2 + 1) if least else ():
            cost = absent[at] * absent[length - at] * (price + costs[at] + costs[length - at])
            for before, run, chance in file.runs_over(at, length):
                behind = length - before - run - 1
                cost += chance * absent[behind] * (costs[before] + costs[behind])
            least = min(least, cost / absent[length])
        costs.append(least)
    return costs


def least_cost_of_a_step(file, costs, price):
    """The same of a long file: the best jump from a page that is not cached to the next such."""
    least = math.inf
    for jump in range(1, len(costs)):
        missed = file.absent[jump]
        cost, steps = missed * (price + costs[jump]), missed * jump
        for before, run, chance in file.runs_over(jump, math.inf):
            cost += chance * costs[before]
            steps += chance * (before + run + 1)
        least = min(least, cost / steps)
    return least


def main():
    unit_mib = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    piece = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    longest = 3 * piece
    file = File(piece, longest)
    bound = 0.0
    for percent in range(10, 200, 5):
        price = percent / 100 * piece
        costs = least_costs(file, longest, price)
        paid = price * MISSES_PER_MIB * unit_mib / piece
        bound = max(bound, least_cost_of_a_step(file, costs, price) - paid)
    print(f"access units of {unit_mib:g} MiB: at most {100 * (1 - bound):.1f} % right with 0.1 % read")


main()
