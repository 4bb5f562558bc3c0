r"""Expressions that hold Gaussian averages, as numbers with error estimates.

.. math:: y = \Phi(x, \langle F_1 \rangle_x, \ldots, \langle F_k \rangle_x), \qquad
          \delta y \le \sum_j \Big|\frac{\partial \Phi}{\partial \langle F_j \rangle}\Big|\, \delta \langle F_j \rangle

The averages are computed by a rule, which says how far each is off; what is built from them follows to first order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol

from derive.averages import GaussianAverage, JumpIntegral
from numerics.averages.ensemble import Ensemble, ensembles
from numerics.averages.estimate import CovarianceError, Rule
from numerics.averages.jumps import jump_sums, jumps
from numerics.averages.rules import GaussHermite, Split
from numerics.emit import Emitted, emit
from numerics.emit.graph import Graph

__all__ = ["Averaged", "Values"]

Array = NDArray[np.float64]


_QUIET = np.errstate(all="ignore")  # what is not a number shows in the result
_ALONE, _AN_AXIS, _SMOOTH_NODES = 1000, 50, 25_000  # of a product rule, step 1: in one variable, an axis, in all


def _suited(rule: Rule, family: Ensemble) -> Rule:
    """``rule``, but where it does not apply, smooth integrands without a minimisation, a product rule.

    Its nodes lie as close as the steps of ``rule`` are short, so that a coarser rule has fewer of them, too; they are n^(-1/2)
    apart, which is followed in one variable only, where it is cheap.
    """
    if family.problem is not None or rule.applies(family):
        return rule
    step = rule.step if isinstance(rule, Split) else Split.step
    if family.dimension == 1:
        return GaussHermite(int(_ALONE / step**2))
    return GaussHermite(int(min(_AN_AXIS, _SMOOTH_NODES ** (1 / family.dimension)) / step))


@dataclass(frozen=True)
class Values:
    """Numbers of shape (k,) and the estimated errors that the averages in them leave."""

    values: Array
    errors: Array


@dataclass(frozen=True)
class Averaged:
    """Expressions of ``arguments`` whose averages are evaluated first; made by `compiled`.

    Integrals over jumps are not numbers by a rule that does not look for them.
    """

    families: tuple[tuple[Ensemble, tuple[int, ...]], ...]
    surfaces: tuple[tuple[Ensemble, tuple[int, ...]], ...]
    plain: tuple[Expr, ...]
    arguments: tuple[Symbol, ...]  # of ``plain``, the names of the averages last
    count: int

    @classmethod
    def compiled(cls, expressions: Sequence[Expr], arguments: tuple[Symbol, ...]) -> Averaged:
        """Compile ``expressions``; raises what `ensembles` and `emit` raise for a node that has no place in them."""
        held = Graph(expressions, opaque=(GaussianAverage, JumpIntegral)).nodes
        nodes, surfaces = (
            sorted({node for node in held if isinstance(node, kind)}, key=lambda node: node.sort_key())
            for kind in (GaussianAverage, JumpIntegral)
        )
        names = [Symbol(f"_average{place}", real=True) for place in range(len(nodes) + len(surfaces))]
        plain = [e.xreplace(dict(zip([*nodes, *surfaces], names, strict=True))) for e in expressions]
        return cls(
            ensembles(nodes, arguments),
            tuple(
                (family, tuple(len(nodes) + place for place in places))
                for family, places in ensembles([surface.average for surface in surfaces], arguments)
            ),
            tuple(plain),
            (*arguments, *names),
            len(names),
        )

    @_QUIET
    def values(self, values: Array, rule: Rule) -> Array:
        """The expressions (k,) at ``values`` (one per argument), without errors: half the work."""
        averages = np.full(self.count, np.nan)
        for family, places in self.families:
            with suppress(CovarianceError):  # there are no such variables, and their averages are not numbers
                averages[list(places)] = _suited(rule, family).sums(family, values).values
        if isinstance(rule, Split):
            for family, places in self.surfaces:
                averages[list(places)] = jump_sums(family, values, rule).values
        return self._assembled(self.formulas, values, averages)

    @_QUIET
    def __call__(self, values: Array, rule: Rule) -> Values:
        """The expressions at ``values`` with the errors that ``rule`` leaves in them."""
        averages, errors = np.full(self.count, np.nan), np.full(self.count, np.nan)
        for family, places in self.families:
            with suppress(CovarianceError):
                found = _suited(rule, family)(family, values)
                averages[list(places)], errors[list(places)] = found.values, found.errors
        if isinstance(rule, Split):
            for family, places in self.surfaces:
                found = jumps(family, values, rule)
                averages[list(places)], errors[list(places)] = found.values, found.errors
        result = self._assembled(self.formulas, values, averages)
        slopes = self._assembled(self.slopes, values, averages).reshape(len(result), self.count)
        return Values(result, np.abs(slopes) @ errors)

    @cached_property
    def formulas(self) -> Emitted:
        return emit(self.plain, self.arguments, "numpy")

    @cached_property
    def slopes(self) -> Emitted:
        """The derivatives of each expression in every average."""
        names = self.arguments[len(self.arguments) - self.count :]
        return emit(tuple(e.diff(name) for e in self.plain for name in names), self.arguments, "numpy")

    @staticmethod
    def _assembled(emitted: Emitted, values: Array, averages: Array) -> Array:
        return np.array([float(value) for value in emitted(*values, *averages)])
