r"""All stationary points in a box, by branch and prune, and the lowest of them.

.. math:: 0 \notin \nabla F(X) \quad\text{or}\quad 0 \notin \nabla F(m) + H(X)(X - m) \quad\text{or}\quad
          0 \notin \nabla F(m) + H(m)(X - m) + \tfrac12 D^3\!F(X)[X - m, X - m] \quad\text{or}\quad X \subset U_k

Around every known point there is a region U in which it is the only one, because the Hessian is regular over all of it,
or, where the point is of fourth order, because a fourth derivative has one sign. The box is narrowed and halved until every
cell lies in such a region or its gradient, in one of three forms, excludes zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement, product
from math import factorial, inf, prod

from flint import arb, arb_mat, arb_poly

from numerics.balls import Ball
from numerics.certify.intervals import EffortError, ProofError, unit
from numerics.jets import Index

__all__ = ["Cell", "Field", "Region", "cubic_region", "flat_region", "only_these", "region"]

_MOST_CELLS = 30000
_SMALLEST = 64  # halvings of a side
_SHRUNK = 0.6
_DEEPEST = 400
_PIECES, _NARROWED = 64, 3  # of a curve, each of which is narrowed so often

Place = Sequence[Ball]
Cell = tuple[tuple[Ball, Ball], ...]
Field = Callable[[Place, int], Mapping[Index, Ball]]
"""The derivatives of the action up to an order over a place in the space of order parameters."""


@dataclass(frozen=True)
class Region:
    """A box around a known stationary point in which there is no other."""

    sides: tuple[Ball, ...]

    def holds(self, place: Place) -> bool:
        return all(side.contains(part) for side, part in zip(self.sides, place, strict=True))


def region(field: Field, point: Place, widths: Sequence[Ball]) -> Region:
    """As large a region around a regular point as halving the ``widths`` of the box finds."""
    for depth in range(1, _DEEPEST):
        sides = tuple(_about(p, w * arb(2) ** -depth) for p, w in zip(point, widths, strict=True))
        if _regular(_hessian(field(sides, 2), len(point))):
            return Region(sides)
    raise ProofError("around a stationary point there is no region in which it is proven to be the only one")


def cubic_region(field: Field, point: Place, widths: Sequence[Ball]) -> Region:
    """The same around a point of third order in one order parameter: F'' is monotone, and zero at the point alone."""
    for depth in range(1, _DEEPEST):
        side = _about(point[0], widths[0] * arb(2) ** -depth)
        if not field((side,), 3)[0, 0, 0].contains(0):
            return Region((side,))
    raise ProofError("around a point of third order there is no region in which it is proven to be the only one")


def flat_region(field: Field, point: Place, widths: Sequence[Ball]) -> Region:
    r"""The same around a point of fourth order along one order parameter t, the others, x', being relaxed.

    .. math:: g(t) = F(x'(t), t), \qquad \partial_{x'} F(x'(t), t) = 0, \qquad 0 \notin g^{(4)}

    For every t in the region there is one x' in it that makes the action stationary. On this curve g'' is convex, or
    concave, and zero at its extremum, so that g' is monotone.
    """
    for depth, column in product(range(1, _DEEPEST), range(len(point))):
        try:
            sides = _along_a_curve(field, point, widths, column, depth)
        except ZeroDivisionError:
            continue
        if sides is not None:
            return Region(sides)
    raise ProofError("around a point of fourth order there is no region in which it is proven to be the only one")


def _along_a_curve(
    field: Field, point: Place, widths: Sequence[Ball], column: int, depth: int
) -> tuple[Ball, ...] | None:
    """The sides of a region that encloses a piece of the curve along the order parameter ``column``, if it is one."""
    n, reach = len(point), widths[column] * arb(2) ** -depth
    slopes = [abs(line[1]) for line in _curve(field(point, 2), n, column, 1)]
    spans = [2 * slope * reach + width * arb(4) ** -depth for slope, width in zip(slopes, widths, strict=True)]
    sides = tuple(
        _about(p, reach if i == column else span) for i, (p, span) in enumerate(zip(point, spans, strict=True))
    )
    signs = set()
    for part in _pieces(sides[column]):
        piece = _relaxed(field, tuple(part if i == column else side for i, side in enumerate(sides)), column)
        if piece is None:
            return None
        jet = field(piece, 4)
        quartic = _expanded(jet, n, _curve(jet, n, column, 3))[4]
        if quartic.contains(0):
            return None
        signs.add(bool(quartic > 0))
    return sides if len(signs) == 1 else None


def _pieces(side: Ball) -> list[Ball]:
    """The parts of a side of a region, from its ends inwards: there the action is least likely to be seen convex."""
    low, step = side.lower(), (side.upper() - side.lower()) / _PIECES
    parts = [(low + k * step).union(low + (k + 1) * step) for k in range(_PIECES)]
    return sorted(parts, key=lambda part: -float(abs(part - side.mid()).mid()))


def _relaxed(field: Field, sides: tuple[Ball, ...], column: int) -> tuple[Ball, ...] | None:
    """Where in ``sides`` the action is stationary in all order parameters but one, if there it is once for each value of that.

    The Krawczyk operator in the others, for every value at once, and again in what it leaves.
    """
    others = [i for i in range(len(sides)) if i != column]
    for again in range(_NARROWED if others else 0):
        jet, centres = field(sides, 2), [side.mid() for side in sides]
        bends, middle, count = _block(jet, others), field(centres, 1), len(others)
        inverse, there = bends.mid().inv().mid(), sides[column] - centres[column]
        force = [middle[i,] + jet[min(i, column), max(i, column)] * there for i in others]
        spread = arb_mat(count, 1, [sides[i] - centres[i] for i in others])
        shifts = (unit(count) - inverse * bends) * spread - inverse * arb_mat(count, 1, force)
        moved = dict(zip(others, shifts.entries(), strict=True))
        if not again and not all(abs(shift) < sides[i].rad() for i, shift in moved.items()):
            return None
        sides = tuple(
            (centres[i] + moved[i]).intersection(side) if i in moved else side for i, side in enumerate(sides)
        )
    return sides


def _about(centre: Ball, width: Ball) -> Ball:
    return arb(centre.mid(), (width + centre.rad()).upper())


def _block(jet: Mapping[Index, Ball], places: Sequence[int]) -> arb_mat:
    """The Hessian's rows and columns at some places."""
    return arb_mat(len(places), len(places), [jet[min(i, j), max(i, j)] for i in places for j in places])


def _curve(jet: Mapping[Index, Ball], n: int, column: int, order: int) -> list[arb_poly]:
    """How far order parameters move, as polynomials in t, on the curve on which the action is stationary in the others."""
    others, t = [i for i in range(n) if i != column], arb_poly([0, 1])
    curve = [t if i == column else arb_poly([0]) for i in range(n)]
    for power in range(1, order + 1 if others else 0):
        force = [_expanded(jet, n, curve, i)[power] for i in others]
        steps = _block(jet, others).solve(arb_mat(len(others), 1, force)).entries()
        for i, step in zip(others, steps, strict=True):
            curve[i] -= step * t**power
    return curve


def _expanded(jet: Mapping[Index, Ball], n: int, curve: Sequence[arb_poly], *index: int) -> arb_poly:
    """A derivative along a curve, as far as the jet knows it."""
    total = arb_poly([0])
    for size in range(max(map(len, jet)) - len(index) + 1):
        for rest in combinations_with_replacement(range(n), size):
            value = jet[tuple(sorted((*index, *rest)))] / prod(factorial(rest.count(i)) for i in set(rest))
            total += reduce(lambda term, i: term * curve[i], rest, arb_poly([value]))
    return total


def _regular(bends: arb_mat) -> bool:
    """Whether no matrix of balls is singular, nor any average of some."""
    try:
        rows = (bends.mid().inv().mid() * bends - unit(bends.nrows())).tolist()
    except ZeroDivisionError:
        return False
    return all(sum(map(abs, row)) < 1 for row in rows)


def _hessian(jet: Mapping[Index, Ball], n: int) -> arb_mat:
    return _block(jet, range(n))


def only_these(field: Field, box: Cell, regions: Sequence[Region], most: int = _MOST_CELLS) -> int:
    """Prove that outside the regions there is no stationary point in the box; the number of cells that it took.

    Raises `EffortError` where the cells do not end, or are more than ``most``.
    """
    pending, count = [(tuple(box), 0)], 0
    while pending:
        count += 1
        cell, depth = pending.pop()
        parts = [] if any(region.holds(_place(cell)) for region in regions) else _parts(field, cell)
        if parts and (count > most or depth > _SMALLEST * len(box)):
            near = ", ".join(x.mid().str(8, radius=False) for x in _place(cell))
            raise EffortError(
                f"it is not proven that these are all stationary points: there may be one near {near}", cell
            )
        pending += [(part, depth + 1) for part in parts]
    return count


def _place(cell: Cell) -> list[Ball]:
    return [low.union(high) for low, high in cell]


def _parts(field: Field, cell: Cell) -> list[Cell]:
    """What is left of a cell in which the gradient may vanish: a smaller one, or two of them; nothing if it cannot."""
    n, place = len(cell), _place(cell)
    over = field(place, 3)
    if any(not over[i,].contains(0) for i in range(n)):
        return []
    middle = [_off_centre(a, b) for a, b in cell]
    at, bends = field(middle, 2), _hessian(over, n)
    slope = arb_mat(n, 1, [at[i,] for i in range(n)])
    spread = [side - centre for side, centre in zip(place, middle, strict=True)]
    if any(not entry.contains(0) for form in _forms(slope, at, over, spread) for entry in form.entries()):
        return []
    shrunk = []
    for i, (side, centre) in enumerate(zip(place, middle, strict=True)):
        force = slope[i, 0] + sum((bends[i, j] * spread[j] for j in range(n) if j != i), arb(0))
        solution = centre - force / bends[i, i]
        if solution.is_finite() and not solution.overlaps(side):
            return []
        shrunk.append(solution.intersection(side) if solution.is_finite() else side)
        spread[i] = shrunk[i] - centre
    smaller = tuple((max(a, s.lower()), min(b, s.upper())) for (a, b), s in zip(cell, shrunk, strict=True))
    axis = _widest(smaller, bends)  # a side may shrink for ever where it is another one that has to be cut
    return [smaller] if shrunk[axis].rad() < _SHRUNK * place[axis].rad() else _halves(smaller, axis)


def _forms(
    slope: arb_mat, at: Mapping[Index, Ball], over: Mapping[Index, Ball], spread: Sequence[Ball]
) -> Iterator[arb_mat]:
    """Enclosures of the gradient: of first order, and of second order times an inverse of the Hessian."""
    n, moved = len(spread), arb_mat(len(spread), 1, spread)
    yield slope + _hessian(over, n) * moved
    bends = _hessian(at, n)
    if all(entry.is_finite() for entry in bends.entries()):
        try:
            inverse = bends.mid().inv().mid()
        except ZeroDivisionError:
            return
        pairs = list(product(range(n), repeat=2))
        curved = [
            sum((over[tuple(sorted((i, *p)))] * spread[p[0]] * spread[p[1]] for p in pairs), arb(0)) for i in range(n)
        ]
        yield inverse * slope + (inverse * bends) * moved + inverse * arb_mat(n, 1, curved) / 2


def _widest(cell: Cell, bends: arb_mat) -> int:
    """The side along which a component of the gradient varies most, as a share of how it varies in all."""
    sides = [float((b - a).upper()) for a, b in cell]
    shares = [0.0] * len(cell)
    for row in bends.tolist():
        spans = [float(abs(entry).upper()) * side for entry, side in zip(row, sides, strict=True)]
        if 0 < sum(spans) < inf:
            shares = [max(share, span / sum(spans)) for share, span in zip(shares, spans, strict=True)]
    return max(range(len(cell)), key=lambda k: (shares[k], sides[k]))


def _halves(cell: Cell, axis: int) -> list[Cell]:
    a, b = cell[axis]
    cut = _off_centre(a, b)
    return [tuple(part if k == axis else side for k, side in enumerate(cell)) for part in ((a, cut), (cut, b))]


def _off_centre(a: Ball, b: Ball) -> Ball:
    """Between two numbers, but not halfway: zero is special as a rule."""
    return (a + (b - a) * 2013 / 4096).mid()
