r"""Intervals with exact decimal ends, and two operators that prove a root of a square system in a box of them.

.. math:: K(X) = m - Y f(m) + (1 - Y J(X)) (X - m), \qquad N(X) = m - J(X)^{-1} f(m)

With m the middle of X, J(X) an enclosure of the Jacobian over X and Y any matrix: where K(X), or N(X), lies in the
interior of X, the box holds exactly one root, and the Jacobian is regular there. Sources: R. Krawczyk, Computing 4 (1969)
187; R. E. Moore, SIAM J. Numer. Anal. 14 (1977) 611.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from flint import arb, arb_mat, ctx, fmpq
from sympy import Rational

from numerics.balls import Ball

__all__ = [
    "Box",
    "EffortError",
    "Equations",
    "Interval",
    "ProofError",
    "ball_of",
    "balls",
    "box_around",
    "interval_newton",
    "krawczyk",
    "polished",
    "power_of_ten",
    "unit",
]

_STEPS = 60
_GUARD = 4  # digits of a middle beyond those of its radius
_FARTHEST = 20_000  # the largest power of ten that is read


class ProofError(ArithmeticError):
    """What was to be proven could not be, at the precision and with the effort allowed."""


class EffortError(ProofError):
    """It would take more steps than are allowed, at any precision; ``cell`` is where they did not end, if anywhere."""

    def __init__(self, message: str, cell: tuple[tuple[Ball, Ball], ...] = ()) -> None:
        super().__init__(message)
        self.cell = cell


@dataclass(frozen=True)
class Interval:
    """All numbers no farther than ``radius`` from ``middle``."""

    middle: Decimal
    radius: Decimal = Decimal(0)

    @classmethod
    def read(cls, middle: str, radius: str) -> Interval:
        """From decimal strings; raises `ValueError` where one is no number, or the radius is negative."""
        try:
            ends = Decimal(middle), Decimal(radius)
        except InvalidOperation:
            raise ValueError(f"{middle!r} +- {radius!r} is no interval of decimal numbers") from None
        if not all(end.is_finite() and abs(end.adjusted()) < _FARTHEST for end in ends) or ends[1] < 0:
            raise ValueError(f"{middle!r} +- {radius!r} is no interval of numbers of a size that can be read")
        return cls(*ends)

    @property
    def centre(self) -> Ball:
        """A ball that holds the middle, at the current precision of Arb."""
        return ball_of(self.middle)

    @property
    def ball(self) -> Ball:
        """A ball that holds the interval, at the current precision of Arb."""
        return arb(ball_of(self.middle), ball_of(self.radius))

    def surrounds(self, shift: Ball) -> bool:
        """Whether ``middle`` + ``shift`` is proven to lie inside, the ends excluded."""
        return bool(abs(shift) < ball_of(self.radius))

    @property
    def rational(self) -> Rational:
        return Rational(*self.middle.as_integer_ratio())

    def __str__(self) -> str:
        return f"{self.middle} +- {self.radius}" if self.radius else str(self.middle)


def power_of_ten(exponent: int) -> Decimal:
    return Decimal((0, (1,), exponent))


Box = tuple[Interval, ...]


def box_around(place: Sequence[Ball], digits: int) -> Box:
    """A box about the midpoints, whose radii are 10^-digits at most, and in the same proportion to all that are not zero."""
    zero = arb(10) ** (-2 * digits - 60)  # what rounding leaves of it
    powers = [None if abs(x.mid()) < zero else Decimal(x.mid().str(5, radius=False)).adjusted() for x in place]
    known = digits + max(0, *(power or 0 for power in powers))
    return tuple(
        Interval(Decimal(0), power_of_ten(-digits))
        if power is None
        else Interval(Decimal(x.mid().str(known + _GUARD, radius=False)), power_of_ten(power - known))
        for x, power in zip(place, powers, strict=True)
    )


Equations = Callable[[Sequence[Ball]], tuple[list[Ball], arb_mat]]
"""A map from unknowns to enclosures of the residuals and of their Jacobian."""


def ball_of(value: Decimal | Rational) -> Ball:
    """A ball that holds an exact number, at the current precision of Arb."""
    p, q = (value.p, value.q) if isinstance(value, Rational) else value.as_integer_ratio()
    return arb(fmpq(int(p), int(q)))


def balls(box: Box) -> list[Ball]:
    return [interval.ball for interval in box]


def unit(count: int) -> arb_mat:
    """The unit matrix."""
    return arb_mat(count, count, [int(i == j) for i in range(count) for j in range(count)])


def krawczyk(equations: Equations, box: Box) -> bool:
    """Whether the Krawczyk operator maps the box into its interior; Y is an inverse in the middle."""
    residual, inside = equations([interval.centre for interval in box])
    _, across = equations(balls(box))
    try:
        inverse = inside.mid().inv().mid()
    except ZeroDivisionError:
        return False
    spread = arb_mat(len(box), 1, [arb(0, ball_of(interval.radius)) for interval in box])
    shifts = (unit(len(box)) - inverse * across) * spread - inverse * arb_mat(len(box), 1, residual)
    return all(interval.surrounds(shift) for interval, shift in zip(box, shifts.entries(), strict=True))


def interval_newton(equations: Equations, box: Box) -> bool:
    """Whether Newton's operator maps the box into its interior; the linear system of balls is solved as it stands."""
    residual, _ = equations([interval.centre for interval in box])
    _, across = equations(balls(box))
    try:
        shifts = across.solve(arb_mat(len(box), 1, residual))
    except ZeroDivisionError:
        return False
    return all(interval.surrounds(shift) for interval, shift in zip(box, shifts.entries(), strict=True))


def polished(equations: Equations, start: Sequence[Ball]) -> list[Ball]:
    """Newton's method on midpoints, until it comes to rest at the current precision; raises `ProofError` where it does not."""
    place = [value.mid() for value in start]
    largest = max(map(abs, place))
    scales = [abs(value) if value != 0 else largest if largest != 0 else arb(1) for value in place]
    units = [scale * arb(2) ** (-3 * ctx.prec // 5) for scale in scales]
    for _ in range(_STEPS):
        residual, slope = equations(place)
        try:
            step = slope.mid().solve(arb_mat(len(place), 1, residual).mid()).mid().entries()
        except ZeroDivisionError:
            break
        if not all(shift.is_finite() for shift in step):
            break
        place = [(value - shift).mid() for value, shift in zip(place, step, strict=True)]
        if all(abs(shift) <= unit for shift, unit in zip(step, units, strict=True)):
            return place
    raise ProofError("Newton's method does not come to rest beside what was found: there is no regular root there")
