r"""The part of replica-symmetric stability that comes from the jumps of a proximal map.

.. math:: \Delta' = \frac{\alpha}{2} \mathbb E\, |r(c + \delta_1) - r(c + \delta_2)|^2
          = \alpha\, \mathbb E \Bigl|\frac{\partial r}{\partial c}\Bigr|^2 \Delta
          + \alpha K_2 \sqrt{\frac{4 \Delta}{\pi}} + \ldots, \qquad
          K_2 = \frac12 \int_{\text{jumps}} p(c)\, |z_b - z_a|^2\, \mathrm dS

r = z* - c; delta_1 and delta_2 are independent noises of variance Delta in every field, those of two replicas whose
overlap falls short by Delta. They put the two on different sides of a surface of jumps with the probability
p E|(delta_1 - delta_2).n| = p sqrt(4 Delta/pi) per area. A line along e meets an area dS of the surface with the density
|n.e| dS, and n is the direction of f_b - f_a = V^{-1}(z_b - z_a), the gradient of the gap between the Moreau envelopes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array, Ensemble
from numerics.averages.estimate import Estimate, Sums
from numerics.averages.frame import Frame
from numerics.averages.rules import Split
from numerics.averages.split import Lines

__all__ = ["jumps"]


def jumps(ensemble: Ensemble, values: Array, rule: Split) -> Estimate:
    """K_2 (one value), for noise in the fields at fixed other variables."""
    return rule.estimate(ensemble, values, _surface)


def _surface(frame: Frame, weights: Array, found: Lines, odd: NDArray[np.bool_]) -> Sums:
    apart = frame.basis @ (found.jumps.zeta[1] - found.jumps.zeta[0])
    normal = frame.stiffness @ apart
    tilt = np.linalg.norm(normal, axis=0) / (frame.direction @ normal)
    density = weights[found.jumps.line] * found.densities / frame.stride * tilt
    value = np.array([density @ (apart**2).sum(axis=0) / 2])
    return Sums(value, value, found.nodes, found.jump_weight(weights, frame.stride))
