r"""Newton's method inside a cell, in coordinates that suit any scale.

.. math:: x_i = \pm e^{t_i}, \qquad \partial_{t_i} F = x_i\, \partial_{x_i} F

A cell is what a cover has narrowed a stationary point down to; only a root inside it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
from flint import ctx
from mpmath import mpf

from numerics.balls import Ball
from numerics.landscape import Coordinates, Landscape, gradient, hessian, same
from numerics.newton import Matrix, Vector, negative_eigenvalues, newton
from numerics.points import Status

__all__ = [
    "APART",
    "COVER_DPS",
    "LEAST_BITS",
    "MOST_BITS",
    "Cell",
    "Chart",
    "Place",
    "Root",
    "Side",
    "bracket",
    "signed",
    "solved",
]

COVER_DPS = 25
APART = "1e-18"
"""Roots whose coordinates differ by less, relative to their size, are one."""
LEAST_BITS, MOST_BITS = 128, 16384

Side = tuple[Ball, Ball]
Cell = tuple[Side, ...]
Place = tuple[Ball, ...]


@dataclass(frozen=True)
class Root:
    """A stationary point; ``sizes`` say how far it is from what is around it, ``index`` is ``None`` if degenerate.

    Below ``dps`` digits the gradient is noise there.
    """

    x: Coordinates
    sizes: tuple[mpf, ...]
    index: int | None
    dps: int = COVER_DPS


def signed(values: Callable[[], Place], bits: int = LEAST_BITS, most: int = MOST_BITS) -> Place:
    """Numbers to a precision that proves their signs; what is zero, exactly or to the last precision, counts as positive.

    Those are the signs of the gradient moved by an infinitesimal, so that no root ever lies on the side of a cell.
    """
    while True:
        with ctx.workprec(bits):
            found = values()
        if bits >= most or all(value.rel_accuracy_bits() > 16 or value.is_zero() for value in found):
            return found
        bits *= 4


def bracket(function: Callable[[mpf], mpf], low: mpf, high: mpf, resolution: mpf) -> mpf:
    """The root between ends of opposite sign: regula falsi (Illinois), and bisection every fourth time.

    Where rounding makes the values at the ends the same, all that is left is to bisect.
    """
    old, new = low, high
    f_old, f_new = function(old), function(new)
    for iteration in range(400):
        if f_new == 0 or f_old == 0:
            return new if f_new == 0 else old
        halve = iteration % 4 == 3 or f_new == f_old
        step = (old - new) / 2 if halve else -f_new * (new - old) / (f_new - f_old)
        # A short step may as well come from ends of very different size: step across the root, if it is one.
        step = step if abs(step) >= resolution else mpmath.sign(old - new) * resolution
        value = function(new + step)
        if (value < 0) != (f_new < 0):
            old, f_old = new, f_new
        else:
            f_old /= 2
        new, f_new = new + step, value
        if abs(new - old) <= resolution * mpf("1.01"):
            break
    return new


@dataclass(frozen=True)
class Chart:
    """Coordinates in a cell: logarithms, in which power laws and the valleys they form are straight, unless it holds zero."""

    cell: tuple[tuple[mpf, mpf], ...]

    @property
    def signs(self) -> list[int]:
        return [1 if a > 0 else -1 if b < 0 else 0 for a, b in self.cell]

    @property
    def units(self) -> list[mpf]:
        return [mpf(1) if s else max(abs(a), abs(b)) for (a, b), s in zip(self.cell, self.signs, strict=True)]

    def point(self, t: Sequence[mpf]) -> Coordinates:
        return tuple(s * mpmath.exp(v) if s else v for v, s in zip(t, self.signs, strict=True))

    def inverse(self, x: Sequence[mpf]) -> Coordinates:
        return tuple(mpmath.log(s * v) if s else v for v, s in zip(x, self.signs, strict=True))

    @property
    def centre(self) -> Coordinates:
        low, high = (self.inverse([side[end] for side in self.cell]) for end in (0, 1))
        return tuple((a + b) / 2 for a, b in zip(low, high, strict=True))

    def holds(self, t: Sequence[mpf]) -> bool:
        low, high = (self.inverse([side[end] for side in self.cell]) for end in (0, 1))
        return all(abs(2 * v - a - b) <= abs(b - a) * mpf("1.001") for v, a, b in zip(t, low, high, strict=True))

    def system(self, landscape: Landscape, control: mpf) -> Callable[[Sequence[mpf]], tuple[Vector, Matrix]]:
        """Gradient and Hessian of the action in these coordinates."""
        n, signs, slopes = landscape.n, self.signs, landscape.jet(((), 2))

        def system(t: Sequence[mpf]) -> tuple[Vector, Matrix]:
            x = self.point(t)
            jet = slopes(x, control)
            rates = [v if s else mpf(1) for v, s in zip(x, signs, strict=True)]
            slope = [g * r for g, r in zip(gradient(jet, n), rates, strict=True)]
            bend = [
                [h * r * q for h, r in zip(row, rates, strict=True)]
                for row, q in zip(hessian(jet, n), rates, strict=True)
            ]
            for i, s in enumerate(signs):
                bend[i][i] += slope[i] if s else 0
            return slope, bend

        return system


def solved(landscape: Landscape, control: mpf, chart: Chart, start: Sequence[mpf], dps: int) -> Root | None:
    """Newton's method from ``start`` at ``dps`` digits or the current precision, whichever is higher.

    A root if it converges in the cell and more digits change nothing.
    """
    system, units = chart.system(landscape, control), chart.units
    # A step along a valley that is no axis may lead far out of a thin cell around zero, and the next one back.
    reach = [
        unit if s else high - low
        for unit, s, (low, high) in zip(units, chart.signs, landscape.box(control), strict=True)
    ]
    least = max(dps, mpmath.mp.dps)
    for digits in (least, 3 * least):
        with mpmath.workdps(digits):
            run = newton(system, start, units, reach)
        if run.status is Status.OK:
            with mpmath.workdps(2 * digits):
                again = newton(system, run.values, units)
                x = chart.point(again.values)
                sizes = tuple(abs(v) or unit for v, unit in zip(x, units, strict=True))
                if again.status is Status.OK and same(chart.point(run.values), x, sizes) and chart.holds(again.values):
                    return Root(
                        x, sizes, negative_eigenvalues(hessian(landscape.slopes(x, control), landscape.n)), 2 * digits
                    )
    if run.status is Status.DEGENERATE and chart.holds(run.values):
        x = chart.point(run.values)
        return Root(x, tuple(abs(v) or unit for v, unit in zip(x, units, strict=True)), None)
    return None
