r"""The laws of a state evolution in a limit of its control, against fixed points along a ladder of controls.

.. math:: \frac{A(\alpha)/\mathrm{scale}(\alpha) - \mathrm{term}}{\mathrm{next}} \to 1, \qquad
          \alpha \to 0 \;\text{or}\; \alpha \to \infty

A theory declares its laws (`derive.asymptotic.LimitLaw`); nothing here knows which. The fixed points are started from the
laws and carried through finer rules of integration. The averages in the laws are numerical, too: every entry of a rung
has the errors of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sympy import Expr, Integer, Rational, S, Symbol, oo

from derive.action import Setup, SetupError
from derive.asymptotic import LimitLaw
from derive.state_evolution import StateEvolution
from numerics.asymptotics import AsymptoticReport, Rung, size_text
from numerics.averages.expression import Averaged, Values
from numerics.averages.rays import Rays
from numerics.evolution import Evolution
from numerics.points import Status, justified, number
from numerics.sectors import Solution, carried, witnessed

__all__ = ["controls", "law_ladders"]

Array = NDArray[np.float64]

_FIRST: Mapping[Expr, Rational] = {S.Zero: Rational(1, 100), oo: Integer(10)}
_ENDS: Mapping[Expr, Rational] = {S.Zero: Rational(1, 10**5), oo: Integer(10) ** 3}
_FARTHEST: Mapping[Expr, Rational] = {S.Zero: Rational(1, 10**5), oo: Integer(10) ** 4}  # in double precision
_RULE = Rays(144, 20)
_SOUGHT, _PROBES = (0.02, 5.0), 24  # where an overlap at the limit is looked for, relative to its scale
_STEP, _TOLERANCE = 1e-3, 1e-12  # relative, of its difference quotient and its root


def controls(limit: Expr, end: Rational | None = None) -> tuple[Rational, ...]:
    """The rungs: powers of ten from 1/100 down to ``end``, by default 1e-5, or from 10 up to ``end``, by default 1000."""
    rung, last, rungs = _FIRST[limit], _ENDS[limit] if end is None else end, []
    while (rung > last) if limit == 0 else (rung < last):
        rungs.append(rung)
        rung = rung / 10 if limit == 0 else rung * 10
    return (*rungs, last)


def law_ladders(
    theory: StateEvolution,
    laws: Sequence[LimitLaw],
    setup: Setup,
    end: Rational | None = None,
    digits: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[AsymptoticReport, ...]:
    """Compare ``laws`` with the fixed points of ``theory`` along their ladders, which stop at ``end``.

    Laws of the other limit than that of ``end`` keep their own. Raises `SetupError` where no law goes to it or it is out
    of reach, for a setup that gives the control, and for another theory than that of the laws.
    """
    name = theory.control.name
    if any(law.theory != theory.name for law in laws):
        raise SetupError(
            f"the laws are those of {laws[0].theory} ({laws[0].holds}), not of {theory.name} ({theory.meaning})"
        )
    if setup.control is not None:
        raise SetupError(f"{name} runs along the ladder; leave it out, and end the ladder with upto")
    if end is not None and not _FARTHEST[S.Zero] <= end <= _FARTHEST[oo]:
        low, high = (size_text(_FARTHEST[limit]) for limit in (S.Zero, oo))
        raise SetupError(f"upto: fixed points can be followed to {name} = {low} or {high}, not to {size_text(end)}")
    ends = {limit: end if end is not None and (end < 1) == (limit == 0) else None for limit in _ENDS}
    if end is not None and all(ends[law.limit] is None for law in laws):
        raise SetupError(f"upto: no ladder of {', '.join(law.name for law in laws)} goes to {name} = {end}")
    evolution, digits = Evolution(theory, setup), theory.digits if digits is None else digits
    reports: dict[str, AsymptoticReport] = {}
    for key in dict.fromkeys((law.sector, law.limit) for law in laws):
        group = [law for law in laws if (law.sector, law.limit) == key]
        case = _Group(evolution, group, digits, progress or (lambda text: None))
        reports |= dict(zip((law.name for law in group), case.reports(controls(key[1], ends[key[1]])), strict=True))
    return tuple(reports[law.name] for law in laws)


@dataclass(frozen=True)
class _Group:
    """Laws of one sector in one limit, which share their fixed points."""

    evolution: Evolution
    laws: Sequence[LimitLaw]
    digits: int
    say: Callable[[str], None]

    @property
    def first(self) -> LimitLaw:
        return self.laws[0]

    @property
    def control(self) -> Symbol:
        return self.first.control

    def reports(self, rungs: Sequence[Rational]) -> list[AsymptoticReport]:
        begin, sector = time.perf_counter(), self.first.sector
        self.say(f"the laws of the {sector} sector")
        found: list[list[Rung]] = []
        notes: list[str] = []
        status = Status.OK
        if not self.defined:
            notes.append(
                f"the laws of the {sector} sector are not defined at these parameters: there is no such solution"
            )
        for rung in rungs if self.defined else ():
            at = f"{self.control.name} = {size_text(rung)}"
            self.say(f"the {sector} solution at {at}")
            row = self._rungs(rung)
            if row is None:
                notes.append(f"the {sector} solution at {at} was not found from its laws")
                status = Status.DIVERGED
            else:
                found.append(row)
        if status is Status.OK and not all(rung.value.reached for row in found for rung in row):
            status = Status.DIGITS
        parameters, seconds = self.evolution.setup.as_text(), time.perf_counter() - begin
        columns = zip(*found, strict=True) if found else [()] * len(self.laws)
        return [
            AsymptoticReport(law, parameters, column, tuple(notes), status, seconds)
            for law, column in zip(self.laws, columns, strict=True)
        ]

    # --- the laws ---

    def _averaged(self, expressions: Sequence[Expr], *further: Symbol) -> Averaged:
        return Averaged.compiled(expressions, (*self.evolution.setup.values, *self.first.at, *further))

    def _values(self, places: Array, *further: float) -> Array:
        return np.array([*map(float, self.evolution.setup.values.values()), *places, *further])

    @cached_property
    def limits(self) -> Values:
        """The overlaps at the limit that the laws hold, nan where there is none."""
        roots = [self._root(overlap, slope) for overlap, slope in self.first.at.items()]
        return Values(*np.array(roots).reshape(-1, 2).T)

    def _root(self, overlap: Symbol, expression: Expr) -> tuple[float, float]:
        """Where an expression turns from negative to positive in an overlap, the smallest such place, and its error."""
        averaged = Averaged.compiled([expression], (*self.evolution.setup.values, overlap))

        def slope(x: float) -> float:
            return float(averaged.values(self._values(np.array([x])), _RULE)[0])

        grid = self.evolution.scales[self.evolution.theory.overlaps.index(overlap)] * np.geomspace(*_SOUGHT, _PROBES)
        rising = np.flatnonzero(np.diff([int(slope(x) > 0) for x in grid]) > 0)
        if not len(rising):
            return np.nan, np.nan
        low, high = grid[rising[0]], grid[rising[0] + 1]
        root = float(scipy.optimize.brentq(slope, low, high, xtol=_TOLERANCE * low, rtol=_TOLERANCE))
        step = _STEP * root
        error = averaged(self._values(np.array([root])), _RULE).errors[0]
        return root, error * 2 * step / (slope(root + step) - slope(root - step)) + _TOLERANCE * root

    @cached_property
    def coefficients(self) -> Values:
        """The sum of the terms and the coefficient of the next term of each law, (laws, 2); 0 for one that is not known."""
        averaged = self._averaged([part for law in self.laws for part in (sum(law.terms, S.Zero), _factors(law)[0])])
        places, moved = self._values(self.limits.values), self._values(self.limits.values + self.limits.errors)
        found = averaged(places, _RULE)
        errors = found.errors + np.abs(averaged.values(moved, _RULE) - found.values)
        return Values(found.values.reshape(-1, 2), errors.reshape(-1, 2))

    @property
    def defined(self) -> bool:
        """Whether there are overlaps in the limit, and numbers in the laws."""
        return bool(np.all(np.isfinite(self.limits.values)) and np.all(np.isfinite(self.coefficients.errors)))

    # --- one rung ---

    @cached_property
    def _start(self) -> Averaged:
        return self._averaged(list(self.first.start.values()), self.control)

    def _quantities(self, control: float) -> Values | None:
        """What the laws are about, at the fixed point that they lead to; on the rule that leaves the digits asked for."""
        evolution, x, slope, best = self.evolution, np.zeros(self.evolution.n), None, None
        places = [evolution.theory.overlaps.index(overlap) for overlap in self.first.start]
        x[places] = self._start.values(self._values(self.limits.values, control), _RULE)
        (sector,) = (sector for sector in evolution.theory.sectors if sector.name == self.first.sector)
        for rule in evolution.ladder:
            solution = carried(evolution, control, sector, x, rule, slope)
            if not solution.found:
                break
            x, slope, best = solution.x, solution.slope, self._measured(solution)
            if np.all(best.errors <= 0.5 * 10.0**-self.digits * np.abs(best.values)):
                break
        return best

    def _measured(self, solution: Solution) -> Values:
        """The quantities at a fixed point; their errors are the distances to the same on the next coarser rule."""
        sides = (solution.x, solution.rule), (witnessed(self.evolution, solution), solution.rule.coarser())
        fine, coarse = (
            self.evolution.evaluated([law.quantity for law in self.laws], x, solution.control, rule)
            for x, rule in sides
        )
        return Values(fine, np.abs(fine - coarse))

    def _rungs(self, rung: Rational) -> list[Rung] | None:
        found = self._quantities(float(rung))
        if found is None:
            return None
        return [
            self._compared(place, rung, *pair) for place, pair in enumerate(zip(*vars(found).values(), strict=True))
        ]

    def _compared(self, place: int, rung: Rational, value: float, error: float) -> Rung:
        """One law against its quantity at one control."""
        law, digits = self.laws[place], self.digits
        scale, tail = (float(part.subs(self.control, rung)) for part in (law.scale, _factors(law)[1]))
        (term, head), (off, head_off) = self.coefficients.values[place], self.coefficients.errors[place]
        ratio, ratio_off, following = value / scale, error / scale, head * tail
        left, left_off = ratio - term, ratio_off + off
        next_term = explained = None
        if following != 0:
            next_term = justified(following, abs(head_off * tail), digits)
            share = left / following
            explained = justified(share, (left_off + abs(share * head_off * tail)) / abs(following), digits)
        return Rung(
            size=rung,
            value=number(value, error, digits),
            ratio=justified(ratio, ratio_off, digits),
            leading=justified(term, off, digits),
            partial=justified(term, off, digits),
            difference=justified(left, left_off, digits),
            next_term=next_term,
            explained=explained,
        )


def _factors(law: LimitLaw) -> tuple[Expr, Expr]:
    """The coefficient of the next term, which holds the averages, and the power of the control; (0, 1) if it is not known."""
    if law.next_term is None:
        return S.Zero, S.One
    coefficient, power = law.next_term.as_independent(law.control, as_Add=False)
    return coefficient, power
