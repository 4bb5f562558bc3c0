r"""Grids of standard normal variables, and their reduction by symmetries that are found by trial.

.. math:: F_k(P \xi) = \pm F_k(\xi) \;\Rightarrow\; \langle F_k \rangle = \pm \langle F_k \rangle

P permutes and reflects the variables. A symmetry saves nodes, and an integrand that is odd under one has the average zero,
exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations, product
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_hermitenorm

from numerics.averages.ensemble import Array
from numerics.averages.estimate import evaluated
from numerics.averages.frame import Frame
from numerics.averages.proximal import Mirrors

__all__ = ["grid", "hermite", "legendre", "reduced", "trapezoidal"]

_FAR = 26.0  # beyond it the exponential of x^2 overflows
_TRIALS = 3
_TOLERANCE = 1e-10
_CANDIDATES = 4096


def grid(axes: Sequence[Array]) -> Array:
    """All combinations of nodes, (axes, nodes); of no axes there is one."""
    if not axes:
        return np.zeros((0, 1))
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")])


@lru_cache(maxsize=64)
def hermite(nodes: int) -> tuple[Array, Array]:
    """Gauss-Hermite nodes and weights for the standard normal density, but for nodes that weigh less than 10^-150."""
    x, w = roots_hermitenorm(nodes)  # by asymptotic series where there are many, for which recurrences overflow
    near = np.abs(x) < _FAR
    return x[near], w[near] / w.sum()


@lru_cache(maxsize=64)
def legendre(nodes: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights between -1 and 1."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x, w


def trapezoidal(step: float, reach: float) -> tuple[Array, Array]:
    """Midpoints of cells of width ``step`` that cover -``reach`` to ``reach``, with standard normal weights."""
    half = ceil(reach / step - 1e-9)
    x = (np.arange(-half, half) + 0.5) * step
    w = np.exp(-(x**2) / 2)
    return x, w / w.sum()


def reduced(
    frame: Frame, mirrors: Mirrors, axes: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """A product over the first variables of a frame, one node of each orbit of the symmetries with the weight of all.

    Returns nodes, weights, and which averages the symmetries make vanish. A symmetry must also leave the Moreau envelope
    and |z* - c| as they are. Nodes in the corners, whose weight is far below that of the end of an axis, are left out.
    """
    counts = [len(x) for x, _ in axes]
    symmetries, odd = _symmetries(frame, mirrors, tuple(x.tobytes() for x, _ in axes))
    each = grid([w for _, w in axes]).prod(axis=0)
    weights = np.bincount(_orbits(symmetries, counts), each, len(each))
    kept = (weights > 0) & (each > 0.1 * min((w.min() / w.max() for _, w in axes), default=1.0) * each.max())
    return grid([x for x, _ in axes])[:, kept], weights[kept] / weights[kept].sum(), odd


@lru_cache(maxsize=64)
def _symmetries(frame: Frame, mirrors: Mirrors, rules: tuple[bytes, ...]) -> tuple[list[_Signed], NDArray[np.bool_]]:
    """The symmetries, which permute only variables under the same rule, and the averages that they make vanish."""
    ensemble = frame.ensemble
    held = sum(ensemble.shared.variables)
    kinds = [*rules, *("fields" for _ in range(len(rules), ensemble.dimension - 1)), "line"]
    points = np.random.default_rng(0).standard_normal((ensemble.dimension, _TRIALS))
    candidates = list(_candidates([(kind, place < held) for place, kind in enumerate(kinds)]))
    images = [candidate.signs[:, None] * points[candidate.order] for candidate in candidates]
    at = np.concatenate([points, *images], axis=1)
    values = evaluated(ensemble, frame.values, at, frame.columns, mirrors).reshape(ensemble.size + 2, -1, _TRIALS)
    slack = _TOLERANCE * np.abs(values[:, :1]).max(axis=2)
    even = np.abs(values[:, 1:] - values[:, :1]).max(axis=2) <= slack
    opposite = np.abs(values[:, 1:] + values[:, :1]).max(axis=2) <= slack
    holds = (even | opposite).all(axis=0) & even[-2:].all(axis=0)
    return [part for part, kept in zip(candidates, holds, strict=True) if kept], (~even[:-2, holds]).any(axis=1)


class _Signed(NamedTuple):
    """A signed permutation: xi -> ``signs`` * xi[``order``]."""

    order: NDArray[np.intp]
    signs: Array


def _candidates(kinds: Sequence[object]) -> Iterator[_Signed]:
    """All signed permutations among variables of the same kind, or if they are too many the reflection of all."""
    orders = [
        order for order in permutations(range(len(kinds))) if all(kinds[i] == kinds[j] for i, j in enumerate(order))
    ]
    signs = list(product((1.0, -1.0), repeat=len(kinds)))
    if len(orders) * len(signs) > _CANDIDATES:
        orders, signs = orders[:1], [signs[0], signs[-1]]
    return (_Signed(np.array(order), np.array(sign)) for order, sign in product(orders, signs))


def _orbits(symmetries: Sequence[_Signed], counts: Sequence[int]) -> NDArray[np.intp]:
    """For every node of a product of grids that are even about zero, the first node of its orbit."""
    index = np.indices(counts).reshape(len(counts), -1) if counts else np.zeros((0, 1), dtype=np.intp)
    least = np.arange(index.shape[1])
    for symmetry in symmetries:
        moved = [
            counts[axis] - 1 - index[symmetry.order[axis]] if symmetry.signs[axis] < 0 else index[symmetry.order[axis]]
            for axis in range(len(counts))
        ]
        least = np.minimum(least, np.ravel_multi_index(moved, counts)) if counts else least
    return least
