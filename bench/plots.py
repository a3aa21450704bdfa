"""Draws results as SVG files, in the directory of the CSV files: bars of medians, and curves of
values during a run.

A bar shows the median of the rounds of one side (one of the compared systems). The bar's whisker
extends from the least value to the greatest. Figures with the same unit share an axis, which is
logarithmic if these figures differ by more than a factor of 30.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter

from bench.measure import RESULTS, Measured, Result

# With these settings, the same figures always give the same file, and text is not converted to
# curves.
mpl.rcParams.update({"svg.hashsalt": "skidway", "svg.fonttype": "none", "font.size": 9})

BAR_INCHES = 0.22
LOGARITHMIC_FROM = 30
"""If the ratio of the greatest to the least figure is above this number, the axis is logarithmic,
because the smallest bars would be invisible on a linear axis."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, its points, and its style and color in matplotlib's notation."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str = "-"
    color: str | None = None


def path(name: str) -> Path:
    """The path of the SVG file of the plot `name`."""
    return RESULTS / f"{name}.svg"


def bars(result: Result) -> None:
    """Draws all rows of a result, with one axis for each unit."""
    units: dict[str, list[Measured]] = {}
    for each in result.measured():
        units.setdefault(each.unit, []).append(each)
    if not units:
        return
    sides = list(dict.fromkeys(each.side for each in result.measured()))
    colors = {side: f"C{number}" for number, side in enumerate(sides)}
    heights = [len(rows) + 2 for rows in units.values()]
    figure = Figure(figsize=(9, 0.8 + BAR_INCHES * sum(heights)), layout="constrained")
    axes = figure.subplots(len(units), 1, squeeze=False, height_ratios=heights)
    for axis, (unit, rows) in zip(axes[:, 0], units.items(), strict=True):
        _bars_of_unit(axis, unit, rows, colors)
    figure.suptitle(result.title, fontsize=10)
    legend = [Patch(color=color, label=side) for side, color in colors.items()]
    figure.legend(handles=legend, loc="outside lower center", ncols=4)
    _write(figure, result.name)


def lines(name: str, title: str, x_label: str, y_label: str, curves: Sequence[Line]) -> None:
    """Draws curves. The y axis is logarithmic, so that slow systems are visible too."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axis = figure.subplots()
    for each in curves:
        x, y = zip(*each.points, strict=True)
        axis.plot(x, y, each.style, marker=".", markersize=3, color=each.color, label=each.name)
    axis.set(title=title, xlabel=x_label, ylabel=y_label, yscale="log")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    axis.grid(visible=True, which="both", alpha=0.25)
    figure.legend(loc="outside lower center", ncols=3)
    _write(figure, name)


def _bars_of_unit(
    axis: Axes, unit: str, rows: Sequence[Measured], colors: Mapping[str, str]
) -> None:
    whats = list(dict.fromkeys(each.what for each in rows))
    sides = list(dict.fromkeys(each.side for each in rows))
    thickness = 0.8 / len(sides)
    for number, side in enumerate(sides):
        mine = [each for each in rows if each.side == side]
        middle = [statistics.median(each.values) for each in mine]
        least = [m - min(each.values) for m, each in zip(middle, mine, strict=True)]
        most = [max(each.values) - m for m, each in zip(middle, mine, strict=True)]
        at = [whats.index(each.what) + number * thickness for each in mine]
        axis.barh(
            at, middle, thickness, xerr=[least, most], label=side, color=colors[side],
            error_kw={"elinewidth": 0.8, "capsize": 1.5},
        )  # fmt: skip
    axis.set_yticks([at + 0.4 - thickness / 2 for at in range(len(whats))], whats)
    axis.invert_yaxis()
    axis.set_xlabel(unit)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    positive = [value for each in rows for value in each.values if value > 0]
    if positive and max(positive) > LOGARITHMIC_FROM * min(positive):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))


def _write(figure: Figure, name: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(path(name), metadata={"Date": None})
