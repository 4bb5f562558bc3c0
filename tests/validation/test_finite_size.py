"""The explicit 1/d shift of the test error against its Monte Carlo average and an independent integration, alpha = 3/2.

Reference: theory page, section 5, last row, which gives the shift of d times the mse, twice that of eps_g; the fixed
points are those of the same page.
"""

import numpy as np
import pytest

from derive.positional_semantic import state_evolution
from numerics.averages.expression import Averaged
from numerics.evolution import Evolution

POINTS = {
    "positional": ({"q": 0.04947, "m": 0.25473, "V": 13.593, "theta": 0.0}, 0.0586, (0.0589, 0.0012)),
    "semantic": ({"q": 0.093957, "m": 0.0, "V": 16.019, "theta": 0.134549}, 0.0229, (0.0226, 0.0006)),
}


@pytest.mark.parametrize("name", POINTS)
def test_shift_of_the_test_error(name):
    place, integrated, (sampled, deviation) = POINTS[name]
    theory = state_evolution()
    evolution = Evolution(theory, theory.setup({}))
    (shift,) = (o.value for o in theory.observables if o.name == "shift_eps_g")
    averaged = Averaged.compiled([2 * shift], evolution.arguments)
    found = averaged(
        evolution.at(np.array([place[overlap.name] for overlap in theory.overlaps]), 1.5), evolution.ladder[1]
    )
    assert found.errors[0] < 5e-5
    assert abs(found.values[0] - integrated) < 1e-4  # a unit of the last digit given
    assert abs(found.values[0] - sampled) < 2 * deviation
