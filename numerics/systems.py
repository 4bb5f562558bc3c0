r"""Defining systems: each kind of transition as the root of one regular system, with its exact Jacobian.

.. math:: \text{spinodal: } \nabla F = 0,\; H v = 0,\; \ell \cdot v = 1 \qquad
          \text{coexistence: } \nabla F(x_1) = \nabla F(x_2) = 0,\; F(x_1) = F(x_2)

A fold of the control, a crossing of two actions or a cusp is located on a branch only as well as the branch is known;
as the regular root of its own system it is known to any number of digits. Sources: Moore and Spence (1980) for the fold,
Werner and Spence (1984) for symmetry-breaking bifurcations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mpmath import mpf

from numerics.landscape import Landscape, curvature, gradient, hessian
from numerics.newton import Matrix, System, Vector, dot

if TYPE_CHECKING:
    from derive.action import Observable

__all__ = ["coexistence", "critical_end", "crossing", "fold", "instability", "steepest"]


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


def instability(
    landscape: Landscape, normal: Sequence[mpf], offset: Callable[[Sequence[mpf]], tuple[mpf, Vector]]
) -> System:
    """Unknowns (x, control, v, slack): a point on a symmetric branch whose Hessian has the null vector v.

    The fold's system is singular there, because the branch goes on; ``offset`` (with its gradient) vanishes on the
    branch and fixes the amplitude along v, and a multiple, ``slack``, of ``normal`` added to the gradient balances the
    count. The slack of a true instability is zero.
    """
    n = landscape.n
    jet = landscape.jet(*landscape.cubic)

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        x, control, v, slack = y[:n], y[n], y[n + 1 : 2 * n + 1], y[2 * n + 1]
        values = jet(x, control)
        h, bent = hessian(values, n), curvature(values, n, v)
        drift, turn = gradient(values, n, (n,)), _times(hessian(values, n, (n,)), v)
        distance, slope = offset(x)
        rows = [[*h[i], drift[i], *_zeros(n), normal[i]] for i in range(n)]
        rows += [[*bent[i], turn[i], *h[i], mpf(0)] for i in range(n)]
        rows += [[*_zeros(n + 1), *normal, mpf(0)], [*slope, *_zeros(n + 2)]]
        forced = [g + slack * e for g, e in zip(gradient(values, n), normal, strict=True)]
        return [*forced, *_times(h, v), dot(normal, v) - 1, distance], rows

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


def critical_end(landscape: Landscape) -> System:
    """Unknowns (s, control, size): F' = F'' = F''' = 0, where two minima and the maximum between them merge."""
    jet = landscape.jet(((), 4), ((1,), 3), ((2,), 3))

    def system(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        f = jet(y[:1], y[1], y[2])
        orders = [(0,) * k for k in (1, 2, 3)]
        return [f[order] for order in orders], [[f[(*order, k)] for k in range(3)] for order in orders]

    return system
