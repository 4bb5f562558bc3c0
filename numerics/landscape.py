r"""The landscape of an effective action at one setup: its derivatives, box, symmetries and names as numbers.

.. math:: (x, \lambda, \mu) \mapsto \partial_x^i \partial_\lambda^j \partial_\mu^k F

The numbers come in `mpmath` at the caller's precision, so that any magnitude works, and in NumPy for covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from flint import ctx
from mpmath import mpf
from numpy.typing import NDArray
from sympy import Expr, Float, Rational, S, Symbol

from derive.action import EffectiveAction, agree
from numerics.balls import Ball, ball, enclosure
from numerics.emit import emit
from numerics.jets import Index, Jet, derivatives, indices, jet
from numerics.newton import Matrix, Vector

if TYPE_CHECKING:
    from derive.action import Observable, Setup

__all__ = ["BoxError", "Coordinates", "Landscape", "close", "curvature", "gradient", "hessian", "same"]

Coordinates = tuple[mpf, ...]
"""Values of the order parameters."""

_BOX_DPS = 25
_WALL_BITS = 128


class BoxError(ValueError):
    """The declared bounds of an order parameter or of the window are not finite, or not in order."""


def gradient(values: Jet, n: int, extra: Index = ()) -> Vector:
    """The gradient in the ``n`` order parameters of the derivative ``extra``."""
    return [values[(i, *extra)] for i in range(n)]


def hessian(values: Jet, n: int, extra: Index = ()) -> Matrix:
    """The Hessian in the ``n`` order parameters of the derivative ``extra``."""
    return [[values[(i, j, *extra)] for j in range(n)] for i in range(n)]


def curvature(values: Jet, n: int, direction: Sequence[mpf], extra: Index = ()) -> Matrix:
    """The third derivatives of the derivative ``extra``, contracted once with ``direction``."""
    return [
        [sum((values[(i, j, k, *extra)] * direction[k] for k in range(n)), mpf(0)) for j in range(n)] for i in range(n)
    ]


def close(x: Sequence[mpf], y: Sequence[mpf], scales: Sequence[mpf], tolerance: str = "1e-9") -> bool:
    """Whether two points coincide to ``tolerance``, measured in ``scales``."""
    return all(abs(a - b) <= mpf(tolerance) * s for a, b, s in zip(x, y, scales, strict=True))


def same(x: Sequence[mpf], y: Sequence[mpf], scales: Sequence[mpf], tolerance: str = "1e-9") -> bool:
    """Whether two points coincide relative to their own size, however far below ``scales`` that is."""
    return all(
        abs(a - b) <= mpf(tolerance) * max(abs(a), abs(b)) + mpf("1e-20") * s
        for a, b, s in zip(x, y, scales, strict=True)
    )


@lru_cache(maxsize=256)
def _emitted(formulas: Expr | tuple[Expr, ...], arguments: tuple[Symbol, ...], target: str) -> Any:
    return emit(formulas, arguments, target)


@lru_cache(maxsize=64)
def _enclosure(
    value: Expr, variables: tuple[Symbol, ...], wanted: tuple[Index, ...], arguments: tuple[Symbol, ...]
) -> Callable[[Sequence[Ball]], tuple[Ball, ...]]:
    return enclosure(_emitted(derivatives(value, variables, wanted), arguments, "mpmath"))


def _real(value: Expr, what: str) -> mpf:
    """A constant expression as a number of `_BOX_DPS` digits."""
    number = value.evalf(_BOX_DPS) if not isinstance(value, Rational) else value
    if isinstance(number, Rational):
        with mpmath.workdps(_BOX_DPS):
            return mpf(int(number.p)) / int(number.q)
    if not isinstance(number, Float):
        raise BoxError(f"{what} is {number}, not a finite number")
    return mpmath.mp.make_mpf(number._mpf_)


@dataclass(frozen=True)
class Landscape:
    """An action with every parameter set; the control, and where there is one the size, stay free."""

    action: EffectiveAction
    setup: Setup

    def __post_init__(self) -> None:
        agree(self.action, self.setup, EffectiveAction)

    @property
    def n(self) -> int:
        """The number of order parameters."""
        return len(self.action.order_parameters)

    @cached_property
    def arguments(self) -> tuple[Symbol, ...]:
        return (*self.action.variables, self.action.control.symbol, *self.setup.values)

    @cached_property
    def variables(self) -> tuple[Symbol, ...]:
        """What derivatives are taken in: the order parameters, the control at ``n``, the size, if any, at ``n + 1``."""
        size = () if self.action.size is None else (self.action.size,)
        return (*self.action.variables, self.action.control.symbol, *size)

    @cached_property
    def _parameters(self) -> dict[int, tuple[mpf, ...]]:
        return {}

    def control(self) -> mpf:
        """The control of the setup at the current precision; raises `ValueError` where the setup holds none."""
        if self.setup.control is None:
            raise ValueError(f"{self.action.name} needs a value of the control {self.action.control.name}")
        return mpf(int(self.setup.control.p)) / int(self.setup.control.q)

    def real(self, value: Expr) -> mpf:
        """A rational at the current precision."""
        return mpf(int(value.p)) / int(value.q)

    def at(self, x: Sequence[mpf], control: mpf, size: mpf | None = None) -> list[mpf]:
        """The arguments of an emitted function at the current precision."""
        precision = mpmath.mp.prec
        if precision not in self._parameters:
            self._parameters[precision] = tuple(mpf(int(q.p)) / int(q.q) for q in self.setup.values.values())
        parameters = self._parameters[precision]
        if size is not None:
            parameters = tuple(
                size if symbol == self.action.size else value
                for symbol, value in zip(self.setup.values, parameters, strict=True)
            )
        return [*x, control, *parameters]

    def jet(self, *blocks: tuple[Index, int]) -> Callable[..., Jet]:
        """The map (x, control, size) to derivatives of the action; ``blocks`` as in `indices`."""
        evaluate = jet(self.action.value, self.variables, indices(self.n, *blocks), self.arguments)
        return lambda x, control, size=None: evaluate(self.at(x, control, size))

    def observable_jet(self, observable: Observable) -> Callable[..., Jet]:
        """The map (x, control) to the value of an observable and its derivatives in x and the control."""
        n = self.n
        evaluate = jet(observable.value, self.variables, indices(n, ((), 1), ((n,), 0)), self.arguments)
        return lambda x, control: evaluate(self.at(x, control))

    def level(self, observable: Observable, control: mpf) -> mpf:
        """The level of an observable at which it marks a crossover."""
        return mpf(_emitted(observable.crossover, self.arguments[self.n :], "mpmath")(*self.at((), control)))

    def observe(self, observable: Observable, x: Sequence[mpf], control: mpf) -> mpf:
        """The value of an observable; nan where it is undefined."""
        try:
            return mpf(_emitted(observable.value, self.arguments, "mpmath")(*self.at(x, control)))
        except (ArithmeticError, ValueError, TypeError):
            return mpf("nan")

    @cached_property
    def slopes(self) -> Callable[..., Jet]:
        """The map (x, control) to value, gradient and Hessian, and the first two's derivatives in the control."""
        return self.jet(*self.basic)

    @property
    def basic(self) -> tuple[tuple[Index, int], ...]:
        """The derivatives that branches and coexistences need."""
        return ((), 2), ((self.n,), 1)

    @property
    def cubic(self) -> tuple[tuple[Index, int], ...]:
        """The derivatives that folds and bifurcations need."""
        return ((), 3), ((self.n,), 2)

    @property
    def quartic(self) -> tuple[tuple[Index, int], ...]:
        """The derivatives that critical end points need, those in the size among them."""
        return ((), 4), ((self.n,), 3), ((self.n + 1,), 3)

    def field(self, control: mpf) -> Callable[[Sequence[NDArray[np.float64]]], tuple[NDArray[np.float64], ...]] | None:
        """Gradient and Hessian (upper triangle, row by row) over arrays; ``None`` if the parameters overflow a float."""
        fixed = self.at((), control)
        floats = [float(value) for value in fixed]
        if not all(np.isfinite(floats)) or any(f == 0 and value != 0 for f, value in zip(floats, fixed, strict=True)):
            return None
        formulas = derivatives(self.action.value, self.variables, indices(self.n, ((), 2))[1:])
        emitted = _emitted(formulas, self.arguments, "numpy")

        def evaluate(x: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
            with np.errstate(all="ignore"):
                return tuple(emitted(*x, *floats))

        return evaluate

    def balls(self, control: mpf, order: int) -> Callable[[Sequence[Ball]], tuple[Ball, ...]]:
        """Enclosures of the derivatives up to ``order`` (without the value) over boxes, at Arb's current precision."""
        enclose = _enclosure(self.action.value, self.variables, indices(self.n, ((), order))[1:], self.arguments)
        at, fractions = ball(control), [(int(q.p), int(q.q)) for q in self.setup.values.values()]
        return lambda x: enclose((*x, at, *(Ball(p) / q for p, q in fractions)))

    def window(self) -> tuple[mpf, mpf]:
        """The declared window of the control."""
        low, high = self._constants(self.action.window, mpf(1), "an end of the window")
        if not low < high:
            raise BoxError(
                f"the window of {self.action.control.name} is empty: {mpmath.nstr(low)} to {mpmath.nstr(high)}"
            )
        return low, high

    def interval(self, over: tuple[object, object]) -> tuple[mpf, mpf]:
        """The ends of a window of the control given by the caller, validated against its range."""
        low, high = (_real(self.action.control.validate(end), "an end of the window") for end in over)
        if not low < high:
            raise BoxError(
                f"the window of {self.action.control.name} is empty: {mpmath.nstr(low)} to {mpmath.nstr(high)}"
            )
        return low, high

    def box(self, control: mpf) -> tuple[tuple[mpf, mpf], ...]:
        """The bounds on stationary points at ``control``."""
        box = []
        for order in self.action.order_parameters:
            low, high = self._constants((order.lower, order.upper), control, f"a bound of {order.symbol}")
            if not low < high:
                raise BoxError(f"the box of {order.symbol} is empty: {mpmath.nstr(low)} to {mpmath.nstr(high)}")
            box.append((low, high))
        return tuple(box)

    def _constants(self, formulas: tuple[Expr, ...], control: mpf, what: str) -> tuple[mpf, ...]:
        """Formulas in the control and the parameters as finite numbers of `_BOX_DPS` digits."""
        formulas = tuple(map(S, formulas))
        with mpmath.workdps(_BOX_DPS):
            try:
                found = tuple(map(mpf, _emitted(formulas, self.arguments[self.n :], "mpmath")(*self.at((), control))))
            except (ArithmeticError, ValueError, TypeError):
                found = (mpmath.nan,)
        if all(map(mpmath.isfinite, found)):
            return found
        values: Mapping[Symbol, Any] = {**self.setup.values, self.action.control.symbol: Float(control, _BOX_DPS)}
        return tuple(_real(formula.subs(values), what) for formula in formulas)

    @cached_property
    def edge(self) -> Expr | None:
        """Where the domain of a single order parameter ends, if its lower bound is a wall: in parameters and control."""
        (order, *others) = self.action.order_parameters
        return order.lower if order.edge and not others else None

    def lower(self, control: mpf) -> Coordinates:
        """The lower bounds of the order parameters at the current precision."""
        bounds = tuple(S(order.lower) for order in self.action.order_parameters)
        return tuple(mpf(v) for v in _emitted(bounds, self.arguments[self.n :], "mpmath")(*self.at((), control)))

    def wall(self, control: mpf) -> mpf | None:
        """The place of the wall if the action is least among its neighbours there, by proven signs; else ``None``.

        Where its slope vanishes, or is not known, the sign a little inside is what counts.
        """
        if self.edge is None:
            return None
        ((place,), ((low, high),)) = self.lower(control), self.box(control)
        slopes = self.balls(control, 1)
        with ctx.workprec(2 * mpmath.mp.prec + _WALL_BITS):
            here = slopes((ball(place),))[0]
            if here < 0 or here > 0:
                return place if here > 0 else None
            inside = ball(place) + ball(high - low) * Ball(2) ** -_WALL_BITS
            return place if slopes((inside,))[0] > 0 else None

    def rests_on_wall(self, control: mpf) -> bool:
        """Whether the wall is a stationary point, as far as can be proven."""
        with ctx.workprec(_WALL_BITS):
            return bool(self.balls(control, 1)([ball(place) for place in self.lower(control)])[0].contains(0))

    def beyond_wall(self, x: Sequence[mpf], control: mpf, scales: Sequence[mpf]) -> bool:
        """Whether a point lies beyond a wall, where the action means nothing."""
        orders = self.action.order_parameters
        return any(order.edge for order in orders) and any(
            order.edge and value < wall - mpf("1e-9") * scale
            for order, value, wall, scale in zip(orders, x, self.lower(control), scales, strict=True)
        )

    def falls_beyond(self, control: mpf) -> list[str]:
        """The bounds of a single order parameter beyond which the action falls, by proven signs of its slope there."""
        if self.n > 1:
            return []
        ((low, high),), slopes = self.box(control), self.balls(control, 1)
        with ctx.workprec(_WALL_BITS):
            below, above = (slopes((ball(end),))[0] for end in (low, high))
        return ["lower"] * bool(below > 0 and self.edge is None) + ["upper"] * bool(above < 0)

    def walled(self, control: mpf) -> mpf | None:
        """The action on the wall where that is a minimum; ``None`` where it is none or not finite."""
        place = self.wall(control)
        if place is None:
            return None
        try:
            value = self._valued((place,), control)
        except (ArithmeticError, ValueError, TypeError):
            return None
        return value if mpmath.isfinite(value) else None

    def _valued(self, x: Sequence[mpf], control: mpf) -> mpf:
        return mpf(_emitted(self.action.value, self.arguments, "mpmath")(*self.at(x, control)))

    def images(self, x: Sequence[mpf], control: mpf) -> list[tuple[str, Coordinates]]:
        """The image of ``x`` under each declared symmetry, with its name."""
        return [
            (symmetry.name, tuple(mpf(v) for v in self._map(index)(*self.at(x, control))))
            for index, symmetry in enumerate(self.action.symmetries)
        ]

    def _map(self, index: int) -> Any:
        image = self.action.symmetries[index].image
        return _emitted(tuple(image.get(v, v) for v in self.action.variables), self.arguments, "mpmath")

    def orbit(self, x: Coordinates, control: mpf, scales: Sequence[mpf]) -> list[Coordinates]:
        """All symmetric images of ``x``, itself first."""
        found, pending = [x], [x]
        while pending and len(found) < 64:
            for _, image in self.images(pending.pop(), control):
                if not any(same(image, other, scales) for other in found):
                    found.append(image)
                    pending.append(image)
        return found
