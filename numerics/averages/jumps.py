r"""Integrals over the surface on which a proximal map jumps: the part of replica-symmetric stability that is not smooth.

.. math:: I = \int_{\mathcal J} p(c)\, F(z_b - z_a)\, \mathrm dS
          = \sum_i \mathrm E_{\perp i} \sum_{\mathrm{jumps}} p\, |n \cdot e_i|\, F

A line along e meets an area dS of the surface with the density |n.e| dS, and n is the direction of f_b - f_a =
V^{-1}(z_b - z_a), the gradient of the gap between the Moreau envelopes. Lines in one direction count each jump 1/|n.e|
times, which converges fast where the surface faces them everywhere: a product rule looks there. Over Sobol points a jump
counts |n.e_i| times for the lines along every e_i of a basis, so that none weighs much, however the surface runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble
from numerics.averages.estimate import Estimate, Sums
from numerics.averages.frame import Frame, complement
from numerics.averages.rules import QuasiMonteCarlo, Split
from numerics.averages.split import Lines

__all__ = ["jump_sums", "jumps"]


def jumps(ensemble: Ensemble, values: Array, rule: Split) -> Estimate:
    """The integrals over the jumps of ``ensemble``'s integrands, in which z* stands for z_b - z_a."""
    if rule.outer is None:
        return rule.estimate(ensemble, values, _once)
    return rule.outer.estimate(_passes(ensemble, values, rule))


def jump_sums(ensemble: Ensemble, values: Array, rule: Split) -> Sums:
    """The same without errors."""
    return QuasiMonteCarlo.combined(_passes(ensemble, values, rule))


def _passes(ensemble: Ensemble, values: Array, rule: Split) -> list[Sums]:
    if rule.outer is None:
        return rule.passes(ensemble, values, _once)
    main = rule.frame(ensemble, values)[0].direction
    basis = (main, *complement(main[:, None]).T)
    every = [replace(rule, direction=tuple(map(float, e))).passes(ensemble, values, _facing) for e in basis]
    return [_total(parts) for parts in zip(*every, strict=True)]


def _total(parts: tuple[Sums, ...]) -> Sums:
    values, scales = (np.sum([getattr(part, name) for part in parts], axis=0) for name in ("values", "scales"))
    return Sums(values, scales, sum(part.nodes for part in parts))


def _once(frame: Frame, weights: Array, found: Lines, odd: NDArray[np.bool_]) -> Sums:
    """Every part of the surface counted once by lines in one direction."""
    return _surface(frame, weights, found, -1)


def _facing(frame: Frame, weights: Array, found: Lines, odd: NDArray[np.bool_]) -> Sums:
    """Every part of the surface counted with the share (n.e)^2."""
    return _surface(frame, weights, found, 1)


def _surface(frame: Frame, weights: Array, found: Lines, power: int) -> Sums:
    """The integrands at the jumps of lines, with |n.e|^power."""
    two = found.jumps.zeta
    found = replace(found, jumps=found.jumps.at((two[0] != two[1]).any(axis=0)))  # a fold may close to rounding
    apart = frame.basis @ (found.jumps.zeta[1] - found.jumps.zeta[0])
    normal = frame.stiffness @ apart
    facing = np.abs(frame.direction @ normal) / np.linalg.norm(normal, axis=0)
    none = np.zeros((frame.ensemble.dimension, apart.shape[1]))
    inside = frame.ensemble.integrand(none, none, apart, none[0], none, frame.values)
    density = weights[found.jumps.line] * found.densities / frame.stride * facing**power
    return Sums(inside @ density, np.abs(inside) @ density, found.nodes, found.jump_weight(weights, frame.stride))
