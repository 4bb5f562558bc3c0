"""What every test shares: fixed threads, mpmath's default precision around each test, and a browser."""

import os

import mpmath
import pytest
from hypothesis import settings

from tests.browser import browser

__all__ = ["browser"]

# Read by the numerical libraries when they are first imported, which is later than this.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["MPLBACKEND"] = "Agg"

# Examples are the same on every run, and a slow machine is no failure.
settings.register_profile("spinodal", deadline=None, derandomize=True, database=None)
settings.load_profile("spinodal")


@pytest.fixture(autouse=True)
def _default_precision():
    """Every test starts at mpmath's default precision, whatever the test before it left."""
    mpmath.mp.dps = 15
    yield
    mpmath.mp.dps = 15
