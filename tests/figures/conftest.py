"""What tests of figures share: every figure's table, stored or quickly computed, and its picture, drawn once."""

from functools import cache

import pytest

from figures import FIGURES
from figures.plot import Work, plot, tables


@cache
def drawn_once(name):
    """The plot, its table and its figure."""
    ((one, table),) = tables([plot(FIGURES[name])], Work(quick=True))
    return one, table, one.draw(table)


@pytest.fixture
def drawn():
    return drawn_once
