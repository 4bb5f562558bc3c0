"""Newton's method where it has no root to offer."""

from mpmath import mpf

from numerics.newton import refine
from numerics.points import Status


def test_a_jacobian_that_is_singular_at_the_root_is_a_status():
    """The last step lands on zero, where the system has no slope: seen only when tiny unknowns are told from zero."""
    found = refine(lambda x: ([+x[0]], [[mpf(x[0] != 0)]]), [mpf("1e-40")], 15, [mpf(1)])
    assert (found.status, found.found) == (Status.DEGENERATE, False)
