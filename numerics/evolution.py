r"""A state evolution as a map of numbers: its update, its sectors and what is measured at a fixed point.

.. math:: Q \;\longmapsto\; \Omega\big(\alpha\,\Psi(Q)\big)

The formulas are those of a `StateEvolution`, derived from its potential; nothing is added here. Double precision is a
choice: the averages are numerical and carry five to eight digits, with an estimate of how many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol

from derive.action import agree
from derive.averages import JumpIntegral, ProximalJacobian, replaced
from derive.state_evolution import StateEvolution
from numerics.averages.estimate import Rule
from numerics.averages.expression import Averaged
from numerics.averages.rules import QuasiMonteCarlo, Split
from numerics.points import CostError, SolverError

if TYPE_CHECKING:
    from derive.action import Setup
    from derive.state_evolution import Sector

__all__ = ["Evolution"]

Array = NDArray[np.float64]

_PRODUCT_VARIABLES = 4
_PRODUCT_DIGITS, _SAMPLED_DIGITS = 10, 5  # that may be asked for; the bounds tell what is reached
_PRODUCTS: tuple[Rule, ...] = (
    Split(1.3, 8, 4.0),
    Split(1.0, 10, 4.8),
    Split(0.76, 16, 5.9),
    Split(0.62, 19, 6.4),
    Split(0.5, 23, 7.0),
)
_FEWER_LINES = 4  # powers of two: lines hold some two dozen nodes, and run along every field
_SAMPLES: tuple[Rule, ...] = tuple(QuasiMonteCarlo(size, 8) for size in (8, 10, 12, 14, 16))


@dataclass(frozen=True)
class Evolution:
    """``theory`` with the parameters of ``setup``; the control stays free.

    Points are arrays of shape (n,), the overlaps in the order of the theory's pairs.
    """

    theory: StateEvolution
    setup: Setup

    def __post_init__(self) -> None:
        agree(self.theory, self.setup, StateEvolution)

    @property
    def n(self) -> int:
        return len(self.theory.pairs)

    @cached_property
    def arguments(self) -> tuple[Symbol, ...]:
        return (*self.theory.overlaps, self.theory.control.symbol, *self.setup.values)

    def at(self, x: Array, control: float) -> Array:
        """The values of the arguments at a point."""
        return np.array([*x, control, *map(float, self.setup.values.values())])

    def _closed(self, expressions: Iterable[Expr]) -> Averaged:
        return _compiled(self.theory, tuple(expressions), self.arguments)

    @cached_property
    def _update(self) -> Averaged:
        """The next overlaps as functions of the present ones: the prior after the channel."""
        return self._closed(self.theory.prior.values())

    @cached_property
    def _measured(self) -> Averaged:
        plain = (o.value for o, response in zip(self.theory.observables, self._responding, strict=True) if not response)
        levels = (o.crossover for o in self.theory.observables if o.crossover is not None)
        return self._closed((self.theory.potential, *plain, *levels))

    @cached_property
    def _responses(self) -> Averaged:
        observables = zip(self.theory.observables, self._responding, strict=True)
        return self._closed(o.value for o, response in observables if response)

    @cached_property
    def _responding(self) -> tuple[bool, ...]:
        """Which observables hold dz/dc or the weight of jumps, which cost more than all others."""
        return tuple(o.value.has(ProximalJacobian, JumpIntegral) for o in self.theory.observables)

    def update(self, x: Array, control: float, rule: Rule) -> Array:
        """The next overlaps (n,); nan where the overlaps are not those of any fields."""
        return self._passed(self._update, x, control, rule)

    def evaluated(self, expressions: Iterable[Expr], x: Array, control: float, rule: Rule) -> Array:
        """Expressions in overlaps, conjugates and parameters at a point, in one pass over the averages; nan as `update`."""
        return self._passed(self._closed(expressions), x, control, rule)

    def _passed(self, expressions: Averaged, x: Array, control: float, rule: Rule) -> Array:
        if self.possible(x, control):
            try:
                return expressions.values(self.at(x, control), rule)
            except (SolverError, np.linalg.LinAlgError):  # a minimisation without an end, a singular width
                pass
        return np.full(len(expressions.plain), np.nan)

    def refuse(self, digits: int) -> None:
        """Raises `CostError` for a number of digits that no rule of integration reaches."""
        most = _PRODUCT_DIGITS if self.ladder is _PRODUCTS else _SAMPLED_DIGITS
        if digits not in range(1, most + 1):
            raise CostError(
                f"{digits} digits: averages of {self.theory.name} are numerical; ask for 1 to {most} digits"
            )

    def possible(self, x: Array, control: float) -> bool:
        """Whether every covariance that is averaged over is positive definite, and every width positive definite."""
        values = self.at(x, control)
        return bool(np.all(np.isfinite(values))) and all(family.defined(values) for family, _ in self._update.families)

    def measured(self, x: Array, control: float, rule: Rule, responses: Rule | None = None) -> Array:
        """The overlaps, the potential, the observables in the theory's order, then the levels of those that have one.

        Observables that hold dz/dc or the weight of jumps are evaluated by the rule ``responses``, and nan without it.
        """
        at, responding = self.at(x, control), np.array(self._responding, dtype=bool)
        potential, *others = self._measured.values(at, rule)
        observables, plain = np.full(len(responding), np.nan), len(responding) - int(responding.sum())
        observables[~responding] = others[:plain]
        if responses is not None and responding.any():
            observables[responding] = self._responses.values(at, _along_lines(responses))
        return np.array([*x, potential, *observables, *others[plain:]])

    @cached_property
    def ladder(self) -> tuple[Rule, ...]:
        """The rules of integration from the one on which solutions are located to the finest."""
        sizes = [family.dimension for family, _ in self._update.families if family.problem is not None]
        return _PRODUCTS if max(sizes, default=0) <= _PRODUCT_VARIABLES else _SAMPLES

    @cached_property
    def scales(self) -> Array:
        """Magnitudes of the overlaps (n,) at this setup."""
        return np.array([float(pair.scale.subs(dict(self.setup.values))) for pair in self.theory.pairs])

    @cached_property
    def walls(self) -> Array:
        """The sizes (n,) that the overlaps cannot exceed; infinite where none is declared."""
        values = dict(self.setup.values)
        return np.array(
            [math.inf if pair.wall is None else float(pair.wall.subs(values)) for pair in self.theory.pairs]
        )

    def free(self, sector: Sector) -> NDArray[np.bool_]:
        """Which overlaps (n,) may differ from zero in a sector."""
        return np.array([overlap not in sector.vanishing for overlap in self.theory.overlaps])


def _along_lines(rule: Rule) -> Rule:
    """Sobol points miss jumps and where these close; fewer of them, with a line through each, do not."""
    if isinstance(rule, QuasiMonteCarlo):
        return Split(outer=replace(rule, log2_points=max(1, rule.log2_points - _FEWER_LINES)))
    return rule


@lru_cache(maxsize=64)
def _compiled(theory: StateEvolution, expressions: tuple[Expr, ...], arguments: tuple[Symbol, ...]) -> Averaged:
    """``expressions`` compiled as functions of the overlaps alone, with what the channel makes of these put in."""
    channel = dict(theory.channel)
    return Averaged.compiled([replaced(expression, channel) for expression in expressions], arguments)
