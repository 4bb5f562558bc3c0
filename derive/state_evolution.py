r"""State evolution: a replica-symmetric potential over overlaps and their conjugates, and the updates it implies.

.. math:: \frac{\partial \phi}{\partial \hat Q} = 0 \;\Rightarrow\; Q = \Omega(\hat Q), \qquad
          \frac{\partial \phi}{\partial Q} = 0 \;\Rightarrow\; \hat Q = \alpha\,\Psi(Q)

A `StateEvolution` is the last right-hand side of a derivation together with what a solver has to know. Its updates are
derived from the potential, never typed: every overlap enters paired with one conjugate, in a product that is linear in
both, so that stationarity in either gives the other. The averages in them are unevaluated nodes (`derive.averages`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from sympy import Basic, Dummy, Expr, Function, S, Symbol, expand_mul, latex

from derive.action import EffectiveAction, Observable, Parameter, Setup, SetupError, validated
from derive.averages import GaussianAverage
from derive.exact import ExactnessError, refuse_floats, refuse_twins

__all__ = ["Pair", "Problem", "Sector", "StateEvolution", "driven", "growth", "pairing", "stationary"]


@dataclass(frozen=True)
class Pair:
    """An overlap and the conjugate that multiplies it in the potential.

    ``scale`` is a magnitude of the overlap, in the parameters: solvers start at fractions of it and measure by it. ``wall``
    is the size that it cannot exceed, if there is one, and near which only what is left to it counts.
    """

    overlap: Symbol
    conjugate: Symbol
    meaning: str
    scale: Expr = S.One
    wall: Expr | None = None

    @property
    def symbol(self) -> Symbol:
        return self.overlap

    def at(self, symbol: Symbol, value: Expr) -> Pair:
        """With magnitudes at a value of a parameter."""
        wall = None if self.wall is None else self.wall.subs(symbol, value)
        return replace(self, scale=self.scale.subs(symbol, value), wall=wall)


@dataclass(frozen=True)
class Sector:
    """A family of solutions named by the overlaps that vanish in it, which the updates leave at zero."""

    name: str
    vanishing: tuple[Symbol, ...] = ()


def stationary(potential: Expr, by: Symbol, of: Symbol) -> Expr:
    """The value of ``of`` that makes ``potential`` stationary in ``by``; the two are paired in a product."""
    slope = potential.diff(by)
    slope = slope.xreplace({node: node.split() for node in slope.atoms(GaussianAverage)})
    names = {node: Dummy(f"a{place}") for place, node in enumerate(slope.atoms(GaussianAverage))}
    plain = slope.xreplace(names)
    value = -plain.subs(of, 0) / plain.diff(of)
    return expand_mul(value).xreplace({name: node for node, name in names.items()}) if names else value


def pairing(potential: Expr, overlap: Symbol, conjugate: Symbol) -> Expr:
    """The coefficient of the product of an overlap and its conjugate, with both in it where they do not pair so."""
    nodes = potential.atoms(GaussianAverage)
    names = {
        node: Function(f"a{place}")(*(symbol for symbol in (overlap, conjugate) if symbol in node.free_symbols))
        for place, node in enumerate(nodes)
    }
    return potential.xreplace(names).diff(conjugate).diff(overlap)


def growth(potential: Expr, pair: Pair) -> Expr:
    """The factor by which one round of updates multiplies a small overlap, where that overlap vanishes.

    Above one, a sector without this overlap (and no other of its kind) is unstable against it. It is the derivative of
    the update in the overlap itself, taken on the density, so that jumps of a proximal map count in full; all others
    respond to second order only, since the updates preserve the sector.
    """
    source = stationary(potential, pair.overlap, pair.conjugate)
    names = {node: Dummy(f"a{place}") for place, node in enumerate(source.atoms(GaussianAverage))}
    plain = source.xreplace(names)
    slope = plain.diff(pair.overlap).xreplace({name: node for node, name in names.items()})
    for node, name in names.items():
        slope += plain.diff(name) * node.density_derivative(pair.overlap)
    response = stationary(potential, pair.conjugate, pair.overlap).diff(pair.conjugate)
    return response.subs(pair.conjugate, 0) * slope.subs(pair.overlap, 0)


@dataclass(frozen=True)
class StateEvolution:
    """The stationary points of ``potential`` over overlaps and conjugates, driven by ``control``.

    The value of the potential at a stationary point is the action of the phase (the training loss per dimension, for
    learning at zero temperature).
    Raises `ExactnessError` when a formula holds a float, a symbol twin or an undeclared symbol, or when an overlap and
    its conjugate are not paired in a product.
    """

    name: str
    potential: Expr
    pairs: tuple[Pair, ...]
    control: Parameter
    parameters: tuple[Parameter, ...]
    window: tuple[Expr, Expr]
    sectors: tuple[Sector, ...] = (Sector("all"),)
    observables: tuple[Observable, ...] = ()
    digits: int = 5
    meaning: str = ""

    def __post_init__(self) -> None:
        formulas: dict[str, Basic] = {f"the potential {self.name!r}": self.potential}
        formulas |= {f"the observable {o.name!r}": o.value for o in self.observables}
        formulas |= {f"the level of {o.name!r}": o.crossover for o in self.observables if o.crossover is not None}
        parameters = {self.control.symbol, *(parameter.symbol for parameter in self.parameters)}
        declared = parameters | {*self.overlaps, *self.conjugates}
        refuse_twins([*formulas.values(), *declared], f"the state evolution {self.name!r}")
        for label, formula in formulas.items():
            refuse_floats(formula, label)
            undeclared = formula.free_symbols - declared
            if undeclared:
                names = ", ".join(sorted(str(symbol) for symbol in undeclared))
                raise ExactnessError(
                    f"{label} holds the undeclared symbol {names}; declare it as a parameter or overlap"
                )
        for pair in self.pairs:
            weight = pairing(self.potential, pair.overlap, pair.conjugate)
            if weight == 0 or not weight.free_symbols <= parameters:
                overlap, conjugate = (str(symbol).rstrip("'") for symbol in (pair.overlap, pair.conjugate))
                raise ExactnessError(
                    f"{overlap} and {conjugate} are not paired in the potential of {self.name!r}: they meet in one product,"
                    f" such as -{overlap}*{conjugate}/2, and nowhere else outside of averages over one of them"
                )

    @property
    def value(self) -> Expr:
        """The potential, under the name that an action gives it."""
        return self.potential

    @property
    def order_parameters(self) -> tuple[Pair, ...]:
        """The overlaps with their meanings."""
        return self.pairs

    @property
    def overlaps(self) -> tuple[Symbol, ...]:
        return tuple(pair.overlap for pair in self.pairs)

    @property
    def conjugates(self) -> tuple[Symbol, ...]:
        return tuple(pair.conjugate for pair in self.pairs)

    @cached_property
    def channel(self) -> Mapping[Symbol, Expr]:
        """Each conjugate as a function of the overlaps: stationarity of the potential in the overlap it multiplies."""
        return {pair.conjugate: stationary(self.potential, pair.overlap, pair.conjugate) for pair in self.pairs}

    @cached_property
    def prior(self) -> Mapping[Symbol, Expr]:
        """Each overlap as a function of the conjugates: stationarity of the potential in the conjugate."""
        return {pair.overlap: stationary(self.potential, pair.conjugate, pair.overlap) for pair in self.pairs}

    def growth(self, overlap: Symbol) -> Expr:
        """How one round of updates multiplies a small ``overlap`` where it vanishes: `growth`."""
        (pair,) = (pair for pair in self.pairs if pair.overlap == overlap)
        return growth(self.potential, pair)

    def setup(self, values: Mapping[str, object]) -> Setup:
        """Validate ``values`` (by name, the control optional) against the declared ranges and fill in the defaults."""
        return validated(self.name, self.parameters, self.control, values)

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle \\phi = {latex(self.potential)}$"


Problem: TypeAlias = EffectiveAction | StateEvolution
"""What a theory hands to the numerics."""


def driven(problem: Problem, name: str) -> Problem:
    """The problem with the parameter ``name`` as its control; raises `SetupError`.

    The former control becomes a parameter, which has to be given; magnitudes of overlaps are those at the default of the
    new one. The window of an action belongs to its control.
    """
    if name == problem.control.name:
        return problem
    chosen = [parameter for parameter in problem.parameters if parameter.name == name]
    if not chosen or not isinstance(problem, StateEvolution):
        known = [problem.control, *(problem.parameters if isinstance(problem, StateEvolution) else ())]
        names = " or ".join(parameter.name for parameter in known)
        raise SetupError(f"transitions of {problem.name} are not sought along {name!r}, but along {names}")
    default = S.One if chosen[0].default is None else chosen[0].default
    pairs = tuple(pair.at(chosen[0].symbol, default) for pair in problem.pairs)
    others = tuple(parameter for parameter in problem.parameters if parameter.name != name)
    return replace(problem, pairs=pairs, control=chosen[0], parameters=(*others, problem.control))
