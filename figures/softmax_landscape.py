r"""The softmax action against the score gap, below, at and above the first-order transition P*.

.. math:: F(s; P) - F(s_\mathrm{uniform}; P)

At P* its two minima, uniform attention and copying, are equally deep: at that sample size the global minimum jumps from
one to the other, without a stable state in between (claim C4 of arXiv 2606.12058). Outside of the two spinodals only
one minimum is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sympy import Rational

from derive.action import EffectiveAction
from derive.catalogue import find
from figures.style import COLOURS, SHEET, Picture
from numerics.emit import emit
from numerics.points import Kind, Transitions
from numerics.stationary import minima
from numerics.transitions import transitions

__all__ = ["Curve", "curves", "draw", "picture"]

THEORY = "copy-head/softmax"
SETUP = {"L": "32", "V": "8"}
GAPS = np.linspace(0, 3, 301)


@dataclass(frozen=True)
class Curve:
    """The action over `GAPS` at one P, relative to the uniform minimum, and its stationary points as (kind, s, F)."""

    place: str
    control: float
    action: NDArray[np.float64]
    points: tuple[tuple[str, float, float], ...]


def curves(action: EffectiveAction, values: Mapping[str, str]) -> list[Curve]:
    """The action at P*, and half-way from there to the spinodal on either side, so that both minima are there."""
    found = transitions(action, action.setup(values), digits=15)
    at, copy, uniform = _thresholds(found)
    places = {"below": (copy + at) / 2, "at": at, "above": (at + uniform) / 2}
    return [_curve(action, values, place, control) for place, control in places.items()]


def _thresholds(found: Transitions) -> tuple[Rational, Rational, Rational]:
    """P*, and the spinodals at which the copy phase appears and the uniform phase ends."""
    by_name = {(entry.kind.value, entry.phase): Rational(entry.value.text) for entry in found}
    return by_name["coexistence", None], by_name["spinodal", "copy"], by_name["spinodal", "uniform"]


def _curve(action: EffectiveAction, values: Mapping[str, str], place: str, control: Rational) -> Curve:
    setup = action.setup({**values, action.control.name: control})
    points = minima(action, setup)
    base = next(float(point.action) for point in points if point.name == "uniform")
    arguments = (*action.variables, action.control.symbol, *setup.values)
    evaluate = emit(action.value, arguments, "numpy")
    numbers = (float(value) for value in (setup.control, *setup.values.values()))
    return Curve(
        place,
        float(control),
        evaluate(GAPS, *numbers) - base,
        tuple((p.kind.value, float(p.order_parameters["s"]), float(p.action) - base) for p in points),
    )


def draw(drawn: list[Curve], entry_weight: NDArray[np.float64]) -> Figure:
    """The picture: one line per curve, minima filled, the barrier open; ``entry_weight`` is a_G over `GAPS`."""
    with matplotlib.rc_context(SHEET):
        figure = Figure()
        axes = figure.add_subplot()
        task = ", ".join(f"${name} = {value}$" for name, value in SETUP.items())
        axes.set_title(f"Softmax attention on the copy task, {task}", pad=10)
        axes.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        for curve in drawn:
            _line(axes, curve)
        for inside, name in (("0.35", "minimum"), ("white", "barrier")):
            axes.plot([], [], "o", color="0.35", markerfacecolor=inside, label=name)
        depths = [level for curve in drawn for _, _, level in curve.points]
        reach = max(depths) - min(depths)
        axes.set_ylim(min(depths) - 0.35 * reach, max(depths) + 0.5 * reach)
        axes.set_xlim(GAPS[0], GAPS[-1])
        axes.set_xlabel(r"score gap $s$ between the entry to copy and the others")
        axes.set_ylabel(r"action $F(s) - F(s_{\mathrm{uniform}})$")
        axes.legend(loc="upper left", title="$P$ training sequences", alignment="left", labelspacing=0.3)
        _weights(axes, entry_weight)
        _phases(axes, drawn)
        # Laid out once: each further draw would move things by rounding errors.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure


def _line(axes: Axes, curve: Curve) -> None:
    colour = COLOURS[curve.place]
    sign = {"below": "<", "at": "=", "above": ">"}[curve.place]
    label = f"$P = {curve.control:.1f} {sign} P^*$" if sign != "=" else f"$P = P^* = {curve.control:.2f}$"
    axes.plot(GAPS, curve.action, color=colour, label=label)
    for kind, gap, level in curve.points:
        inside = colour if kind == Kind.MINIMUM.value else "white"
        axes.plot(gap, level, "o", color=colour, markerfacecolor=inside, markersize=7, zorder=3)


def _weights(axes: Axes, entry_weight: NDArray[np.float64]) -> None:
    top = axes.secondary_xaxis("top")
    shown = [0, 0.02, 0.05, 0.1, 0.2, 0.3]
    top.set_xticks(np.interp(shown, entry_weight, GAPS), [f"{weight:g}" for weight in shown])
    top.set_xlabel(r"attention gap $a_G$: to the entry to copy, minus to another")


def _phases(axes: Axes, drawn: list[Curve]) -> None:
    at = next(curve for curve in drawn if curve.place == "at")
    places = sorted(gap for kind, gap, _ in at.points if kind == Kind.MINIMUM.value)
    for gap, name in zip(places, ("uniform\nattention", "copying"), strict=True):
        axes.annotate(name, (gap, axes.get_ylim()[0]), (0, 8), textcoords="offset points", ha="center", color="0.35")


def picture() -> Picture:
    """The figure at L = 32, V = 8 with unit ridges at T = 0, and the plotted numbers."""
    action = find(THEORY).action()
    drawn = curves(action, SETUP)
    setup = action.setup(SETUP)
    (weight,) = (observable.value for observable in action.observables if observable.name == "a_G")
    evaluate = emit(weight, (*action.variables, action.control.symbol, *setup.values), "numpy")
    numbers = (float(value) for value in setup.values.values())
    weights = evaluate(GAPS, drawn[0].control, *numbers)
    rows = [(c.control, s, a, f) for c in drawn for s, a, f in zip(GAPS, weights, c.action, strict=True)]
    return Picture("softmax-landscape", draw(drawn, weights), ("P", "s", "a_G", "F_minus_F_uniform"), rows)
