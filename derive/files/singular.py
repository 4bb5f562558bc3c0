r"""Where an action has a pole, a jump or a kink between its bounds: found by what vanishes there, and tried on both sides.

.. math:: g(x_0) = 0, \qquad \partial_x^k F(x_0 \pm h) = \partial_x^k F(x_0 \pm 10^{-3} h) \text{ for } k = 0, 1, 2

g is the argument with which a part of F is singular: the base of a negative or broken power, the argument of a logarithm,
1/Gamma of one of a factorial. Not every such place is a fault: sin(x)/x goes on through zero, as does exp(-1/x^2). A zero
of g is seen on a line by a change of sign, or where the size of g has a minimum that is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import mpmath
from mpmath import mpf
from sympy import Expr, LambertW, Pow, S, Symbol, atanh, gamma, lambdify, log, loggamma

__all__ = ["sides", "zeros"]

Function = Callable[[Any], Any]

_NODES = 96  # of a line between bounds
_DIGITS = 600  # what quotients lose around a zero, up to the eighth power of h, is well inside
_ASIDE = mpf("1e-50")  # h
_NEARER = mpf("1e-3")  # of h
_ROUGH = 50  # digits of what only tells where to look
_TURNS, _LARGE = 60, mpf("1e-12")  # thirds are taken (2/3)^60 = 3e-11; the size of a double zero there, with a margin
_NONE = mpf("1e-90")  # of what g is elsewhere: zero, where the size of g has a minimum
_WALL = mpf("1e-9")  # of the line: what is nearer to a bound is at the bound


def zeros(value: Expr, x: Symbol, low: mpf, high: mpf) -> list[mpf]:
    """The places between ``low`` and ``high`` where a part of ``value``, a function of ``x`` alone, may be singular."""
    found: list[mpf] = []
    with mpmath.workdps(_DIGITS):
        nodes = [low + (high - low) * k / _NODES for k in range(_NODES + 1)]
        for argument in dict.fromkeys(_arguments(value)):
            if argument.free_symbols == {x}:
                found += _zeros(lambdify(x, argument, "mpmath"), nodes)
        inset = (high - low) * _WALL
        found = [mpf(0) if abs(place) < inset**2 else place for place in found]
        places: list[mpf] = []
        for place in sorted(found):
            if low + inset < place < high - inset and not (places and place - places[-1] <= inset):
                places.append(place)
    return places


def sides(value: Expr, x: Symbol, place: mpf) -> Iterator[tuple[int, mpf, mpf]]:
    """Pairs of ``value`` and of its first and second derivative around ``place``, equal where it goes on smoothly.

    Each comes with the order of the derivative; what is not real there is ``nan``.
    """
    with mpmath.workdps(_DIGITS):
        far, near = _ASIDE, _ASIDE * _NEARER
        for order in range(3):
            function = lambdify(x, value.diff(x, order), "mpmath")
            first, *others = (_real(function, place + step) for step in (-far, far, -near, near))
            for other in others:
                yield order, first, other


def _arguments(value: Expr) -> Iterator[Expr]:
    """What a part of ``value`` may be singular with, where it vanishes."""
    for node in value.atoms(Pow):
        if not (node.exp.is_integer and node.exp.is_nonnegative):
            yield node.base
    for node in value.atoms(log):
        yield node.args[0]
    for node in value.atoms(gamma, loggamma):
        yield 1 / gamma(node.args[0])
    for node in value.atoms(atanh):
        yield 1 - node.args[0] ** 2
    for node in value.atoms(LambertW):
        yield 1 + S.Exp1 * node.args[0]


def _real(function: Function, x: mpf) -> mpf:
    try:
        value = mpmath.mpmathify(function(x))
    except (ValueError, ZeroDivisionError, OverflowError):  # a pole, or too large for a number
        return mpf("nan")
    return value if isinstance(value, mpf) else mpf("nan")


def _zeros(g: Function, nodes: list[mpf]) -> Iterator[mpf]:
    with mpmath.workdps(_ROUGH):
        sizes = [_real(g, x) for x in nodes]
    for (a, b), (u, v) in zip(pairwise(nodes), pairwise(sizes), strict=True):
        if u == 0:
            yield a
        elif u * v < 0:
            yield _crossing(g, a, b, u)
        elif mpmath.isnan(u) != mpmath.isnan(v):  # g has an end there, and with it the whole
            yield _end(g, a, b)
    largest = max((abs(u) for u in sizes if mpmath.isfinite(u)), default=mpf(0))
    for (a, _, b), (u, v, w) in zip(
        zip(nodes, nodes[1:], nodes[2:], strict=False), zip(sizes, sizes[1:], sizes[2:], strict=False), strict=True
    ):
        if u * v > 0 and v * w > 0 and abs(v) <= min(abs(u), abs(w)):
            x = _smallest(g, a, b, largest * _LARGE)
            if x is not None and abs(_real(g, x)) <= largest * _NONE:
                yield x


def _crossing(g: Function, a: mpf, b: mpf, at_a: mpf) -> mpf:
    """Between ``a`` and ``b``, where g changes its sign: by halves and then by secants, or by halves where these are slow."""
    with mpmath.workdps(_ROUGH):
        near = _halved(a, b, lambda x: _real(g, x) * at_a > 0, _TURNS)
    x, y = near
    u, v = _real(g, x), _real(g, y)
    for _ in range(_TURNS):
        if u == v or not near[0] <= y <= near[1]:
            break
        x, y, u = y, y - v * (y - x) / (v - u), v
        v = _real(g, y)
        if v == 0 or abs(y - x) <= mpf(10) ** (100 - _DIGITS):
            return y
    return _middle(_halved(a, b, lambda x: _real(g, x) * at_a > 0))


def _end(g: Function, a: mpf, b: mpf) -> mpf:
    none = mpmath.isnan(_real(g, a))
    return _middle(_halved(a, b, lambda x: mpmath.isnan(_real(g, x)) == none))


def _halved(a: mpf, b: mpf, like_a: Callable[[mpf], bool], turns: int = int(_DIGITS * 3.33)) -> tuple[mpf, mpf]:
    for _ in range(turns):
        middle = _middle((a, b))
        a, b = (middle, b) if like_a(middle) else (a, middle)
    return a, b


def _middle(ends: tuple[mpf, mpf]) -> mpf:
    return (ends[0] + ends[1]) / 2


def _smallest(g: Function, a: mpf, b: mpf, large: mpf) -> mpf | None:
    """Where the size of g is smallest between ``a`` and ``b``: by thirds, or where g changes its sign after all.

    ``None`` where it is still as ``large`` when a double zero would have made it far smaller.
    """
    begin, start = _real(g, a), a
    for turn in range(4 * _DIGITS):
        if turn == _TURNS:
            with mpmath.workdps(_ROUGH):
                if abs(_real(g, (a + b) / 2)) > large:
                    return None
        left, right = a + (b - a) / 3, b - (b - a) / 3
        with mpmath.workdps(_ROUGH if turn < _TURNS else _DIGITS):
            low, high = _real(g, left), _real(g, right)
        for x, u in ((left, low), (right, high)):
            if u * begin < 0:
                return _crossing(g, start, x, begin)
        a, b = (a, right) if abs(low) <= abs(high) else (left, b)
    return (a + b) / 2
