r"""All stationary points of a low-dimensional action, classified, to any number of digits.

.. math:: \nabla F(x) = 0

`numerics.cover` finds them; here each is polished until two working precisions agree, its Hessian and the observables
are evaluated with error bounds, and the points are named and ordered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mpmath
from mpmath import mpf

from numerics.cell import COVER_DPS, bracket
from numerics.cover import Cover, Group, cover, groups
from numerics.emit.runtime import UndefinedError
from numerics.jets import Jet
from numerics.landscape import BoxError, Landscape, close, gradient, hessian
from numerics.newton import Solution, System, eigen, refine
from numerics.phases import names
from numerics.points import Kind, Number, Point, Points, Stability, Status

if TYPE_CHECKING:
    from sympy import Rational

    from derive.action import EffectiveAction, Setup

__all__ = ["DOUBT", "WALL", "Cover", "Group"]
__all__ += ["bound_notes", "bracket", "cover", "groups", "measure", "minima", "working_digits"]

WALL = "wall"
"""The name of a minimum on the wall of the domain that belongs to no phase."""
DOUBT = "it is not proved that these are all stationary points: "
_MOST_DPS = 6400
_GUARDS = (0, 15, 60, 240)
_MOST_FOLD = 10


def working_digits(landscape: Landscape, controls: Sequence[mpf]) -> int:
    """The digits, at least `COVER_DPS`, at which cancellation leaves the gradient exact on the scale of the box."""
    dps = COVER_DPS
    while dps < _MOST_DPS and max(_noise(landscape, control, dps) for control in controls) > mpf("1e-12"):
        dps *= 2
    return dps


def _written_digits(value: Rational | None) -> int:
    """The digits of a number as it is written, apart from its magnitude: they tell it from its neighbours."""
    return 0 if value is None else sum(len(str(part).rstrip("0")) for part in (value.p, value.q))


def _noise(landscape: Landscape, control: mpf, dps: int) -> mpf:
    """The largest relative error that ``dps`` digits make in the gradient, over a few places in the box.

    Raises `BoxError` where the action has no value there.
    """
    with mpmath.workdps(COVER_DPS):
        box = landscape.box(control)
    worst = mpf(0)
    for fraction in ("0.97", "0.61", "0.31", "0.07"):
        x = [low + (high - low) * mpf(fraction) for low, high in box]
        try:
            with mpmath.workdps(dps):
                coarse = landscape.slopes(x, control)
            with mpmath.workdps(2 * dps):
                fine = landscape.slopes(x, control)
        except UndefinedError as error:
            names = (*landscape.action.variables, landscape.action.control.name)
            place = ", ".join(f"{name} = {mpmath.nstr(v, 6)}" for name, v in zip(names, (*x, control), strict=True))
            raise BoxError(f"{error}; at {place}, between the declared bounds, where the action must be real") from None
        for i in range(len(box)):
            size = abs(fine[(i,)]) + max(abs(fine[i, j]) * (b - a) for j, (a, b) in enumerate(box))
            worst = max(worst, abs(coarse[(i,)] - fine[(i,)]) / size if size else mpf(0))
    return worst


@dataclass(frozen=True)
class _Solved:
    """A polished stationary point and what is evaluated there."""

    group: Group
    kind: Kind
    order_parameters: tuple[Number, ...]
    action: Number
    hessian: tuple[Number, ...]
    observables: dict[str, Number]

    @property
    def reached(self) -> bool:
        numbers = (*self.order_parameters, self.action, *self.hessian, *self.observables.values())
        return all(number.reached for number in numbers)

    @property
    def of_its_index(self) -> bool:
        """Whether the Hessian here has as many negative eigenvalues as the cover says."""
        return (
            not self.hessian
            or self.group.degenerate
            or sum(number.value < 0 for number in self.hessian) == self.group.index
        )

    def without_noise(self) -> _Solved:
        """What has sunk below its own error however many digits were carried is zero, as far as this can tell."""
        action, *bends = (_exact_zero(number) for number in (self.action, *self.hessian))
        observables = {name: _exact_zero(number) for name, number in self.observables.items()}
        return replace(self, action=action, hessian=tuple(bends), observables=observables)


def _exact_zero(number: Number) -> Number:
    tiny = _vanishes(number) and number.error < mpf(10) ** (-_GUARDS[-1])
    return Number(mpf(0), mpf(0), number.digits) if tiny else number


def _solved(landscape: Landscape, group: Group, digits: int) -> _Solved:
    """Polish and evaluate; more digits are carried along until what is evaluated has the digits asked for, too."""
    for guard in _GUARDS:
        solution = _polish(landscape, group, digits + guard)
        found = _evaluated(landscape, group, solution, digits)
        if found.reached or solution.status is not Status.OK:
            return found
    return found.without_noise()


def _polish(landscape: Landscape, group: Group, digits: int) -> Solution:
    n = landscape.n

    def system(x: Sequence[mpf]) -> tuple[list[mpf], list[list[mpf]]]:
        jet = landscape.slopes(x, landscape.control())
        return gradient(jet, n), hessian(jet, n)

    if group.degenerate and n == 1:
        return _multiple_root(landscape, group, digits)
    solution = refine(system, group.x, digits, group.sizes, group.dps)
    if solution.status is Status.DEGENERATE:  # the steps shrink only linearly: what is left is a few of them
        return replace(solution, errors=tuple(_MOST_FOLD * error for error in solution.errors))
    return solution


def _multiple_root(landscape: Landscape, group: Group, digits: int) -> Solution:
    """An m-fold root of F' as a simple root of its (m-1)-th derivative at which the lower ones vanish, m <= 10."""
    x, scales = group.x, group.sizes
    for order in range(2, _MOST_FOLD + 2):
        orders = landscape.jet(((), 6 if order < 6 else _MOST_FOLD + 2))
        solution = refine(_derivative(landscape, order, orders), x, digits, scales, group.dps)
        if solution.found and close(solution.values, x, scales, "1e-3"):
            with mpmath.workdps(solution.dps):
                jet = orders(solution.values, landscape.control())
                sizes = [abs(jet[(0,) * k]) * scales[0] ** k for k in range(1, order + 2)]
                if max(sizes[: order - 1]) <= mpf(10) ** (-solution.dps // 2) * max(sizes):
                    return solution
    return Solution(x, tuple(scale * mpf("1e-3") for scale in scales), Status.DEGENERATE, COVER_DPS)


def _derivative(landscape: Landscape, order: int, orders: Callable[..., Jet]) -> System:
    def system(x: Sequence[mpf]) -> tuple[list[mpf], list[list[mpf]]]:
        jet = orders(x, landscape.control())
        return [jet[(0,) * order]], [[jet[(0,) * (order + 1)]]]

    return system


def measure(
    function: Callable[..., mpf], arguments: Sequence[mpf], errors: Sequence[mpf], dps: int, digits: int
) -> Number:
    """``function(*arguments)`` with an error bound: what moving the arguments by their errors and fewer digits change.

    Where it is not defined that far from them, nothing is known of it.
    """
    with mpmath.workdps(dps):
        value = function(*arguments)
        moved = [a + e for a, e in zip(arguments, errors, strict=True)]
    with mpmath.workdps(dps - 5):
        try:
            other = function(*(+argument for argument in moved))
        except UndefinedError:
            return Number(value, mpmath.inf, digits)
    with mpmath.workdps(dps):
        return Number(value, 2 * abs(value - other), digits)


def _evaluated(landscape: Landscape, group: Group, solution: Solution, digits: int) -> _Solved:
    x, errors, dps, n = solution.values, solution.errors, solution.dps, landscape.n

    def spectrum(place: int) -> Callable[..., mpf]:
        return lambda *y: eigen(hessian(landscape.slopes(y, landscape.control()), n))[0][place]

    def at(function: Callable[..., mpf]) -> Number:
        return measure(function, x, errors, dps, digits)

    eigenvalues = tuple(at(spectrum(place)) for place in range(n))
    observables = {
        observable.name: at(lambda *y, observable=observable: landscape.observe(observable, y, landscape.control()))
        for observable in landscape.action.observables
    }
    return _Solved(
        group,
        _kind(eigenvalues, group.degenerate),
        tuple(Number(value, error, digits) for value, error in zip(x, errors, strict=True)),
        at(lambda *y: landscape.slopes(y, landscape.control())[()]),
        tuple(Number(mpf(0), mpf(0), digits) if group.degenerate and _vanishes(e) else e for e in eigenvalues),
        observables,
    )


def _vanishes(number: Number) -> bool:
    return bool(abs(number.value) <= 10 * number.error)


def _kind(eigenvalues: Sequence[Number], degenerate: bool) -> Kind:
    if degenerate:
        return Kind.DEGENERATE
    negative = sum(number.value < 0 for number in eigenvalues)
    return Kind.MINIMUM if negative == 0 else Kind.MAXIMUM if negative == len(eigenvalues) else Kind.SADDLE


def minima(
    action: EffectiveAction, setup: Setup, digits: int = 15, progress: Callable[[str], None] | None = None
) -> Points:
    """All stationary points of ``action`` at ``setup.control`` to ``digits`` digits, minima first, lowest action first.

    Symmetric copies are one point. Raises `ValueError` if the setup holds no control or ``digits`` is not positive,
    `BoxError` for an unbounded box.
    """
    if not isinstance(digits, int) or digits < 1:
        raise ValueError(f"digits = {digits}: the number of significant digits must be a whole number from 1 on")
    begin = time.perf_counter()
    landscape = Landscape(action, setup)
    if progress is not None:
        progress(f"covering the box at {action.control.name} = {setup.control}")
    working = working_digits(landscape, (landscape.control(),))
    with mpmath.workdps(max(working, COVER_DPS + _written_digits(setup.control))):
        covered = cover(landscape, landscape.control())
        found = groups(landscape, covered)
        wall = landscape.wall(landscape.control())
    solved = _distinct([_solved(landscape, group, digits) for group in found])
    if wall is not None and not any(point.group.x == (wall,) for point in solved):
        solved.append(_on_wall(landscape, wall, digits))
    points = _points(landscape, covered, solved)
    notes = _notes(landscape, covered, solved)
    return Points(points, _status(covered, solved), notes, time.perf_counter() - begin)


def _on_wall(landscape: Landscape, wall: mpf, digits: int) -> _Solved:
    """The minimum on the wall of the domain, which no slope needs to vanish at: the Hessian says nothing there."""
    dps = digits + 2 * _GUARDS[1]
    with mpmath.workdps(dps):
        x = landscape.lower(landscape.control())
    group = Group((wall,), (abs(wall),), dps, None, 1, ())

    def at(function: Callable[..., mpf]) -> Number:
        return measure(function, x, (mpf(0),), dps, digits)

    observables = {
        observable.name: at(lambda *y, observable=observable: landscape.observe(observable, y, landscape.control()))
        for observable in landscape.action.observables
    }
    action = at(lambda *y: landscape.walled(landscape.control()))
    return _Solved(group, Kind.MINIMUM, (Number(x[0], mpf(0), digits),), action, (), observables)


def _distinct(solved: Sequence[_Solved]) -> list[_Solved]:
    """Without points that coincide to within their errors, as several starts beside a degenerate one may end."""
    found: list[_Solved] = []
    for point in solved:
        if not (point.group.degenerate and any(_coincide(point, other) for other in found)):
            found.append(point)
    return found


def _coincide(one: _Solved, other: _Solved) -> bool:
    pairs = zip(one.order_parameters, other.order_parameters, strict=True)
    return all(abs(a.value - b.value) <= a.error + b.error for a, b in pairs)


def _status(covered: Cover, solved: Sequence[_Solved]) -> Status:
    if covered.complete is False or any(point.reached and not point.of_its_index for point in solved):
        return Status.COVER
    if not covered.isolated or any(root.index is None for root in covered.roots):
        return Status.DEGENERATE
    return Status.OK if all(point.reached for point in solved) else Status.DIGITS


def _points(landscape: Landscape, covered: Cover, solved: Sequence[_Solved]) -> tuple[Point, ...]:
    kinds = [Kind.MINIMUM, Kind.DEGENERATE, Kind.SADDLE, Kind.MAXIMUM]
    ranked = sorted(solved, key=lambda point: (kinds.index(point.kind), point.action.value))
    labels = names(landscape, covered.control, [point.group.x for point in ranked], [point.kind for point in ranked])
    pairs = zip(labels, ranked, strict=True)
    labels = [WALL if label == point.kind == Kind.MINIMUM and not point.hessian else label for label, point in pairs]
    return tuple(
        Point(
            label,
            point.kind,
            _stability(point, ranked[0]),
            dict(zip((v.name for v in landscape.action.variables), point.order_parameters, strict=True)),
            point.action,
            point.hessian,
            point.observables,
            point.group.copies,
            point.group.symmetry,
        )
        for label, point in zip(labels, ranked, strict=True)
    )


def _stability(point: _Solved, lowest: _Solved) -> Stability:
    if point.kind is not Kind.MINIMUM:
        return Stability.UNSTABLE
    with mpmath.workprec(max(53, point.action.value.bc, lowest.action.value.bc)):
        equal = point.action.value - lowest.action.value <= point.action.error + lowest.action.error
    return Stability.STABLE if equal else Stability.METASTABLE


def _notes(landscape: Landscape, covered: Cover, solved: Sequence[_Solved]) -> tuple[str, ...]:
    (symbol, *_), walls = landscape.action.variables, [point.group.x[0] for point in solved if not point.hessian]
    notes = [f"{symbol} = {mpmath.nstr(wall)} is a minimum on the wall of the domain" for wall in walls]
    if not covered.isolated:
        notes.append(
            "stationary points fill a curve or an interval, as a continuous symmetry makes them; those are not listed"
        )
    elif covered.complete is None:
        notes.append(DOUBT + _doubt(landscape, covered))
    elif covered.complete is False and landscape.n == 1:
        notes.append(
            f"the gradient changes its sign where it has no finite value, as that of exp(-1/{symbol}^2) at {symbol} = 0: "
            "the stationary point there is not listed"
        )
    places = [(point.group.x, covered.control) for point in solved]
    return (*notes, *bound_notes(landscape, [covered.control], places))


def bound_notes(
    landscape: Landscape, controls: Sequence[mpf], places: Sequence[tuple[Sequence[mpf], mpf]]
) -> list[str]:
    """What contradicts, at ``controls`` or at points and their controls, that all states lie between the declared bounds."""
    notes, variables, driver = [], landscape.action.variables, landscape.action.control.name
    falling = [(side, control) for control in controls for side in landscape.falls_beyond(control)]
    for side, control in dict(reversed(falling)).items():
        notes.append(
            f"the action falls beyond the {side} bound of {variables[0]}, at {driver} = {mpmath.nstr(control, 6)} for one: "
            "what is called lowest is the lowest between the bounds only"
        )
    for x, control in places:
        for symbol, value, (low, high) in zip(variables, x, landscape.box(control), strict=True):
            if max(low - value, value - high) > mpf("1e-12") * (high - low):
                notes.append(
                    f"{symbol} = {mpmath.nstr(value, 6)}, at {driver} = {mpmath.nstr(control, 6)}, lies outside of the "
                    f"declared bounds of {symbol}, where not all points are sought: widen them"
                )
    return list(dict.fromkeys(notes))


def _doubt(landscape: Landscape, covered: Cover) -> str:
    if any(root.index is None for root in covered.roots):
        return "the degree of the gradient does not count degenerate ones"
    if landscape.n > 2:
        return "more than two order parameters are searched on a grid"
    return "the gradient could not be bounded on small enough cells"
