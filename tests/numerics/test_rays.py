"""Averages over a minimiser that leaves the center by a pitchfork, against their radial integrals."""

import mpmath
import numpy as np
import pytest
from sympy import Piecewise, S, Symbol, sqrt

from derive.averages import GaussianAverage, MoreauEnvelope, ProximalJacobian
from numerics.averages.ensemble import Ensemble
from numerics.averages.rays import Rays

z, one, two = (Symbol(name, real=True) for name in ("z", "Y_1", "Y_2"))
WIDTH, QUARTIC = S(2), S(3)
NONE = np.zeros(0)


def averages(softening):
    """E|z*| and E|z*| dz*/dc for g = k z^4/4 - s z^2/2 at center zero, where z*^2 = (s - 1/V)/k beyond s = 1/V."""
    envelope = MoreauEnvelope(QUARTIC * z**4 / 4 - softening * z**2 / 2, (z,), (S.Zero,), [[WIDTH]])
    (place,) = envelope.minimiser()
    size = sqrt(place**2)
    share = Piecewise((size * ProximalJacobian(*envelope.problem, 0, 0), size > 0), (S.Zero, True))
    law = ((one, two), (0, 0), [[1, 0], [0, 1]])
    return Ensemble.compile([GaussianAverage(size, *law), GaussianAverage(share, *law)], ())


def expected(stretch):
    """The same for s = Y_1^2 + stretch Y_2^2: over the radius in closed form, over the angle by quadrature.

    With s = w r^2, E over r of (w r^2 - 1/V)^(1/2) is (pi w/2)^(1/2) exp(-1/(2 w V)), and dz*/dc = 1/(2 (V s - 1)).
    """
    width, quartic = mpmath.mpf(2), mpmath.mpf(3)

    def over_angle(part):
        quarter = mpmath.quad(
            lambda phi: part(mpmath.cos(phi) ** 2 + stretch * mpmath.sin(phi) ** 2), [0, mpmath.pi / 2]
        )
        return quarter * 2 / mpmath.pi

    def size(w):
        return mpmath.sqrt(mpmath.pi * w / 2 / quartic) * mpmath.exp(-1 / (2 * w * width))

    def share(w):
        return mpmath.sqrt(mpmath.pi / (2 * w * quartic)) / (2 * width) * mpmath.exp(-1 / (2 * w * width))

    return np.array([float(over_angle(part)) for part in (size, share)])


@pytest.mark.parametrize("stretch", [1, 4])
def test_roots_and_inverse_roots_at_a_pitchfork(stretch):
    ensemble = averages(one**2 + stretch * two**2)
    found = Rays()(ensemble, NONE)
    assert found.values == pytest.approx(expected(stretch), rel=1e-7)
    assert np.all(np.abs(found.values - expected(stretch)) <= found.errors + 1e-12)
    assert np.all(found.errors < 1e-4)


def test_a_coarse_rule_says_so():
    coarse = Rays(16, 8)(averages(one**2 + 4 * two**2), NONE)
    assert np.all(np.abs(coarse.values - expected(4)) <= coarse.errors)
    assert np.all(coarse.errors > 1e-7)


def test_other_averages_are_refused():
    plain = Ensemble.compile([GaussianAverage(one**2, (one,), (0,), [[1]])], ())
    with pytest.raises(ValueError, match="two variables"):
        Rays().sums(plain, NONE)
