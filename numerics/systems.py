r"""Defining systems: each kind of transition as the root of one regular system, with its exact Jacobian.

.. math:: \text{spinodal: } \nabla F = 0,\; H v = 0,\; \ell \cdot v = 1 \qquad
          \text{coexistence: } \nabla F(x_1) = \nabla F(x_2) = 0,\; F(x_1) = F(x_2)

A fold of the control, a crossing of two actions or a cusp is located on a branch only as well as the branch is known;
as the regular root of its own system it is known to any number of digits. Sources: Moore and Spence (1980) for the fold,
Moore (1980) for crossing branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from mpmath import mpf

from numerics.jets import Jet
from numerics.landscape import Landscape, curvature, gradient, hessian
from numerics.newton import Matrix, System, Vector, dot, linear_solve

if TYPE_CHECKING:
    from derive.action import Observable

__all__ = ["coexistence", "critical_end", "crossing", "fold", "instability", "landau", "steepest"]


def _zeros(count: int) -> Vector:
    return [mpf(0)] * count


def _times(matrix: Matrix, vector: Sequence[mpf]) -> Vector:
    return [dot(row, vector) for row in matrix]


def fold(landscape: Landscape, normal: Sequence[mpf]) -> System:
    """Unknowns (x, control, v): a stationary point whose Hessian has the null vector v, ``normal`` . v = 1."""
    n = landscape.n
    jet = landscape.jet(*landscape.cubic)

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        x, control, v = y[:n], y[n], y[n + 1 :]
        values = jet(x, control)
        h, bent = hessian(values, n), curvature(values, n, v)
        drift, turn = gradient(values, n, (n,)), _times(hessian(values, n, (n,)), v)
        rows = [[*h[i], drift[i], *_zeros(n)] for i in range(n)]
        rows += [[*bent[i], turn[i], *h[i]] for i in range(n)]
        return [*gradient(values, n), *_times(h, v), dot(normal, v) - 1], [*rows, [*_zeros(n + 1), *normal]]

    return system


def instability(landscape: Landscape, normal: Sequence[mpf]) -> System:
    """Unknowns (x, control, v, slack): a point at which two branches cross, whose Hessian has the null vector v.

    The fold's system is singular there, because the branches go on: along v the gradient does not change with the control,
    which is one equation more, and a multiple, ``slack``, of ``normal`` added to the gradient balances the count. The
    slack of a true crossing is zero.
    """
    n = landscape.n
    jet = landscape.jet(*landscape.cubic, ((n, n), 1))

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        x, control, v, slack = y[:n], y[n], y[n + 1 : 2 * n + 1], y[2 * n + 1]
        values = jet(x, control)
        h, bent = hessian(values, n), curvature(values, n, v)
        drift, turn = gradient(values, n, (n,)), _times(hessian(values, n, (n,)), v)
        rows = [[*h[i], drift[i], *_zeros(n), normal[i]] for i in range(n)]
        rows += [[*bent[i], turn[i], *h[i], mpf(0)] for i in range(n)]
        rows += [[*_zeros(n + 1), *normal, mpf(0)], [*turn, dot(v, gradient(values, n, (n, n))), *drift, mpf(0)]]
        forced = [g + slack * e for g, e in zip(gradient(values, n), normal, strict=True)]
        return [*forced, *_times(h, v), dot(normal, v) - 1, dot(v, drift)], rows

    return system


def coexistence(landscape: Landscape) -> System:
    """Unknowns (x_1, x_2, control): two stationary points of equal action."""
    n = landscape.n

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        first, second = landscape.slopes(y[:n], y[2 * n]), landscape.slopes(y[n : 2 * n], y[2 * n])
        rows = [
            [*row, *_zeros(n), drift] for row, drift in zip(hessian(first, n), gradient(first, n, (n,)), strict=True)
        ]
        rows += [
            [*_zeros(n), *row, drift] for row, drift in zip(hessian(second, n), gradient(second, n, (n,)), strict=True)
        ]
        rows.append([*gradient(first, n), *(-g for g in gradient(second, n)), first[(n,)] - second[(n,)]])
        return [*gradient(first, n), *gradient(second, n), first[()] - second[()]], rows

    return system


def crossing(landscape: Landscape, observable: Observable) -> System:
    """Unknowns (x, control): a stationary point at which ``observable`` has its crossover level."""
    n = landscape.n
    watched = landscape.observable_jet(observable)

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        values, seen = landscape.slopes(y[:n], y[n]), watched(y[:n], y[n])
        rows = [[*row, drift] for row, drift in zip(hessian(values, n), gradient(values, n, (n,)), strict=True)]
        level = landscape.level(observable, y[n])
        return [*gradient(values, n), seen[()] - level], [*rows, [*gradient(seen, n), seen[(n,)]]]

    return system


def steepest(landscape: Landscape) -> System:
    r"""Unknowns (s, control, slope): the point of one order parameter's branch at which its slope ds/dcontrol is extreme.

    .. math:: F_s = 0,\quad F_{ss} s' + F_{s\lambda} = 0,\quad F_{sss} s'^2 + 2 F_{ss\lambda} s' + F_{s\lambda\lambda} = 0
    """
    jet = landscape.jet(((), 4), ((1,), 3), ((1, 1), 2), ((1, 1, 1), 1))

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        f, slope = jet(y[:1], y[1]), y[2]

        def bend(*extra: int) -> mpf:
            return f[(0, 0, 0, *extra)] * slope**2 + 2 * f[(0, 0, 1, *extra)] * slope + f[(0, 1, 1, *extra)]

        rows = [
            [f[0, 0], f[0, 1], mpf(0)],
            [f[0, 0, 0] * slope + f[0, 0, 1], f[0, 0, 1] * slope + f[0, 1, 1], f[0, 0]],
            [bend(0), bend(1), 2 * (f[0, 0, 0] * slope + f[0, 0, 1])],
        ]
        return [f[(0,)], f[0, 0] * slope + f[0, 1], bend()], rows

    return system


def critical_end(landscape: Landscape, normal: Sequence[mpf]) -> System:
    """Unknowns (x, control, size, v): two minima and the saddle between them merge, H v = 0 and D^3 F[v, v, v] = 0."""
    n = landscape.n
    jet = landscape.jet(*landscape.quartic)

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        x, control, size, v = y[:n], y[n], y[n + 1], y[n + 2 :]
        f = jet(x, control, size)
        h, bent = hessian(f, n), _times(curvature(f, n, v), v)
        turns = [_times(hessian(f, n, (k,)), v) for k in range(n + 2)]
        rows = [[f[i, k] for k in range(n + 2)] + _zeros(n) for i in range(n)]
        rows += [[*(turn[i] for turn in turns), *h[i]] for i in range(n)]
        rows.append([*_zeros(n + 2), *normal])
        rows.append([*(dot(v, _times(curvature(f, n, v, (k,)), v)) for k in range(n + 2)), *(3 * b for b in bent)])
        return [*gradient(f, n), *_times(h, v), dot(normal, v) - 1, dot(v, bent)], rows

    return system


def landau(values: Jet, n: int, v: Sequence[mpf], dual: Sequence[mpf]) -> tuple[mpf, mpf, mpf]:
    r"""The cubic and quartic coefficients of the action along the null vector v, all other directions relaxed.

    .. math:: F(x + \epsilon v) = F + \tfrac{\epsilon^3}{6} F_{vvv}
              + \tfrac{\epsilon^4}{24} \big(F_{vvvv} - 3\, w H^{-1} w\big), \qquad w = F_{xvv}

    The third result is the size of the terms that they are made of, against which either may be said to vanish.
    """
    places = range(n)
    w = _times(curvature(values, n, v), v)
    bordered = [[*row, d] for row, d in zip(hessian(values, n), dual, strict=True)] + [[*dual, mpf(0)]]
    relaxed = linear_solve(bordered, [*w, mpf(0)])[:n] if any(w) else _zeros(n)
    terms = [values[i, j, k, m] * v[i] * v[j] * v[k] * v[m] for i, j, k, m in product(places, repeat=4)]
    gain, magnitude = 3 * dot(w, relaxed), dot([abs(a) for a in v], [abs(a) for a in w])
    return dot(v, w), sum(terms, mpf(0)) - gain, max(sum(map(abs, terms), abs(gain)), magnitude)
