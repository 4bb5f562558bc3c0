r"""The evaluator of checks whose sides hold Gaussian averages over proximal maps.

.. math:: |A - B| \le 3\,\epsilon_{A - B} + \rho\,|B|, \qquad \epsilon_{A - B} \le \pi\,|B|

Both sides are integrated with errors, and the difference may not exceed them; errors above the share pi of the value
decide nothing, and fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from sympy import sympify

from derive.checks import Comparison, Evaluator
from numerics.averages.expression import Averaged
from numerics.averages.rules import Split

__all__ = ["EVALUATORS"]

_RULE = Split(0.8, 15, 5.7)
_ROUNDING, _POWER = 1e-5, 1e-2


def average(comparisons: Iterable[Comparison]) -> tuple[bool, str]:
    """Both sides, expressions in averages without free symbols, agree within the errors of integration."""
    count, worst = 0, 0.0
    for label, left, right in comparisons:
        ours, other = sympify(left), sympify(right)
        sides = Averaged.compiled((ours - other, other), ())(np.empty(0), _RULE)
        gap, value = sides.values
        error = sides.errors[0]
        if not (abs(gap) <= 3 * error + _ROUNDING * abs(value) and error <= _POWER * abs(value)):
            return False, f"{label}: {value + gap:.8g} against {value:.8g}, with an error of {error:.1g}"
        count, worst = count + 1, max(worst, abs(gap / value))
    return count > 0, f"averages equal to {worst:.0e}: {count}" if count else "the claim compared nothing"


EVALUATORS: Mapping[str, Evaluator] = {"average": average}
