r"""Transitions at many setups together: the systems of one setup, over arrays, from neighbours that are solved already.

.. math:: G(y_k; p_k) = 0, \qquad k = 1, \ldots, N

A few setups, far apart, are solved by `numerics.transitions`; all others start from what is interpolated between their
neighbours, are iterated together, and become neighbours in turn. The equations are those of `numerics.systems`, the same
functions with arrays for numbers. What comes out is confirmed: two precisions agree; the stationary points between all
transitions are as many as at the neighbours, by the signs of the slope on a grid; and no point of the grid lies below the
phases. What is not confirmed is solved by itself, with its results as new neighbours.

Pros: a setup costs milliseconds, and its digits are those of `numerics.transitions`. Cons: for one order parameter, twelve
digits and formulas whose constants a float holds; other problems, and transitions at walls, are solved one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from sympy import NumberSymbol, Rational

from derive.action import SetupError
from numerics.emit import emit
from numerics.jets import Index, indices, jet
from numerics.landscape import Landscape
from numerics.newton import System, refine
from numerics.phases import names
from numerics.points import Kind, Number, PhasePoint, Status, Transition, TransitionKind, Transitions
from numerics.stationary import measure
from numerics.systems import coexistence, critical_end, fold, steepest
from numerics.transitions import transitions

if TYPE_CHECKING:
    from derive.action import EffectiveAction, Setup

__all__ = ["suits", "transitions_over"]

Array = NDArray[Any]

_DIGITS, _BITS = 12, 60
_SEEDS, _MORE = 9, 3
_NEIGHBOURS = 12
_STEPS = 30
_GRID = np.linspace(0, 1, 96) ** 1.5
_BESIDE = np.linspace(-0.6, 1.6, 24)
_SHARES = (0.02, 0.5, 0.98)
_ELSEWHERE = (0.3, 0.6, 0.85, 0.97)
_CONVERGED, _LEVEL = 1e-9, 1e-9


@dataclass(frozen=True)
class _Form:
    """A kind of transition: its system, and where the points of its phases, the control and the size stand in it."""

    system: Callable[[Landscape], System]
    phases: tuple[int, ...]
    control: int
    size: int | None = None


_FORMS = {
    TransitionKind.SPINODAL: _Form(lambda landscape: fold(landscape, [mpf(1)]), (0,), 1),
    TransitionKind.COEXISTENCE: _Form(coexistence, (0, 1), 2),
    TransitionKind.CROSSOVER: _Form(steepest, (0,), 1),
    TransitionKind.CRITICAL_END_POINT: _Form(lambda landscape: critical_end(landscape, [mpf(1)]), (0,), 1, 2),
}


class _Numbers(np.ndarray[Any, Any]):
    """An array in the place of one number: what it meets, an `mpf` too, becomes of its own precision."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = (float(x) if isinstance(x, mpf) else np.asarray(x) for x in inputs)
        return getattr(ufunc, method)(*plain, **kwargs).view(_Numbers)


@dataclass(frozen=True)
class _Field(Landscape):
    """The landscapes of many setups of one action: a row of numbers for each parameter."""

    parameters: Array

    def at(self, x: Sequence[Any], control: Any, size: Any = None) -> list[Any]:
        places = zip(self.setup.values, self.parameters, strict=True)
        return [*x, control, *(row if size is None or s != self.action.size else size for s, row in places)]

    def jet(self, *blocks: tuple[Index, int]) -> Callable[..., Any]:
        wanted = indices(self.n, *blocks)
        evaluate = jet(self.action.value, self.variables, wanted, self.arguments, "numpy")

        def values(x: Sequence[Any], control: Any, size: Any = None) -> dict[Index, Any]:
            with np.errstate(all="ignore"):
                found = evaluate(self.at(x, control, size))
            return {index: value.view(_Numbers) for index, value in found.items()}

        return values

    def ends(self, *bounds: Any) -> list[Array]:
        """Bounds as functions of the control, last, and the parameters."""
        *expressions, control = bounds
        with np.errstate(all="ignore"):
            found = emit(tuple(expressions), self.arguments[self.n :], "numpy")(control, *self.parameters)
        return [np.asarray(end, dtype=float) for end in found]

    def sized(self, size: Array) -> _Field:
        """With another size at every setup."""
        rows = zip(self.setup.values, self.parameters, strict=True)
        return replace(self, parameters=np.array([size if s == self.action.size else row for s, row in rows]))

    def grid(self, points: Sequence[Array], control: Array) -> Array:
        """Values of the order parameter, a column for each setup: over the box, and closer around ``points``."""
        (order,) = self.action.order_parameters
        low, high = self.ends(order.lower, order.upper, control)
        first, last = np.min(points, axis=0), np.max(points, axis=0)
        width = np.maximum(last - first, np.abs(last) / 10)
        beside = first + _BESIDE[:, None] * width
        return np.sort(np.clip(np.vstack([low + _GRID[:, None] * (high - low), beside]), low, high), axis=0)

    def slope(self, x: Array, control: Array) -> Array:
        return np.asarray(self.jet(((0,), 0))([x], control)[(0,)])

    def lowest(self, points: Sequence[Array], control: Array) -> tuple[Array, Array]:
        """The lowest action on the grid, and the range of the actions on it."""
        values = np.asarray(self.jet(((), 0))([self.grid(points, control)], control)[()])
        return values.min(axis=0), np.ptp(values, axis=0)

    def only(self, which: Array, precision: type[np.floating[Any]] = np.float64) -> _Field:
        return replace(self, parameters=self.parameters[:, which].astype(precision))


@dataclass(frozen=True)
class _Family:
    """Setups with the same transitions: what these are, and the numbers of all unknowns of all of them at each setup."""

    like: tuple[Transition, ...]
    counts: tuple[int, ...]
    members: dict[int, Array]


def transitions_over(
    action: EffectiveAction,
    setups: Sequence[Setup],
    digits: int = 10,
    progress: Callable[[int], object] | None = None,
) -> list[Transitions]:
    """The transitions of ``action`` at each of ``setups`` along its control, as `transitions` finds them in its window.

    Every number has the digits that `transitions` gives it, wherever its iteration began. ``progress`` gets the number of
    setups that were solved. Raises as `transitions` does.
    """
    if any(setup.control is not None for setup in setups):
        raise SetupError(f"{action.control.name} is what transitions are sought along; leave it out of the setups")
    if not setups:
        return []
    place = _places(setups)
    if not (suits(action, digits) and np.isfinite(place).all()):
        return [_alone(action, setup, digits, progress) for setup in setups]
    field = _field(action, setups)
    found: dict[int, Transitions] = {}
    families: dict[Any, _Family] = {}
    while len(found) < len(setups):
        for k in _far_apart(place, found, _MORE if found else _SEEDS):
            found[k] = _alone(action, setups[k], digits, progress)
            _join(families, field, k, found[k])
        while new := _carried(field, place, setups, families, found, digits):
            found |= new
            if progress is not None:
                progress(len(new))
    return [found[k] for k in range(len(setups))]


def suits(action: EffectiveAction, digits: int) -> bool:
    """Whether arrays can do it: one order parameter, no constant that has to be rounded, a second precision on this machine."""
    constants = action.value.atoms(Rational, NumberSymbol)
    exact = all(isinstance(c, Rational) and int(c.q) & (int(c.q) - 1) == 0 for c in constants)
    if len(action.order_parameters) > 1 or not exact or digits > _DIGITS or np.finfo(np.longdouble).nmant < _BITS:
        return False
    arguments = (*action.variables, action.control.symbol, *(parameter.symbol for parameter in action.parameters))
    return "scipy" not in emit(action.value, arguments).source  # which has no second precision


def _alone(action: EffectiveAction, setup: Setup, digits: int, progress: Callable[[int], object] | None) -> Transitions:
    found = transitions(action, setup, digits=digits)
    if progress is not None:
        progress(1)
    return found


def _field(action: EffectiveAction, setups: Sequence[Setup]) -> _Field:
    rows = [[np.longdouble(int(v.p)) / np.longdouble(int(v.q)) for v in setup.values.values()] for setup in setups]
    return _Field(action, setups[0], np.array(rows, dtype=np.longdouble).T)


def _places(setups: Sequence[Setup]) -> Array:
    """Where the setups lie among each other: a row each, by the logarithms of the parameters that vary."""
    table = np.array([[float(value) for value in setup.values.values()] for setup in setups])
    table = np.where((table > 0).all(axis=0), np.log(np.where(table > 0, table, 1)), table)
    table = table[:, np.ptp(table, axis=0) > 0]
    return (table - table.min(axis=0)) / np.ptp(table, axis=0) if table.shape[1] else np.zeros((len(setups), 1))


def _far_apart(place: Array, found: Iterable[int], count: int) -> list[int]:
    """Of the setups that are not found yet, those that are farthest from all others."""
    done = list(found)
    distance = np.full(len(place), np.inf)
    for k in done:
        distance = np.minimum(distance, np.linalg.norm(place - place[k], axis=1))
    distance[done] = -1
    chosen: list[int] = []
    for _ in range(min(count, len(place) - len(done))):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(place - place[chosen[-1]], axis=1))
        distance[[*done, *chosen]] = -1
    return chosen


def _join(families: dict[Any, _Family], field: _Field, k: int, found: Transitions) -> None:
    """Put a setup that was solved by itself into its family, if arrays can follow it."""
    steep = [entry for entry in found if entry.kind is TransitionKind.CROSSOVER and not _is_steepest(entry)]
    if found.status is not Status.OK or steep or not all(_followed(entry) for entry in found):
        return
    here = field.only(np.array([k]))
    unknowns = [_unknowns(here, entry) for entry in found]
    counts = _counts(here, found.entries, unknowns)
    if counts is None:
        return
    key = tuple((entry.kind, entry.order, _labels(entry)) for entry in found), tuple(counts[:, 0])
    family = families.setdefault(key, _Family(found.entries, key[1], {}))
    family.members[k] = np.concatenate(unknowns)[:, 0]


def _followed(entry: Transition) -> bool:
    form = _FORMS.get(entry.kind)
    return form is not None and len(entry.phases) == len(form.phases) and "wall" not in entry.method


def _is_steepest(entry: Transition) -> bool:
    return entry.method.startswith("steepest")


def _labels(entry: Transition) -> tuple[str, ...]:
    """The names of phases that a family shares; which one a continuous change is in differs from setup to setup."""
    return () if entry.kind is TransitionKind.CROSSOVER else tuple(phase.name for phase in entry.phases)


def _unknowns(here: _Field, entry: Transition) -> Array:
    """The unknowns of the system of an entry, a column of numbers."""
    points = [float(number.value) for phase in entry.phases for number in phase.order_parameters.values()]
    numbers = [*points, float(entry.value.value), *(float(number.value) for number in entry.at.values())]
    if entry.kind is TransitionKind.CROSSOVER:
        f = here.slopes([np.array(numbers[:1])], np.array(numbers[1:]))
        numbers.append(float(-f[0, 1][0] / f[0, 0][0]))
    elif entry.kind is not TransitionKind.COEXISTENCE:
        numbers.append(1.0)
    return np.array(numbers)[:, None]


def _carried(
    field: _Field,
    place: Array,
    setups: Sequence[Setup],
    families: dict[Any, _Family],
    found: dict[int, Transitions],
    digits: int,
) -> dict[int, Transitions]:
    """What can be confirmed at setups that are not found yet, from what is known at their neighbours."""
    new: dict[int, Transitions] = {}
    for family in families.values():
        left = np.array([k for k in range(len(place)) if k not in found and k not in new], dtype=int)
        if not left.size:
            break
        begin = time.perf_counter()
        known, members = np.array(list(family.members)), np.array(list(family.members.values()))
        start = _interpolated(place[known], members, place[left])
        solved, errors, kept = _solved(field.only(left, np.longdouble), family, start, digits)
        left = left[kept]
        entries = _entries(field, setups, left, family, solved, errors, digits)
        seconds = (time.perf_counter() - begin) / max(len(left), 1)
        family.members.update(zip(left.tolist(), np.concatenate(solved).T.astype(float), strict=True))
        seen = (
            f"solved among {len(setups)} setups: at {len(family.counts) // 2} values of the control there are as many "
        )
        seen += "stationary points as at a neighbour, by the signs of the slope on a grid"
        for k, listed in zip(left.tolist(), entries, strict=True):
            new[k] = Transitions(listed, Status.OK, (seen,), seconds)
    return new


def _interpolated(place: Array, values: Array, at: Array) -> Array:
    """Values by row at other places, a row each: linear interpolation, of logarithms where all are positive."""
    place, first = np.unique(place, axis=0, return_index=True)
    values = values[first]
    positive = (values > 0).all(axis=0)
    rows = np.where(positive, np.log(np.where(positive, values, 1)), values)
    if len(place) == 1:
        found = np.repeat(rows, len(at), axis=0)
    else:
        neighbours = min(_NEIGHBOURS, len(place))
        found = RBFInterpolator(place, rows, neighbors=neighbours, kernel="linear", degree=0)(at)
    return np.where(positive, np.exp(np.where(positive, found, 0)), found)


def _solved(field: _Field, family: _Family, start: Array, digits: int) -> tuple[list[Array], list[Array], Array]:
    """The unknowns of every entry with their errors where all entries are solved and confirmed, and where that is."""
    kept, first = np.arange(len(start)), 0
    solved: list[Array] = []
    errors: list[Array] = []
    sizes = [_size(entry) for entry in family.like]
    for entry, size in zip(family.like, sizes, strict=True):
        here = field.only(kept, np.longdouble)
        values, error = _newton(here, _FORMS[entry.kind], start[kept, first : first + size].T)
        good = np.isfinite(error).all(axis=0) & (error <= np.abs(values) * 10.0 ** (-digits - 1)).all(axis=0)
        kept, solved, errors = (
            kept[good],
            [*(old[:, good] for old in solved), values[:, good]],
            [*(old[:, good] for old in errors), error[:, good]],
        )
        first += size
    good = _confirmed(field.only(kept), family, [values.astype(float) for values in solved])
    return [values[:, good] for values in solved], [error[:, good] for error in errors], kept[good]


def _size(entry: Transition) -> int:
    return {TransitionKind.CRITICAL_END_POINT: 4}.get(entry.kind, 3)


def _newton(field: _Field, form: _Form, start: Array) -> tuple[Array, Array]:
    """Roots in extended precision, and their errors: the last step, and what double precision makes of them."""
    values, moving = start.astype(float), np.arange(start.shape[1])
    for _ in range(_STEPS):
        if not moving.size:
            break
        move = _move(form.system(field.only(moving)), values[:, moving])
        size = np.abs(move / values[:, moving]).max(axis=0)
        values[:, moving] -= move * np.minimum(1, 0.5 / np.maximum(size, 1e-300))
        moving = moving[size > _CONVERGED]
    values[:, moving] = np.nan
    fine, system = values.astype(np.longdouble), form.system(field)
    for _ in range(3):
        move = _move(system, fine)
        fine = fine - move
    rough = fine.astype(float)
    again = rough - _move(form.system(field.only(np.arange(start.shape[1]))), rough)
    return fine, (2 * np.abs(move) + np.abs(fine - again)).astype(float)


def _move(system: System, values: Array) -> Array:
    """Newton's step at every setup; nan where the Jacobian is singular or not finite."""
    residual, jacobian = system([row.view(_Numbers) for row in values])
    points = values.shape[1]
    matrix = np.empty((points, len(jacobian), len(jacobian)))
    for i, row in enumerate(jacobian):
        for j, number in enumerate(row):
            matrix[:, i, j] = float(number) if isinstance(number, mpf) else np.asarray(number)
    right = np.stack([np.asarray(r, dtype=float) for r in residual], axis=1)
    good = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
    good[good] = np.linalg.slogdet(matrix[good])[0] != 0
    move = np.full((len(jacobian), points), np.nan)
    move[:, good] = np.linalg.solve(matrix[good], right[good][:, :, None])[:, :, 0].T
    return move


def _confirmed(field: _Field, family: _Family, solved: Sequence[Array]) -> Array:
    """Where the entries are what those of the family are: their kinds, and that nothing else is there."""
    counts = _counts(field, family.like, solved)
    if counts is None:
        return np.zeros(0, dtype=bool)
    tests = [*(counts == np.array(family.counts)[:, None])]
    for entry, values in zip(family.like, solved, strict=True):
        form = _FORMS[entry.kind]
        size = None if form.size is None else values[form.size]
        at = field if size is None else field.sized(size)
        control, points = values[form.control], [values[k] for k in form.phases]
        f = [field.jet(((), 4), ((1,), 1))([x], control, size) for x in points]
        if entry.kind is not TransitionKind.SPINODAL:
            lowest, depth = at.lowest(points, control)
            tests.append(lowest >= f[0][()] - _LEVEL * depth)
        if entry.kind is TransitionKind.COEXISTENCE:
            tests += [f[0][0, 0] > 0, f[1][0, 0] > 0, f[0][(1,)] > f[1][(1,)]]
        elif entry.kind is TransitionKind.CROSSOVER:
            tests += [slope <= (1 + _LEVEL) * np.abs(values[2]) for slope in _slopes(field, points, control)]
        elif entry.kind is TransitionKind.CRITICAL_END_POINT:
            tests.append(f[0][0, 0, 0, 0] > 0)
    return np.asarray(np.all([np.asarray(test) for test in tests], axis=0))


def _slopes(field: _Field, points: Sequence[Array], control: Array) -> Iterator[Array]:
    """How steep the only branch is elsewhere, from the ends of the window to ``control``."""
    for end in field.ends(*field.action.window, control):
        for share in _ELSEWHERE:
            other = end ** (1 - share) * control**share
            x = field.grid(points, other)
            last = (field.slope(x, other) < 0).cumprod(axis=0).sum(axis=0)  # the first point beyond the root
            place = np.take_along_axis(x, np.minimum(last, len(x) - 1)[None], axis=0)[0]
            for _ in range(4):
                f = field.slopes([place], other)
                place = place - np.asarray(f[(0,)] / f[0, 0])
            f = field.slopes([place], other)
            yield np.abs(np.asarray(f[0, 1] / f[0, 0]))


def _counts(field: _Field, like: Sequence[Transition], solved: Sequence[Array]) -> Array | None:
    """How many stationary points there are between the transitions, and at the ends of the window: two rows for each value of
    the control, the sign of the slope at the lower bound and the number of its changes. Transitions out of order: -1."""
    listed = [
        (values[_FORMS[entry.kind].control], [values[k] for k in _FORMS[entry.kind].phases])
        for entry, values in zip(like, solved, strict=True)
        if entry.kind is not TransitionKind.CRITICAL_END_POINT
    ]
    low, high = field.ends(*field.action.window, np.zeros(field.parameters.shape[1]))
    edges = [low, *(control for control, _ in listed), high]
    points = [x for _, xs in listed for x in xs]
    ordered = np.all([a < b for a, b in pairwise(edges)], axis=0)
    rows = []
    for a, b in pairwise(edges):
        for share in _SHARES:
            signs = field.slope(field.grid(points, control := a ** (1 - share) * b**share), control) < 0
            rows += [signs[0].astype(int), (signs[1:] != signs[:-1]).sum(axis=0)]
    return np.where(ordered, np.array(rows), -1)


def _entries(
    field: _Field,
    setups: Sequence[Setup],
    left: Array,
    family: _Family,
    solved: Sequence[Array],
    errors: Sequence[Array],
    digits: int,
) -> Iterator[tuple[Transition, ...]]:
    """The entries of every setup; where a number lies between two roundings, they are polished one by one."""
    here, wide = field.only(left), field.only(left, np.longdouble)
    actions = [
        _actions(here, wide, _FORMS[entry.kind], values, error)
        for entry, values, error in zip(family.like, solved, errors, strict=True)
    ]
    clear = np.all(
        [_settled(v, e, digits) for v, e in zip(solved, errors, strict=True)] + [_settled(*a, digits) for a in actions],
        axis=0,
    )
    for place, k in enumerate(left.tolist()):
        landscape, listed = Landscape(field.action, setups[k]), []
        for entry, values, error, (action, doubt) in zip(family.like, solved, errors, actions, strict=True):
            form, start = _FORMS[entry.kind], [_mpf(value) for value in values[:, place]]
            if clear[place]:
                numbers = [Number(v, mpf(float(e)), digits) for v, e in zip(start, error[:, place], strict=True)]
                depths = [
                    Number(_mpf(v), mpf(float(e)), digits)
                    for v, e in zip(action[:, place], doubt[:, place], strict=True)
                ]
                status = Status.OK
            else:
                numbers, depths, status = _polished(landscape, form, start, digits)
            listed.append(_entry(landscape, entry, form, numbers, depths, status))
        yield tuple(listed)


def _actions(here: _Field, wide: _Field, form: _Form, values: Array, errors: Array) -> tuple[Array, Array]:
    """The action at the phases, and its error: what moving the unknowns by theirs and double precision change."""
    found, doubt = [], []
    for k in form.phases:
        places = [k, form.control, *(() if form.size is None else (form.size,))]
        one = [values[place] for place in places]
        other = [(values[place] + errors[place]).astype(float) for place in places]
        value = wide.jet(((), 0))([one[0]], *one[1:])[()]
        found.append(np.asarray(value))
        doubt.append(2 * np.abs(value - here.jet(((), 0))([other[0]], *other[1:])[()]))
    return np.array(found), np.array(doubt, dtype=float)


def _settled(values: Array, errors: Array, digits: int) -> Array:
    """Where all numbers of a setup, within their errors, round to the same digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = np.longdouble(10) ** (np.floor(np.log10(np.abs(values))) - digits + 1)
        off = np.abs(values) / unit
        clear = np.abs(off - np.floor(off) - 0.5) > 2 * errors / unit
    return np.asarray((clear | (errors == 0)).all(axis=0))


def _mpf(value: Any) -> mpf:
    high = float(value)
    with mpmath.workprec(80):
        return mpf(high) + mpf(float(value - high))


def _polished(
    landscape: Landscape, form: _Form, start: Sequence[mpf], digits: int
) -> tuple[list[Number], list[Number], Status]:
    """The unknowns of one entry and the actions of its phases by the arithmetic of `numerics.transitions`."""
    solution = refine(form.system(landscape), start, digits, [abs(value) for value in start])
    numbers = [Number(v, e, digits) for v, e in zip(solution.values, solution.errors, strict=True)]
    evaluate = landscape.jet(((), 0))
    depths = []
    for k in form.phases:
        places = [k, form.control, *(() if form.size is None else (form.size,))]
        values, errors = [solution.values[p] for p in places], [solution.errors[p] for p in places]
        depths.append(measure(lambda x, *y: evaluate([x], *y)[()], values, errors, solution.dps, digits))
    return numbers, depths, solution.status


def _entry(
    landscape: Landscape,
    like: Transition,
    form: _Form,
    numbers: Sequence[Number],
    actions: Sequence[Number],
    status: Status,
) -> Transition:
    control, (variable,) = numbers[form.control], landscape.action.variables
    labels = [phase.name for phase in like.phases]
    if like.kind is TransitionKind.CROSSOVER:
        labels = names(landscape, control.value, [(numbers[0].value,)], [Kind.MINIMUM])
    phases = tuple(
        PhasePoint(label, {variable.name: numbers[k]}, action)
        for label, k, action in zip(labels, form.phases, actions, strict=True)
    )
    at = {} if form.size is None else dict.fromkeys(like.at, numbers[form.size])
    return replace(like, value=control, phases=phases, at=at, status=status)
