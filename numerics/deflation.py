r"""Deflation: Newton's method that does not return to the roots it is told of.

.. math:: M(x)\, \nabla F(x) = 0, \qquad M(x) = \prod_k \big( |x - x_k|^{-2} + 1 \big)

Newton's step of the product is that of the gradient, d, times a number, so that it costs no more:

.. math:: d \mapsto \frac{d}{1 + m \cdot d}, \qquad
          m = \nabla \ln M = -\sum_k \frac{2 (x - x_k)}{|x - x_k|^2 (1 + |x - x_k|^2)}

Pros: from one and the same starts it goes on to further roots, also to those that no sign of the gradient on a grid tells
of, such as a pair between two nodes. Cons: floats, and no claim that none is left. Source: Farrell, Birkisson and Funke,
SIAM J. Sci. Comput. 37 (2015) A2026.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["deflated"]

Array = NDArray[np.float64]
Field = Callable[[Sequence[Array]], tuple[Array, ...]]

_STEPS = 60
_LONGEST = 0.1  # of the box: a step
_CONVERGED = 1e-9
_APART = 1e-6
_SINGULAR = 1e14


def deflated(field: Field, box: Array, known: Array, starts: Array) -> Array:
    """Roots of the gradient that are not among those ``known``, from ``starts``: rows of coordinates, 0 to 1 in ``box``.

    ``field`` is the gradient and the Hessian (upper triangle) in true coordinates; a row of ``box`` is (low, high).
    """
    x, n = starts.copy(), box.shape[0]
    width = box[:, 1] - box[:, 0]
    converged = np.zeros(len(x), dtype=bool)
    for _ in range(_STEPS):
        step = _newton(field, box[:, 0] + x * width, n) / width
        away = x[:, None, :] - known[None, :, :]
        r2 = np.maximum((away**2).sum(axis=2), 1e-30)
        m = -(2 * away / (r2 * (1 + r2))[:, :, None]).sum(axis=1)
        with np.errstate(all="ignore"):
            step = step / (1 + (m * step).sum(axis=1))[:, None]
        size = np.sqrt((step**2).sum(axis=1))
        usable = np.isfinite(size)
        converged = usable & (size < _CONVERGED)
        step[~usable], size[~usable] = 0, 0
        x = x - step * np.minimum(1, _LONGEST / np.maximum(size, _LONGEST))[:, None]
    inside = converged & np.all((x >= 0) & (x <= 1), axis=1)
    found: list[Array] = []
    for candidate in x[inside]:
        others = [*known, *found]
        if all(np.abs(candidate - other).max() > _APART for other in others):
            found.append(candidate)
    return np.array(found).reshape(-1, n)


def _newton(field: Field, x: Array, n: int) -> Array:
    """Newton's step, to be subtracted; nan where the Hessian is singular or something is not finite."""
    values = field([x[:, k] for k in range(n)])
    gradient = np.stack([np.broadcast_to(v, len(x)) for v in values[:n]], axis=1)
    hessian = np.empty((len(x), n, n))
    for value, (i, j) in zip(values[n:], zip(*np.triu_indices(n), strict=True), strict=True):
        hessian[:, i, j] = hessian[:, j, i] = value
    step = np.full_like(gradient, np.nan)
    with np.errstate(all="ignore"):
        finite = np.isfinite(gradient).all(axis=1) & np.isfinite(hessian).all(axis=(1, 2))
        condition = np.linalg.cond(np.where(np.expand_dims(finite, (1, 2)), hessian, 0))
        good = np.flatnonzero(finite & (condition < _SINGULAR))
        step[good] = np.linalg.solve(hessian[good], gradient[good][:, :, None])[:, :, 0]
    return step
