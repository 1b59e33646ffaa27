#!/usr/bin/env python3
"""Draws what `rates.py --unlimited --json FILE` recorded for one program as SVG.

Two panels share one time axis: the device's traffic in steps of 100 ms without and with the limit.
"""
import argparse
import json

WIDTH, PANEL, LEFT, TOP, GAP = 760, 150, 70, 30, 46
STEP = 0.1
MIB = 1 << 20


def steps(samples):
    """Traffic of the device in MiB/s for each step of time."""
    if not samples:
        return []
    end = samples[-1][0]
    rates, at, before = [], 0, samples[0][2]
    for index in range(int(end / STEP) + 1):
        until = (index + 1) * STEP
        while at + 1 < len(samples) and samples[at + 1][0] <= until:
            at += 1
        rates.append((samples[at][2] - before) / STEP / MIB)
        before = samples[at][2]
    return rates


def nice_top(value):
    for top in (10, 20, 25, 50, 100, 200, 400, 500, 800, 1000, 1500, 2000, 3000, 5000):
        if value <= top:
            return top
    return value


def panel(title, rates, seconds, top, y, limit=None):
    inner = WIDTH - LEFT - 20

    def point(second, rate):
        return f"{LEFT + second / seconds * inner:.1f},{y + PANEL - min(rate, top) / top * PANEL:.1f}"
    line = []
    for index, rate in enumerate(rates):
        line += [point(index * STEP, rate), point((index + 1) * STEP, rate)]
    area = " ".join([point(0, 0)] + line + [point(len(rates) * STEP, 0)])
    parts = [f'<text x="{LEFT}" y="{y - 8}" class="title">{title}</text>',
             f'<polygon points="{area}" class="area"/>',
             f'<polyline points="{" ".join(line)}" class="line"/>',
             f'<path d="M{LEFT},{y} V{y + PANEL} H{WIDTH - 20}" class="axis"/>']
    for mark in (0, top / 2, top):
        height = y + PANEL - mark / top * PANEL
        parts.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" class="tick" '
                     f'text-anchor="end">{mark:g}</text>')
    if limit:
        height = y + PANEL - limit / top * PANEL
        parts.append(f'<path d="M{LEFT},{height:.1f} H{WIDTH - 20}" class="limit"/>'
                     f'<text x="{WIDTH - 22}" y="{y - 8}" class="tick" '
                     f'text-anchor="end">limit {limit:g} MiB/s</text>')
    return parts


def draw(entry):
    limit = entry["rate"] / MIB
    free, held = steps(entry["unlimited"]), steps(entry["samples"])
    seconds = max(len(free), len(held)) * STEP
    lower = TOP + PANEL + GAP
    parts = panel(f'{entry["program"]}, unlimited (MiB/s)', free, seconds, nice_top(max(free)), TOP)
    parts += panel(f'discnice run --disk {limit:g}M -- {entry["program"]} (MiB/s)', held, seconds,
                   nice_top(2 * limit), lower, limit)
    inner = WIDTH - LEFT - 20
    for second in range(0, int(seconds) + 1, max(1, int(seconds / 10))):
        parts.append(f'<text x="{LEFT + second / seconds * inner:.1f}" y="{lower + PANEL + 18}" '
                     f'class="tick" text-anchor="middle">{second} s</text>')
    style = ("text{font:13px sans-serif;fill:#333}.title{font-weight:bold}.tick{font-size:11px}"
             ".area{fill:#4a7ebb33}.line{fill:none;stroke:#2f6db5;stroke-width:1.5}"
             ".axis{fill:none;stroke:#888}.limit{stroke:#c0392b;stroke-dasharray:5 4}")
    height = lower + PANEL + 32
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}"><rect width="100%" height="100%" fill="#fff"/>'
            f'<style>{style}</style>{"".join(parts)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("svg")
    arguments = parser.parse_args()
    with open(arguments.record) as file:
        record = json.load(file)
    with open(arguments.svg, "w") as file:
        file.write(draw(record[0]))


if __name__ == "__main__":
    main()
