r"""Every stationary point of an action of two order parameters, by the degree of its gradient around cells.

.. math:: \sum_{x \in \mathrm{cell}} \mathrm{sign} \det \nabla^2 F(x) = \deg(\nabla F, \partial\,\mathrm{cell})

The degree is read off the order in which the components of the gradient change sign around a cell. Only signs are asked
for, and balls prove them at any magnitude and whatever cancels; in a valley so narrow that both components seem to vanish
together, the order is found all the same. The cells form a grid that is geometric towards zero, down to where the Hessian
no longer changes, and are halved until Newton's method converges inside. The degrees add up to that around the box.

A pair of opposite degree hides in one cell. Cells are halved a few times to tell; then further where the second component
falls towards zero from both ends of the curve on which the first one vanishes. What no sign on the grid tells of, a pair
or a degenerate point of degree zero, is seen by branch and prune (`numerics.certify.complete`), which proves as a rule
that nothing is left; where it does not, `numerics.touching` looks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import log
from typing import Any

import mpmath
import numpy as np
from flint import ctx
from mpmath import mpf

from numerics.balls import Ball, ball, number
from numerics.cell import APART, COVER_DPS, LEAST_BITS, MOST_BITS, Cell, Chart, Place, Root, Side, signed, solved
from numerics.certify.complete import only_these, region
from numerics.certify.intervals import EffortError, ProofError
from numerics.grid import Floats, axes_of, mixed_cells
from numerics.jets import Index, indices
from numerics.landscape import Landscape, same
from numerics.touching import touching

__all__ = ["on_a_plane"]

_MOST_CELLS = 12000
_MOST_STEPS = 80
_STIFF = 5
_QUADRANTS = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
_DECADES = 16
_PRUNED_CELLS, _PRUNED_BITS = 6000, 128
_BESIDE = mpf("1e-9")  # of the box
_NODES, _FEW_NODES = 1200, 100  # per axis, where floats will do and where they will not
_DEEPEST, _DEEPEST_PAIR = 16, 80
_NEAR = 6
_SURE = 6
_UNDECIDED = 4


def _short(value: Ball) -> Ball:
    """A number of few bits close by."""
    with ctx.workprec(64):
        return (+value).mid()


def _sides(cell: Cell) -> list[tuple[Place, Place]]:
    """Bottom, right, top and left, each from its first to its last corner on a walk around."""
    (a, b), (c, d) = cell
    return list(pairwise([(a, c), (b, c), (b, d), (a, d), (a, c)]))


@dataclass
class _Signs:
    """The signs of both components of the gradient, each asked for once, and the turns of the gradient along sides."""

    slopes: Callable[[Place], Place]
    bends: Callable[[Place], Place]
    known: dict[Any, tuple[int, Ball]] = field(default_factory=dict)
    zeros: dict[Any, tuple[Place, int, int]] = field(default_factory=dict)
    undecided: int = 0

    def seen(self, place: Place, bits: int = LEAST_BITS) -> tuple[int, Ball]:
        """The quadrant of the gradient, 0 to 3, counter-clockwise, and its first component to a few digits."""
        key = tuple(end.man_exp() for end in place)
        if key not in self.known:
            values = signed(lambda: self.slopes(place), bits)
            signs = (-1 if values[0] < 0 else 1, -1 if values[1] < 0 else 1)
            self.known[key] = _QUADRANTS.index(signs), values[0].mid()
        return self.known[key]

    def quadrant(self, place: Place) -> int:
        return self.seen(place)[0]

    def turn(self, a: Place, b: Place) -> tuple[int, int]:
        """By how many quadrants the gradient turns from ``a`` to ``b``, and to how many bits its two zeros coincide."""
        p, q = self.quadrant(a), self.quadrant(b)
        if (q - p) % 4 != 2:
            return (q - p + 1) % 4 - 1, 0
        _, second, bits = self.zero(a, b)
        (first, before), (other, after) = _QUADRANTS[p], _QUADRANTS[q]
        between = _QUADRANTS.index((other, before) if second == before else (first, after))
        return sum((t + 1) % 4 - 1 for t in (between - p, q - between)) if second else 0, bits

    def zero(self, a: Place, b: Place) -> tuple[Place, int, int]:
        """Where the first component, of opposite signs at the ends, vanishes; the sign of the second there; see `turn`.

        The side is cut by regula falsi (Illinois: an end that stays twice counts half), every fourth time by halving,
        until the second component has one sign on it. It is 0 if that never comes.
        """
        key = frozenset(tuple(end.man_exp() for end in place) for place in (a, b))
        if key not in self.zeros:
            self.zeros[key] = self._zero(a, b)
        return self.zeros[key]

    def _zero(self, a: Place, b: Place) -> tuple[Place, int, int]:
        (p, f), (q, g) = self.seen(a), self.seen(b)
        axis = next(k for k in (0, 1) if not (a[k] - b[k]).is_zero())
        low, high, kept, apart = a[axis], b[axis], None, None
        with ctx.workprec(MOST_BITS):
            whole = high - low
            for step in range(_MOST_STEPS):
                shrunk = int((_log(whole) - _log(high - low)) / log(2))
                if step % 4 == 3 or _length((low, high)) > 1:
                    cut = _middle(low, high)
                else:
                    cut = (low + _short((high - low) * _short(f / (f - g)))).mid()
                place = tuple(cut if k == axis else end for k, end in enumerate(a))
                if _QUADRANTS[p][1] == _QUADRANTS[q][1]:
                    apart = shrunk if apart is None else apart
                    if shrunk > _NEAR:
                        return place, _QUADRANTS[p][1], apart
                m, value = self.seen(place, LEAST_BITS + 2 * shrunk)
                if _QUADRANTS[m][0] == _QUADRANTS[p][0]:
                    low, f, p, g, kept = cut, value, m, (g / 2 if kept == 1 else g), 1
                else:
                    high, g, q, f, kept = cut, value, m, (f / 2 if kept == 0 else f), 0
        if apart is not None:
            return place, _QUADRANTS[p][1], apart
        self.undecided += 1
        return place, 0, MOST_BITS

    def degree(self, cell: Cell) -> tuple[int, int]:
        """The degree of the gradient around a cell, and to how many bits zeros of its components coincide on a side."""
        turns = [self.turn(p, q) for p, q in _sides(cell)]
        return sum(turn for turn, _ in turns) // 4, max(bits for _, bits in turns)

    def may_hold_a_pair(self, cell: Cell) -> bool:
        """Whether the curve on which the first component vanishes enters twice with the second one falling towards zero.

        Along that curve the tangent is (F_xy, -F_xx), and the second component changes by minus the determinant.
        """
        falling = 0
        for (p, q), inward in zip(_sides(cell), (1, -1, -1, 1), strict=True):
            if _QUADRANTS[self.quadrant(p)][0] == _QUADRANTS[self.quadrant(q)][0]:
                continue
            place, second, bits = self.zero(p, q)
            with ctx.workprec(2 * LEAST_BITS + 4 * bits):
                xx, xy, yy = self.bends(place)[2:]
                along = -xx if (p[1] - q[1]).is_zero() else xy
                rate = (xx * yy - xy * xy) * along * inward * second
            falling += not rate < 0
        return falling > 1

    def mixed(self, cell: Cell) -> bool:
        quadrants = {self.quadrant(corner) for corner in product(*cell)}
        return len(quadrants) > 2 or quadrants in ({0, 2}, {1, 3})


def on_a_plane(
    landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]
) -> tuple[list[Root], bool | None, bool]:
    """On a fine grid, the signs at its nodes taken in floats; if that leaves a doubt, by balls on a coarser one."""
    decades = _depth(landscape, control, box)
    floats = landscape.field(control) if decades <= 2 * _DECADES else None
    if floats is None:
        return _searched(landscape, control, axes_of(landscape, box, decades, _FEW_NODES), None)
    grid = axes_of(landscape, box, decades, _NODES)
    roots, complete, isolated = _searched(landscape, control, grid, floats)
    if isolated:
        found, proven = _pruned(landscape, control, box, roots)
        if proven:
            return found, True, True
    if not complete and isolated:
        others, complete, isolated = _searched(landscape, control, axes_of(landscape, box, decades, _FEW_NODES), None)
        rest = [root for root in roots if not any(same(root.x, other.x, root.sizes, APART) for other in others)]
        roots, complete = [*others, *rest], complete and _degree(rest) == 0
    pairs, seen = touching(landscape, control, grid, floats, roots) if isolated else ([], True)
    degree = _degree(pairs)
    complete = complete and (degree == 0 if seen and degree is not None else None)
    every = [*roots, *pairs]
    if isolated:  # what branch and prune came upon, before it gave up
        more = [r for r in found if not any(same(r.x, other.x, r.sizes, APART) for other in every)]
        every, complete = [*every, *more], complete and (None if more else complete)
    return every, complete, isolated


def _pruned(
    landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]], roots: Sequence[Root]
) -> tuple[list[Root], bool]:
    """The points with those that branch and prune comes upon, and whether it proves that there is no other one.

    A pair much narrower than a cell of the grid changes no sign at its corners, and no degree.
    """
    maps = {order: (indices(2, ((), order))[1:], landscape.balls(control, order)) for order in (2, 3)}

    def field(place: Sequence[Ball], order: int) -> dict[Index, Ball]:
        names, derivatives = maps[order]
        return dict(zip(names, derivatives(place), strict=True))

    found = list(roots)
    with ctx.workprec(_PRUNED_BITS):
        cell = tuple((ball(a), ball(b)) for a, b in box)
        widths = [b - a for a, b in cell]
        while True:
            try:
                around = [region(field, [ball(value) for value in root.x], widths) for root in found]
                only_these(field, cell, around, _PRUNED_CELLS)
                return found, True
            except EffortError as error:
                root = _about(landscape, control, box, error.cell)
                if root is None or any(same(root.x, other.x, root.sizes, APART) for other in found):
                    return found, False
                found.append(root)
            except (ProofError, ZeroDivisionError):
                return found, False


def _about(
    landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]], cell: tuple[tuple[Ball, Ball], ...]
) -> Root | None:
    """The point that Newton's method finds from a cell, in its neighbourhood: a cell may have shrunk to nothing."""
    sides = [(number(a), number(b)) for a, b in cell]
    reach = [max(2 * (b - a), (high - low) * _BESIDE) for (a, b), (low, high) in zip(sides, box, strict=True)]
    chart = Chart(tuple((a - r, b + r) for (a, b), r in zip(sides, reach, strict=True)))
    return solved(landscape, control, chart, chart.inverse([(a + b) / 2 for a, b in sides]), COVER_DPS)


def _holds(cell: Cell, root: Root) -> bool:
    return all(number(a) <= value <= number(b) for (a, b), value in zip(cell, root.x, strict=True))


def _degree(roots: Sequence[Root]) -> int | None:
    """The sum of (-1)^index; ``None`` where a root is degenerate."""
    signs = [None if root.index is None else (-1) ** root.index for root in roots]
    return None if None in signs else sum(s for s in signs if s)


def _searched(
    landscape: Landscape, control: mpf, grid: Sequence[Sequence[mpf]], floats: Floats | None
) -> tuple[list[Root], bool | None, bool]:
    signs, axes = (
        _Signs(landscape.balls(control, 1), landscape.balls(control, 2)),
        [[ball(x) for x in axis] for axis in grid],
    )
    cells = _candidates(axes, signs, floats)
    roots: list[Root] = []
    settled, short = True, max(2.5, max(map(_extent, cells), default=0) / 2)
    pending = deque((cell, 0) for cell in cells)
    for _ in range(_MOST_CELLS):
        if not pending or signs.undecided > _UNDECIDED:
            break
        cell, depth = pending.popleft()
        degree, bits = signs.degree(cell)
        central = not depth and _central(cell)
        known = [other for other in roots if _holds(cell, other)]
        if len(known) == 1 and degree == _degree(known) and depth:
            if depth < _SURE:  # a part may hold a pair besides
                pending.extend((part, depth + 1) for part in _halves(cell, depth))
            continue
        sought = central or (degree and depth % 3 == 0)
        root = _inside(landscape, control, cell, degree, bits) if sought else None
        if root is not None and root.index is None and depth < _DEEPEST_PAIR // 2 and any(root.x):
            root = None  # a smaller cell may tell nearly coinciding roots apart
        if root is not None and not any(same(root.x, other.x, root.sizes, APART) for other in roots):
            roots.append(root)
            pending.extend((part, depth + 1) for part in _halves(cell, depth) if not central)
        elif degree and depth > 8 * _DEEPEST:
            settled = False
        elif degree or (signs.mixed(cell) and _worth_halving(signs, cell, depth, bits, short)):
            for part in _halves(cell, depth):
                (pending.appendleft if degree else pending.append)((part, depth + 1))
    around = [*product(axes[0], axes[1][:1]), *product(axes[0][-1:], axes[1][1:])]
    around += [*product(axes[0][-2::-1], axes[1][-1:]), *product(axes[0][:1], axes[1][-2::-1])]
    whole = sum(signs.turn(a, b)[0] for a, b in pairwise(around)) // 4
    isolated = signs.undecided <= _UNDECIDED
    roots = roots if isolated else [root for root in roots if root.index is not None]
    total = _degree(roots)
    if pending or signs.undecided or total is None:
        return roots, None, isolated
    return roots, settled and total == whole, isolated


def _worth_halving(signs: _Signs, cell: Cell, depth: int, bits: int, short: float) -> bool:
    """Whether a cell of degree zero is so large, or looks so, that it may hold a pair."""
    if (depth < _SURE and bits < _STIFF) or (depth < _DEEPEST and _extent(cell) > short):
        return True
    return depth < _DEEPEST_PAIR and signs.may_hold_a_pair(cell)


def _inside(landscape: Landscape, control: mpf, cell: Cell, degree: int, bits: int) -> Root | None:
    """The one root in a cell around which the gradient turns once, if Newton's method finds it."""
    chart = Chart(tuple((number(a), number(b)) for a, b in cell))
    dps = COVER_DPS + (2 * bits + _lost(landscape, control, chart)) // 3
    root = solved(landscape, control, chart, chart.centre, dps)
    return root if root is not None and (root.index is None or (-1) ** root.index == degree) else None


def _lost(landscape: Landscape, control: mpf, chart: Chart) -> int:
    """The bits that cancel in the gradient and the Hessian at the centre of a cell."""
    bends, centre, bits = landscape.balls(control, 2), [ball(v) for v in chart.point(chart.centre)], LEAST_BITS
    while True:
        with ctx.workprec(bits):
            values = bends(centre)
        known = [value.rel_accuracy_bits() for value in values if not value.contains(0)]
        enough = len(known) == len(values) or bits >= MOST_BITS // 4  # what still may be zero then is taken for it
        if (enough and min(known, default=bits) > LEAST_BITS // 2) or bits >= MOST_BITS:
            return max(0, bits - min(known, default=bits))
        bits *= 2


def _length(side: Side) -> float:
    """The length of a side on a logarithmic scale; infinite if it holds zero."""
    a, b = side
    return abs(_log(b) - _log(a)) if (a > 0) == (b > 0) and not (a.is_zero() or b.is_zero()) else np.inf


def _log(value: Ball) -> float:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    spare = max(0, mantissa.bit_length() - 60)
    return log(abs(mantissa) >> spare) + (exponent + spare) * log(2)


def _extent(cell: Cell) -> float:
    """The length of the longest of the sides that do not hold zero."""
    return max((length for side in cell if (length := _length(side)) < np.inf), default=0.0)


def _middle(a: Ball, b: Ball) -> Ball:
    """Between the ends: halfway on a logarithmic scale if that is long, else off centre, where zero often is."""
    if not 1 < _length((a, b)) < np.inf:
        return (a + (b - a) * 2013 / 4096).mid()
    return ((a * b).sqrt() * a.sgn()).mid()


def _halves(cell: Cell, depth: int) -> list[Cell]:
    """Two parts of a cell, cut across its longer side; if only one holds zero, across either by turns."""
    lengths = [_length(side) for side in cell]
    if depth % 2 and min(lengths) < np.inf:
        lengths = [0 if length == np.inf else length for length in lengths]
    longer = max(range(len(cell)), key=lambda k: (lengths[k], number(cell[k][1] - cell[k][0])))
    a, b = cell[longer]
    middle = _middle(a, b)
    return [tuple(part if k == longer else side for k, side in enumerate(cell)) for part in ((a, middle), (middle, b))]


def _candidates(axes: Sequence[Sequence[Ball]], signs: _Signs, floats: Floats | None) -> list[Cell]:
    """The cells of the grid in which both components may change sign, and the one around zero."""
    if floats is not None:
        mesh = np.meshgrid(*(np.array([float(number(x)) for x in axis]) for axis in axes), indexing="ij")
        mixed = mixed_cells(floats(mesh)[:2])
    else:
        quadrants = np.array([[signs.quadrant((a, b)) for b in axes[1]] for a in axes[0]])
        mixed = mixed_cells((np.where(quadrants % 3 == 0, 1.0, -1.0), np.where(quadrants < 2, 1.0, -1.0)))
    if all(axis[0] < 0 < axis[-1] for axis in axes):  # where a symmetry puts a root, of whatever degree
        mixed[tuple(sum(x < 0 for x in axis) - 1 for axis in axes)] = True
    places = np.argwhere(mixed)[:_MOST_CELLS]
    cells: list[Cell] = [tuple((axis[k], axis[k + 1]) for axis, k in zip(axes, place, strict=True)) for place in places]
    return sorted(cells, key=lambda cell: not _central(cell))  # before points that fill a curve end the search


def _central(cell: Cell) -> bool:
    return all(a < 0 < b for a, b in cell)


def _depth(landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]) -> int:
    """How many decades below the box the grid has to reach: on a strip around zero so thin, the Hessian is constant."""
    bends = landscape.balls(control, 2)
    width = [high - low for low, high in box]

    def hessians(place: Sequence[mpf]) -> list[mpf]:
        with ctx.workprec(512):
            return [number(value) if value.is_finite() else mpf(0) for value in bends([ball(v) for v in place])[2:]]

    def settled(decades: int) -> bool:
        levels = [mpf(0), *(mpf(10) ** -k for k in range(0, decades + 1, max(1, decades // 12)))]
        pairs = []
        for i, j in ((0, 1), (1, 0)):
            for level in levels:
                place = [mpf(0), mpf(0)]
                place[j] = level * width[j] / 2
                beside = list(place)
                beside[i] = width[i] * mpf(10) ** -decades
                pairs.append((hessians(place), hessians(beside)))
        largest = [max(abs(pair[0][k]) for pair in pairs) for k in (0, 2)]
        for here, there in pairs:
            a, b = (abs(here[k]) + mpf("1e-16") * size for k, size in zip((0, 2), largest, strict=True))
            bounds = (a, abs(here[1]) + mpmath.sqrt(a * b), b)
            if any(abs(y - x) > bound / 10 for x, y, bound in zip(here, there, bounds, strict=True)):
                return False
        return True

    decades = _DECADES
    while decades < 1024 and not settled(decades):
        decades *= 2
    return decades
