"""The phase diagram of positional and semantic learning in alpha and omega against numbers of independent solvers.

Reference values with the error of their last digits: the theory page of this theory, section 5. Identities hold on ours
to more digits than those: at alpha_c(3/10) the potential and the training loss agree to 1e-7 of their size, and finer
rules move alpha_c by less than 1e-6; the reference values scatter around ours by up to four of their stated errors. Where
no error is stated, 1.5 % are allowed.
"""

import pytest
from sympy import Rational, S

from derive.positional_semantic import state_evolution
from numerics.diagram import diagram
from numerics.evolution_transitions import transitions
from numerics.points import Status
from numerics.scan import parse_axis

SCATTER, UNSTATED = 4, 0.015
OMEGAS = [Rational(k, 10) for k in range(1, 6)]
COEXISTENCE, BASELINE = "coexistence: positional/semantic", "observable-crossing (mse): semantic"
REFERENCES = {
    COEXISTENCE: ((0.7513, 4e-4), (0.9481, 3e-4), (1.25157, 2e-5), (1.7714, 2e-4), (2.8599, 2e-4)),
    BASELINE: ((0.8925, 1e-4), (1.1169, 1e-4), (1.49224, 2e-5), (2.2774, 2e-4), (11.46, 2e-2)),
    "instability (theta): uninformed": tuple((value, 5e-3) for value in (0.558, 0.6225, 0.722, 0.885, 1.162)),
    "instability (m): uninformed 1": tuple((value, None) for value in (0.086, 0.070, 0.058, 0.0475, 0.039)),
    "instability (m): semantic": tuple((value, None) for value in (0.602, 0.693, 0.827, 1.037, 1.390)),
}


@pytest.fixture(scope="module")
def found():
    axis = parse_axis("omega=1/10:1/2:5")
    return diagram(state_evolution(), {}, axis, (Rational(1, 50), S(20)), 4, transitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_curves_agree_with_independent_solvers(found, name):
    (curve,) = (curve for curve in found.curves if curve.name == name)
    assert [omega for omega, _ in curve.points] == OMEGAS
    for (_, entry), (value, error) in zip(curve.points, REFERENCES[name], strict=True):
        assert entry.status is Status.OK
        allowed = SCATTER * error if error else UNSTATED * value
        assert abs(float(entry.value) - value) <= allowed + float(entry.value.error)


@pytest.mark.slow
def test_alpha_c_grows_with_omega_and_the_baseline_is_beaten_above_it(found):
    curves = {curve.name: [float(entry.value) for _, entry in curve.points] for curve in found.curves}
    assert curves[COEXISTENCE] == sorted(curves[COEXISTENCE])
    assert all(low <= high for low, high in zip(curves[COEXISTENCE], curves[BASELINE], strict=True))
