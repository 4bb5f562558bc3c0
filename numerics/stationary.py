r"""All stationary points of a low-dimensional action, found by covering its box.

.. math:: \nabla F(x) = 0, \qquad \sum_{x} (-1)^{\mathrm{index}(x)} = \deg(\nabla F, \partial\,\mathrm{box})

The second equation (Poincare-Hopf) is the check that none is missing: the degree on the right is read off the gradient
on the boundary of the box alone. In one dimension the cover is complete by construction as soon as no cell of the grid
hides two extrema of F': between neighbouring roots of F'' the gradient is monotone. In more dimensions every cell in
which all components of the gradient change sign starts a Newton iteration. If the sum fails, the grid is refined; if it
still fails, the result says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from numerics.landscape import Coordinates, Landscape, close, gradient, hessian, same
from numerics.newton import Solution, eigen, newton, refine
from numerics.phases import names
from numerics.points import Kind, Number, Point, Points, Stability, Status

if TYPE_CHECKING:
    from derive.action import EffectiveAction, Setup

__all__ = ["Cover", "Group", "bracket", "cover", "groups", "measure", "minima"]

COVER_DPS = 25
_UNIFORM = {1: 160, 2: 40, 3: 16}
_DECADES = {1: 14, 2: 16, 3: 4}
_PER_DECADE = {1: 6, 2: 6, 3: 2}
_ROUNDS = 3
_MOST_DPS = 6400
_HALVINGS = 8
_MOST_CELLS = 4000

Array = NDArray[np.float64]
Field = Callable[[Sequence[Array]], tuple[Array, ...]]


@dataclass(frozen=True)
class Cover:
    """The stationary points in the box at one control, to `COVER_DPS` digits, every symmetric copy included.

    ``degenerate`` says of each point whether its Hessian is singular; ``complete`` is ``None`` where the degree of the
    gradient on the boundary of the box is not known.
    """

    control: mpf
    points: tuple[Coordinates, ...]
    degenerate: tuple[bool, ...]
    complete: bool | None
    scales: tuple[mpf, ...]


def cover(landscape: Landscape, control: mpf) -> Cover:
    """Find every stationary point at ``control``, refining the grid until the sum of indices is the degree."""
    with mpmath.workdps(max(mpmath.mp.dps, working_digits(landscape, (control,)))):
        field = _usable_field(landscape, control)
        for fineness in range(_ROUNDS if field or landscape.n == 1 else 1):
            found = _cover_once(landscape, control, field, 3**fineness)
            if found.complete is not False:
                break
    return found


def working_digits(landscape: Landscape, controls: Sequence[mpf]) -> int:
    """The digits, at least `COVER_DPS`, at which cancellation leaves the gradient exact on the scale of the box."""
    dps = COVER_DPS
    while dps < _MOST_DPS and max(_noise(landscape, control, dps) for control in controls) > mpf("1e-12"):
        dps *= 2
    return dps


def _noise(landscape: Landscape, control: mpf, dps: int) -> mpf:
    """The largest relative error that ``dps`` digits make in the gradient, over a few places in the box."""
    with mpmath.workdps(COVER_DPS):
        box = landscape.box(control)
    worst = mpf(0)
    for fraction in ("0.97", "0.61", "0.31", "0.07"):
        x = [low + (high - low) * mpf(fraction) for low, high in box]
        with mpmath.workdps(dps):
            coarse = landscape.slopes(x, control)
        with mpmath.workdps(2 * dps):
            fine = landscape.slopes(x, control)
        for i in range(len(box)):
            size = abs(fine[(i,)]) + max(abs(fine[i, j]) * (b - a) for j, (a, b) in enumerate(box))
            worst = max(worst, abs(coarse[(i,)] - fine[(i,)]) / size if size else mpf(0))
    return worst


def _cover_once(landscape: Landscape, control: mpf, field: Field | None, fineness: int) -> Cover:
    box = landscape.box(control)
    scales = tuple(max(abs(low), abs(high)) for low, high in box)
    walls = tuple(order.edge for order in landscape.action.order_parameters)
    axes = [_axis(*ends, wall, landscape.n, fineness) for ends, wall in zip(box, walls, strict=True)]
    if field is None and landscape.n > 1:  # every point takes a thousand times as long
        axes = [axis[:: 4 * landscape.n] + axis[-1:] for axis in axes]
    search = _line if landscape.n == 1 else _space
    roots, degree, outward = search(landscape, control, field, axes, scales)
    unique: list[Coordinates] = []
    for root in roots:
        if _inside(root, axes) and not any(same(root, other, scales) for other in unique):
            unique.append(root)
    known = [_index(landscape, control, x, scales) for x in unique]
    complete = None
    if degree is not None and None not in known:
        # An action that grows through the whole boundary has a minimum inside.
        complete = sum((-1) ** (index or 0) for index in known) == degree and (not outward or 0 in known)
    return Cover(control, tuple(unique), tuple(index is None for index in known), complete, scales)


def _inside(x: Coordinates, axes: Sequence[Sequence[mpf]]) -> bool:
    return all(axis[0] <= value <= axis[-1] for value, axis in zip(x, axes, strict=True))


def _index(landscape: Landscape, control: mpf, x: Coordinates, scales: Sequence[mpf]) -> int | None:
    """The number of negative eigenvalues of the scaled Hessian; ``None`` where one vanishes to working precision."""
    values, vectors = _spectrum(landscape, control, x, scales)
    small = min(range(len(values)), key=lambda k: abs(values[k]))
    if abs(values[small]) <= mpf("1e-16") * _stiffness(landscape, control, x, scales):
        # A steep neighbourhood makes an eigenvalue look small; one that vanishes changes over a tiny distance.
        for side in (1, -1):
            step = [side * mpf("1e-7") * a * s for a, s in zip(vectors[small], scales, strict=True)]
            moved = _spectrum(landscape, control, tuple(a + b for a, b in zip(x, step, strict=True)), scales)[0][small]
            if abs(moved - values[small]) >= abs(values[small]) / 2:
                return None
    return sum(bool(value < 0) for value in values)


def _spectrum(
    landscape: Landscape, control: mpf, x: Coordinates, scales: Sequence[mpf]
) -> tuple[list[mpf], list[list[mpf]]]:
    """Eigenvalues, ascending, and eigenvectors of the Hessian in scaled coordinates."""
    matrix = hessian(landscape.slopes(x, control), landscape.n)
    return eigen([[h * a * b for h, b in zip(row, scales, strict=True)] for row, a in zip(matrix, scales, strict=True)])


def _stiffness(landscape: Landscape, control: mpf, x: Coordinates, scales: Sequence[mpf]) -> mpf:
    """The size of the scaled Hessian in the neighbourhood of ``x``: what its eigenvalues are small against."""
    around = [
        tuple(v + sign * s / 16 if i == j else v for j, (v, s) in enumerate(zip(x, scales, strict=True)))
        for i in range(landscape.n)
        for sign in (-1, 1)
    ]
    size = mpf(0)
    for y in around:
        if any(v < order.lower for v, order in zip(y, landscape.action.order_parameters, strict=True) if order.edge):
            continue
        matrix = hessian(landscape.slopes(y, control), landscape.n)
        size = max(size, *(abs(matrix[i][j] * scales[i] * scales[j]) for i in range(len(x)) for j in range(len(x))))
    return size


@lru_cache(maxsize=64)
def _fractions(n: int, fineness: int) -> tuple[tuple[mpf, ...], tuple[mpf, ...]]:
    """Positions on an axis, and distances from its special points, in units of its width."""
    count, per_decade = _UNIFORM[min(n, 3)] * fineness, _PER_DECADE[min(n, 3)] * fineness
    uniform = tuple(mpf(k) / count for k in range(count + 1))
    return uniform, tuple(mpf(10) ** (mpf(-k) / per_decade) for k in range(_DECADES[min(n, 3)] * per_decade))


def _axis(low: mpf, high: mpf, wall: bool, n: int, fineness: int) -> list[mpf]:
    """A grid: uniform, and geometric towards zero and towards a wall, a little wider than the box where it may be."""
    width = high - low
    start, stop = (low if wall else low - width / 64), high + width / 64
    uniform, distances = _fractions(n, fineness)
    grid = {start + (stop - start) * k for k in uniform}
    for centre in {mpf(0)} | ({start} if wall else set()):
        grid |= {centre} | {centre + side * width * d for d in distances for side in (-1, 1)}
    return sorted(x for x in grid if start <= x <= stop)


def bracket(function: Callable[[mpf], mpf], low: mpf, high: mpf, resolution: mpf) -> mpf:
    """The root between ends of opposite sign: regula falsi (Illinois), and bisection every fourth time."""
    old, new = low, high
    f_old, f_new = function(old), function(new)
    for iteration in range(400):
        if f_new == 0 or f_old == 0:
            return new if f_new == 0 else old
        step = (old - new) / 2 if iteration % 4 == 3 else -f_new * (new - old) / (f_new - f_old)
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


def _line(
    landscape: Landscape, control: mpf, field: Field | None, axes: Sequence[Sequence[mpf]], scales: Sequence[mpf]
) -> tuple[list[Coordinates], int | None, bool]:
    """One order parameter: split the axis at the roots of F'' and look for a sign change of F' in each piece."""
    grid, resolution = list(axes[0]), scales[0] * mpf("1e-10")

    def slope(x: mpf) -> mpf:
        return landscape.slopes((x,), control)[(0,)]

    def bend(x: mpf) -> mpf:
        return landscape.slopes((x,), control)[0, 0]

    (slopes, bends), exact = _sample(landscape, control, field, [grid], 2)
    turning = {
        _turning(slope, bend, a, b): max(abs(slope(a)), abs(slope(b)))
        for a, b, fa, fb in zip(grid, grid[1:], bends, bends[1:], strict=False)
        if (fa < 0) != (fb < 0) and (bend(a) < 0) != (bend(b) < 0)
    }
    signs = dict(zip(grid, slopes, strict=True)) | {x: slope(x) for x in turning}
    grid = sorted(signs)
    slopes = [signs[x] for x in grid]
    roots = [(x,) for x, size in turning.items() if abs(signs[x]) <= mpf("1e-20") * size]
    roots += [(x,) for x, value in zip(grid, slopes, strict=True) if value == 0 and slope(x) == 0]
    for a, b, fa, fb in zip(grid, grid[1:], slopes, slopes[1:], strict=False):
        if fa != 0 and fb != 0 and (fa < 0) != (fb < 0) and (exact or (slope(a) < 0) != (slope(b) < 0)):
            roots.append(_polished(landscape, control, (bracket(slope, a, b, resolution),), scales))
        elif fa == 0 or fb == 0:
            roots += _beside_zero(landscape, control, a, b, resolution)
    f_low, f_high = slope(grid[0]), slope(grid[-1])
    degree = None if f_low == 0 or f_high == 0 else (int(f_high > 0) + int(f_low < 0)) - 1
    return roots, degree, bool(f_low < 0 < f_high)


def _turning(slope: Callable[[mpf], mpf], bend: Callable[[mpf], mpf], a: mpf, b: mpf) -> mpf:
    """The root of F'' in a cell, to full accuracy where F' nearly vanishes there, too."""
    x, size = bracket(bend, a, b, (b - a) * mpf("1e-8")), max(abs(slope(a)), abs(slope(b)))
    return bracket(bend, a, b, (b - a) * mpf("1e-24")) if abs(slope(x)) <= mpf("1e-10") * size else x


def _beside_zero(landscape: Landscape, control: mpf, a: mpf, b: mpf, resolution: mpf) -> list[Coordinates]:
    """A further root in a cell one end of which is itself a root (of an odd gradient, as a rule)."""
    inset = (b - a) * mpf("1e-6")
    if inset <= resolution * mpf("1e-6"):
        return []

    def slope(x: mpf) -> mpf:
        return landscape.slopes((x,), control)[(0,)]

    low, high = (a + inset if slope(a) == 0 else a), (b - inset if slope(b) == 0 else b)
    f_low, f_high = slope(low), slope(high)
    return [(bracket(slope, low, high, resolution),)] if f_low * f_high < 0 else []


def _usable_field(landscape: Landscape, control: mpf) -> Field | None:
    """Gradient and Hessian over arrays of floats, unless they overflow in a corner of the box or lose their digits."""
    field = landscape.field(control)
    if field is None or not _noise(landscape, control, 16) < mpf("1e-7"):
        return None
    corners = np.meshgrid(*(np.array([float(low), float(high)]) for low, high in landscape.box(control)))
    return field if all(bool(np.all(np.isfinite(value))) for value in field(corners)) else None


def _sample(
    landscape: Landscape, control: mpf, field: Field | None, axes: Sequence[Sequence[mpf]], count: int
) -> tuple[list[Any], bool]:
    """The first ``count`` of gradient and Hessian entries over the grid, in floats or, where they overflow, in mpmath.

    The second result says whether the values are those of the working precision.
    """
    if field is not None:
        mesh = np.meshgrid(*(np.array([float(x) for x in axis]) for axis in axes), indexing="ij")
        values = field(mesh)[:count]
        if all(bool(np.all(np.isfinite(value))) for value in values):
            return list(values), False
    shape = tuple(len(axis) for axis in axes)
    wanted = [(i,) for i in range(landscape.n)] + [(i, j) for i in range(landscape.n) for j in range(i, landscape.n)]
    exact = [np.empty(shape, dtype=object) for _ in range(count)]
    for place in product(*(range(length) for length in shape)):
        jet = landscape.slopes([axis[k] for axis, k in zip(axes, place, strict=True)], control)
        for array, index in zip(exact, wanted, strict=False):
            array[place] = jet[index]
    return list(exact), True


def _system(landscape: Landscape, control: mpf) -> Callable[[Sequence[mpf]], tuple[list[mpf], list[list[mpf]]]]:
    n = landscape.n

    def system(x: Sequence[mpf]) -> tuple[list[mpf], list[list[mpf]]]:
        jet = landscape.slopes(x, control)
        return gradient(jet, n), hessian(jet, n)

    return system


def _polished(landscape: Landscape, control: mpf, x: Coordinates, scales: Sequence[mpf]) -> Coordinates:
    """``x`` after Newton at the working precision; ``x`` itself where that does not contract or leads away."""
    run = newton(_system(landscape, control), x, scales)
    return tuple(run.values) if run.status is Status.OK and close(x, run.values, scales, "1e-6") else x


def _space(
    landscape: Landscape, control: mpf, field: Field | None, axes: Sequence[Sequence[mpf]], scales: Sequence[mpf]
) -> tuple[list[Coordinates], int | None, bool]:
    """Several order parameters: Newton from every cell in which all components of the gradient change sign."""
    n = landscape.n
    values, exact = _sample(landscape, control, field, axes, n)
    low, high, zeros = _cells(values, axes)
    starts = list(zip(*((low + high) / 2).T, strict=True)) if len(low) else []
    if field is not None and not exact:
        starts = _newton_arrays(landscape, control, field, _subdivided(field, n, low, high))
    roots: list[Coordinates] = []
    system = _system(landscape, control)
    for start in [*zeros, *starts]:
        if any(same(start, root, scales, "1e-5") for root in roots):
            continue
        run = newton(system, [mpf(value) for value in start], scales)
        if run.status is not Status.DIVERGED:
            roots.append(tuple(run.values))
    outward = _points_outward(values)
    return roots, 1 if outward else _winding(values) if n == 2 else None, outward


def _cells(values: Sequence[Any], axes: Sequence[Sequence[mpf]]) -> tuple[Any, Any, list[Coordinates]]:
    """Lower and upper corners of the cells in which every component takes both signs, and grid points where all vanish."""
    n = len(axes)
    mixed: Any = True
    for value in values:
        shifts = (tuple(slice(1, None) if c else slice(None, -1) for c in shift) for shift in product((0, 1), repeat=n))
        corners = [value[shift] for shift in shifts]
        mixed = mixed & np.any([c <= 0 for c in corners], axis=0) & np.any([c >= 0 for c in corners], axis=0)
    cells = np.argwhere(mixed)
    low, high = (
        np.array([[axis[k + end] for axis, k in zip(axes, cell, strict=True)] for cell in cells]) for end in (0, 1)
    )
    zeros = np.argwhere(np.all([np.asarray(value == 0, dtype=bool) for value in values], axis=0))
    return low, high, [tuple(axis[k] for axis, k in zip(axes, place, strict=True)) for place in zeros]


def _subdivided(field: Field, n: int, low: Any, high: Any) -> Array:
    """Centres of the cells and, halved `_HALVINGS` times, of those of their parts in which the signs still are mixed."""
    if not len(low):
        return np.empty((0, n))
    low, high = low.astype(float), high.astype(float)
    starts = [(low + high) / 2]
    for _ in range(_HALVINGS):
        middle, corners = (low + high) / 2, list(product((0, 1), repeat=n))
        low, high = (
            np.concatenate([np.where(np.array(c) == k, ends, middle) for c in corners])
            for k, ends in ((0, low), (1, high))
        )
        seen = [field(tuple(np.where(np.array(c) == 1, high, low).T))[:n] for c in corners]
        mixed = np.ones(len(low), dtype=bool)
        for component in zip(*seen, strict=True):
            mixed &= np.any([v <= 0 for v in component], axis=0) & np.any([v >= 0 for v in component], axis=0)
        low, high = low[mixed][:_MOST_CELLS], high[mixed][:_MOST_CELLS]
        if not len(low):
            break
    return np.concatenate([*starts, (low + high) / 2])


def _newton_arrays(landscape: Landscape, control: mpf, field: Field, starts: Array) -> list[tuple[float, ...]]:
    """Newton in floats from all starts at once; where it converged, each place once to five digits."""
    if not len(starts):
        return []
    n, x = landscape.n, starts.copy()
    with mpmath.workdps(COVER_DPS):
        size = np.array([float(max(abs(low), abs(high))) for low, high in landscape.box(control)])
    upper = [(i, j) for i in range(n) for j in range(i, n)]
    for _ in range(30):
        entries = field(tuple(x.T))
        matrix = np.empty((len(x), n, n))
        for (i, j), value in zip(upper, entries[n:], strict=True):
            matrix[:, i, j] = matrix[:, j, i] = value * size[i] * size[j]
        right = np.stack(entries[:n], axis=1) * size
        usable = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
        matrix[~usable], right[~usable] = np.eye(n), 1.0
        matrix[np.linalg.det(matrix) == 0] = np.eye(n)
        step = -np.linalg.solve(matrix, right[..., None])[..., 0] * size
        x = np.where(np.abs(x) > 4 * size, x, x + step)
        if np.all(np.abs(step) <= 1e-9 * np.abs(x) + 1e-15 * size):
            break
    good = np.all(np.abs(step) <= 1e-5 * np.abs(x) + 1e-13 * size, axis=1)
    # Far below its box a value is rounding noise, so it does not tell two places apart.
    keys = np.where(np.abs(x) > 1e-9 * size, x, np.round(x / size, 12) * size)
    places = {
        tuple(f"{value:.4e}" for value in key): tuple(map(float, row))
        for key, row in zip(keys[good], x[good], strict=True)
    }
    return list(places.values())


def _points_outward(values: Sequence[Any]) -> bool:
    """Whether the gradient points outward on every face of the grid: its degree there is one."""
    faces = [(axis, end) for axis in range(len(values)) for end in (0, -1)]
    return all(bool(np.all(np.take(values[axis], end, axis=axis) * (1 if end else -1) > 0)) for axis, end in faces)


def _winding(values: Sequence[Any]) -> int | None:
    """How often the gradient turns on a walk around the boundary; ``None`` where the steps of the walk are too coarse."""
    components = []
    for value in values:
        loop = np.concatenate([value[:-1, 0], value[-1, :-1], value[:0:-1, -1], value[0, :0:-1]])
        components.append(loop / max(abs(entry) for entry in loop))
    phase = np.arctan2(components[1].astype(float), components[0].astype(float))
    turns = np.diff(phase, append=phase[0])
    turns -= 2 * np.pi * np.round(turns / (2 * np.pi))
    return None if np.abs(turns).max() > 2.5 else round(float(turns.sum()) / (2 * np.pi))


@dataclass(frozen=True)
class Group:
    """One stationary point for all its symmetric copies."""

    x: Coordinates
    degenerate: bool
    copies: int
    symmetry: tuple[str, ...]


def groups(landscape: Landscape, covered: Cover) -> list[Group]:
    found: list[Group] = []
    for x, degenerate in zip(covered.points, covered.degenerate, strict=True):
        orbit = landscape.orbit(x, covered.control, covered.scales)
        if not any(same(group.x, image, covered.scales) for group in found for image in orbit):
            moved = (name for name, image in landscape.images(x, covered.control) if not same(image, x, covered.scales))
            found.append(Group(max(orbit), degenerate, len(orbit), tuple(moved)))
    return found


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


def _solved(landscape: Landscape, group: Group, scales: Sequence[mpf], digits: int) -> _Solved:
    """Polish and evaluate; more digits are carried along until what is evaluated has the digits asked for, too."""
    for guard in (0, 15, 60, 240):
        solution = _polish(landscape, group, digits + guard, scales)
        found = _evaluated(landscape, group, solution, digits)
        if found.reached or solution.status is not Status.OK:
            break
    return found


def _polish(landscape: Landscape, group: Group, digits: int, scales: Sequence[mpf]) -> Solution:
    n = landscape.n

    def system(x: Sequence[mpf]) -> tuple[list[mpf], list[list[mpf]]]:
        jet = landscape.slopes(x, landscape.control())
        return gradient(jet, n), hessian(jet, n)

    if group.degenerate and n == 1:
        return _multiple_root(landscape, group.x, digits, scales)
    return refine(system, group.x, digits, scales)


def _multiple_root(landscape: Landscape, x: Coordinates, digits: int, scales: Sequence[mpf]) -> Solution:
    """An m-fold root of F' as a simple root of its (m-1)-th derivative at which the lower ones vanish, m <= 4."""
    orders = landscape.jet(((), 6))
    for order in range(2, 6):

        def system(y: Sequence[mpf], order: int = order) -> tuple[list[mpf], list[list[mpf]]]:
            jet = orders(y, landscape.control())
            return [jet[(0,) * order]], [[jet[(0,) * (order + 1)]]]

        solution = refine(system, x, digits, scales)
        if solution.found and close(solution.values, x, scales, "1e-6"):
            with mpmath.workdps(solution.dps):
                jet = orders(solution.values, landscape.control())
                sizes = [abs(jet[(0,) * k]) * scales[0] ** k for k in range(1, order + 2)]
                if max(sizes[: order - 1]) <= mpf(10) ** (-solution.dps // 2) * max(sizes):
                    return solution
    return Solution(x, tuple(scale * mpf("1e-6") for scale in scales), Status.DEGENERATE, COVER_DPS)


def measure(
    function: Callable[..., mpf], arguments: Sequence[mpf], errors: Sequence[mpf], dps: int, digits: int
) -> Number:
    """``function(*arguments)`` with an error bound: what moving the arguments by their errors and fewer digits change."""
    with mpmath.workdps(dps):
        value = function(*arguments)
        moved = [a + e for a, e in zip(arguments, errors, strict=True)]
    with mpmath.workdps(dps - 5):
        other = function(*(+argument for argument in moved))
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


def minima(action: EffectiveAction, setup: Setup, digits: int = 15) -> Points:
    """All stationary points of ``action`` at ``setup.control`` to ``digits`` digits, minima first, lowest action first.

    Symmetric copies are one point. Raises `ValueError` if the setup holds no control, `BoxError` for an unbounded box.
    """
    begin = time.perf_counter()
    landscape = Landscape(action, setup)
    with mpmath.workdps(working_digits(landscape, (landscape.control(),))):
        covered = cover(landscape, landscape.control())
        found = groups(landscape, covered)
    solved = [_solved(landscape, group, covered.scales, digits) for group in found]
    points = _points(landscape, covered, solved)
    status = Status.DIGITS if not all(point.reached for point in solved) else Status.OK
    if any(covered.degenerate):
        status = Status.DEGENERATE
    if covered.complete is False:
        status = Status.COVER
    return Points(points, status, _notes(landscape, covered), time.perf_counter() - begin)


def _points(landscape: Landscape, covered: Cover, solved: Sequence[_Solved]) -> tuple[Point, ...]:
    kinds = [Kind.MINIMUM, Kind.DEGENERATE, Kind.SADDLE, Kind.MAXIMUM]
    ranked = sorted(solved, key=lambda point: (kinds.index(point.kind), point.action.value))
    labels = names(landscape, covered.control, [point.group.x for point in ranked], [point.kind for point in ranked])
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


def _notes(landscape: Landscape, covered: Cover) -> tuple[str, ...]:
    notes = []
    with mpmath.workdps(COVER_DPS):
        for order, (low, _) in zip(landscape.action.order_parameters, landscape.box(covered.control), strict=True):
            if order.edge and landscape.n == 1 and landscape.slopes((low,), covered.control)[(0,)] > 0:
                notes.append(f"the action also has a minimum on the wall {order.symbol} = {mpmath.nstr(low)}")
    if covered.complete is None and not any(covered.degenerate):
        notes.append(
            "the degree of the gradient on the boundary of the box is not known: the sum of indices is not checked"
        )
    return tuple(notes)
