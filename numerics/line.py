r"""Every stationary point of an action of one order parameter, proved.

.. math:: 0 \notin F'(\mathrm{cell}) \quad\text{or}\quad 0 \notin F''(\mathrm{cell})

The box is halved until on every cell a ball excludes a root of F', or excludes one of F'', so that F' is monotone there
and its signs at the ends decide. What stays open at any precision is a degenerate point; what stays open because the
balls are too wide is sampled, without a claim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import mpmath
from flint import ctx
from mpmath import mpf

from numerics.balls import Ball, ball, number
from numerics.cell import COVER_DPS, Chart, Place, Root, Side, bracket, signed, solved
from numerics.emit.runtime import UndefinedError
from numerics.landscape import Landscape

__all__ = ["on_a_line"]

_RUNGS = ((160, 20), (160, 40), (640, 160), (2560, 640))  # bits, and how often the box, or 1 if that is less, is halved
_MOST_OPEN = 256
_MOST_CELLS = 12000
_MOST_SAMPLES = 1000


def on_a_line(
    landscape: Landscape, control: mpf, box: Sequence[tuple[mpf, mpf]]
) -> tuple[list[Root], bool | None, bool]:
    slopes = landscape.balls(control, 3)
    low, high = (ball(end) for end in box[0])
    pending, monotone, spent = [(low, high)], [], False
    for bits, depth in _RUNGS:
        with ctx.workprec(bits):
            found, pending, spent = _halved(slopes, pending, (high - low).min(1) * Ball(2) ** -depth)
        monotone += found
        spent = spent or len(pending) > _MOST_OPEN
        if spent or not pending:
            break
    clusters = _merged(pending, (pending[-1][1] - pending[0][0]) / _MOST_SAMPLES if pending and spent else None)
    roots = [_bracketed(landscape, control, side) for side in monotone if _changes(landscape, control, slopes, side)]
    doubtful = [_cluster(landscape, control, slopes, side, spent) for side in clusters]
    roots += [root for root in doubtful if root is not None]
    # What is left is a cluster around a degenerate point, or nothing is known there.
    complete = None if spent or None in doubtful else True
    if not spent and any(_unlisted(slopes, side) for side in clusters):
        complete = False
    isolated = not (spent and all(_undecided(slopes, side) for side in clusters))
    roots = roots if isolated else [root for root in roots if root.index is not None]
    return sorted(roots, key=lambda root: root.x), complete, isolated


def _halved(
    slopes: Callable[[Place], Place], cells: Sequence[Side], least: Ball
) -> tuple[list[Side], list[Side], bool]:
    """Cells on which F' is monotone, cells that stay open, and whether the budget ended."""
    pending, monotone, left = deque(cells), [], []
    budget = _MOST_CELLS
    while pending and budget:
        budget -= 1
        a, b = pending.popleft()
        whole = a.union(b)
        slope, bend, third = slopes((whole,))
        if not slope.contains(0):
            continue
        if bend.contains(0):
            middle = (a + (b - a) * 2013 / 4096).mid()  # off centre: zero is special as a rule
            here = slopes((middle,))
            bend = here[1] + third * (whole - middle)
            if not (here[0] + bend * (whole - middle)).contains(0):
                continue
        if not bend.contains(0):
            monotone.append((a, b))
        elif b - a < least:
            left.append((a, b))
        else:
            pending += [(a, middle), (middle, b)]
    return monotone, sorted([*left, *pending], key=lambda side: number(side[0])), bool(pending)


def _undecided(slopes: Callable[[Place], Place], side: Side) -> bool:
    """Whether F' cannot be told from zero in the middle of a cell."""
    with ctx.workprec(_RUNGS[-1][0]):
        value = slopes((((side[0] + side[1]) / 2).mid(),))[0]
    return bool(value.is_finite() and value.contains(0))


def _merged(cells: Sequence[Side], least: Ball | None) -> list[Side]:
    """Neighbouring cells joined: all of them, or as long as they are shorter than ``least``."""
    merged: list[Side] = []
    for a, b in cells:
        if merged and (merged[-1][1] - a).is_zero() and (least is None or b - merged[-1][0] < least):
            merged[-1] = (merged[-1][0], b)
        else:
            merged.append((a, b))
    return merged


def _changes(landscape: Landscape, control: mpf, slopes: Callable[[Place], Place], side: Side) -> bool:
    """Whether F' has opposite signs at the ends, or is zero on a wall; where balls know nothing, `mpmath` is asked.

    Where F' has no value either, it has no sign.
    """
    with ctx.workprec(_bits(side)):
        finite = slopes((side[0],))[0].is_finite()
    if finite:
        low, high = (signed(lambda end=end: slopes((end,))[:1], most=_RUNGS[-1][0])[0] for end in side)  # type: ignore[misc]
        on_wall = landscape.action.order_parameters[0].edge and number(side[0]) == landscape.box(control)[0][0]
        return bool((low < 0) != (high < 0) or (on_wall and low.contains(0)))
    try:
        with mpmath.workprec(_bits(side)):
            below, above = (landscape.slopes((number(end),), control)[(0,)] for end in side)
    except UndefinedError:
        return False
    return bool((below < 0) != (above < 0))


def _bits(side: Side) -> int:
    """A precision that tells places in a cell apart, however close to its end the cell may be."""
    size, width = max(map(abs, map(number, side))), number(side[1] - side[0])
    return int(mpmath.mp.prec + max(0, mpmath.mag(size) - mpmath.mag(width)))


def _dips(slopes: Callable[[Place], Place], side: Side) -> bool:
    """Whether F' tends to zero from both ends."""
    low, high = (signed(lambda end=end: slopes((end,))[:2], most=_RUNGS[-1][0]) for end in side)  # type: ignore[misc]
    return bool(low[0] * low[1] < 0 and high[0] * high[1] > 0)


def _finite(slopes: Callable[[Place], Place], side: Side) -> bool:
    return bool(slopes((side[0].union(side[1]),))[0].is_finite())


def _unlisted(slopes: Callable[[Place], Place], side: Side) -> bool:
    """Whether F' has a zero where it has no finite value, as x + exp(-1/x^2)/x^3 at x = 0.

    It changes its sign there, and is smaller by more than half at both ends of the cell than a cell's width away from
    them, which it is at no pole and no jump.
    """
    if _finite(slopes, side):
        return False
    a, b = side
    with ctx.workprec(_bits(side)):
        near, far = (tuple(slopes((end,))[0] for end in ends) for ends in ((a, b), (2 * a - b, 2 * b - a)))
        falls = all(2 * abs(x) < abs(y) for x, y in zip(near, far, strict=True))
        return bool(falls and near[0] * near[1] < 0)  # balls that know nothing compare as false


def _touched(landscape: Landscape, control: mpf, side: Side) -> Root | None:
    """A degenerate root, if Newton's method finds one."""
    chart = Chart(((number(side[0]), number(side[1])),))
    root = solved(landscape, control, chart, chart.centre, COVER_DPS)
    return root if root is not None and root.index is None else None


def _bracketed(landscape: Landscape, control: mpf, side: Side, monotone: bool = True) -> Root:
    """A root on a cell at whose ends F' has opposite signs; where F' is ``monotone``, it is the only one and regular."""
    a, b = number(side[0]), number(side[1])
    chart = Chart(((a, b),))

    def slope(t: mpf) -> mpf:
        return landscape.slopes(chart.point((t,)), control)[(0,)]

    with mpmath.workprec(_bits(side)):
        (low,), (high,) = chart.inverse((a,)), chart.inverse((b,))
        width = abs(high - low)  # of a negative cell, the chart begins at the upper end
        close = bracket(slope, low, high, width * mpf("1e-12"))
        run = solved(landscape, control, chart, (close,), mpmath.mp.dps)
        if run is not None and not (monotone and run.index is None):
            return run
        x = chart.point((bracket(slope, low, high, width * mpf("1e-24")),))
        return Root(x, (abs(x[0]) or b - a,), 0 if slope(high) > slope(low) else 1, mpmath.mp.dps)


def _cluster(
    landscape: Landscape, control: mpf, slopes: Callable[[Place], Place], side: Side, spent: bool
) -> Root | None:
    """A degenerate root that no precision resolves.

    Where only the budget ended, a root if the signs at the ends say so, or one in which F' touches zero.
    """
    a, b = number(side[0]), number(side[1])
    if spent:
        if _changes(landscape, control, slopes, side):
            return _bracketed(landscape, control, side, monotone=False)
        return _touched(landscape, control, side) if _dips(slopes, side) else None
    if not _finite(slopes, side):
        return None
    x = mpf(0) if a <= 0 < b else (a + b) / 2
    return Root((x,), (abs(x) or abs(landscape.box(control)[0][1]),), None)
