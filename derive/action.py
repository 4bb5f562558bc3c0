r"""Effective actions: a function of order parameters whose minima are the phases.

.. math:: Z(P) = \int \mathrm{d}x \; e^{-F(x; P, \ldots)/T}

An `EffectiveAction` is the last right-hand side of a derivation together with what a solver has to know: the order
parameters and the box that contains every stationary point, the control, the parameters, at most one size parameter,
the symmetries, the names of the phases and the observables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Basic, Expr, Rational, S, Symbol, latex
from sympy.logic.boolalg import Boolean

from derive.exact import ExactnessError, exact, refuse_floats, refuse_twins
from derive.names import instead

__all__ = [
    "EffectiveAction",
    "Observable",
    "OrderParameter",
    "Parameter",
    "Phase",
    "Setup",
    "SetupError",
    "Symmetry",
    "agree",
    "validated",
]


class SetupError(ValueError):
    """A parameter is unknown, missing or out of range."""


@dataclass(frozen=True)
class Parameter:
    """A parameter or control of a theory, with its range; ``lower`` is excluded when ``strict``, ``upper`` is not.

    Raises `ExactnessError` where a default or bound is not exact.
    """

    symbol: Symbol
    meaning: str
    default: Expr | None = None
    lower: Expr = S.Zero
    strict: bool = True
    upper: Expr | None = None

    def __post_init__(self) -> None:
        for label, value in (("default", self.default), ("lower bound", self.lower), ("upper bound", self.upper)):
            if value is not None:
                exact(value, f"the {label} of {self.name}")

    @property
    def name(self) -> str:
        return str(self.symbol.name)

    @property
    def range_text(self) -> str:
        if self.upper is not None:
            return f"{self.lower} {'<' if self.strict else '<='} {self.name} <= {self.upper}"
        return f"{self.name} {'>' if self.strict else '>='} {self.lower}"

    def validate(self, value: object) -> Rational:
        """Return ``value`` as an exact rational inside the range, or raise `SetupError`."""
        try:
            number = exact(value, self.name)
        except ExactnessError as error:
            raise SetupError(f"{self.name}: {error}") from None
        if not isinstance(number, Rational) or not number.is_finite:
            raise SetupError(f"{self.name} = {number} is not a finite rational number; the range is {self.range_text}")
        high = self.upper is not None and number > self.upper
        if high or number < self.lower or (self.strict and number == self.lower):
            raise SetupError(
                f"{self.name} = {value} is out of range; it must satisfy {self.range_text} ({self.meaning})"
            )
        return number


@dataclass(frozen=True)
class OrderParameter:
    """An order parameter and bounds (in parameters and control) between which every stationary point lies.

    ``edge`` says that ``lower`` is a wall of the domain itself, not only a bound on stationary points.
    """

    symbol: Symbol
    meaning: str
    lower: Expr
    upper: Expr
    edge: bool = False


@dataclass(frozen=True)
class Symmetry:
    """A map of the order parameters that leaves the action unchanged."""

    name: str
    image: Mapping[Symbol, Expr]


@dataclass(frozen=True)
class Phase:
    """A named phase. ``where`` tells it from the others by its order parameters; ``None``: by its place among them."""

    name: str
    where: Boolean | None = None


@dataclass(frozen=True)
class Observable:
    """A named function of order parameters, control and parameters; ``crossover`` is the level that marks a crossover.

    ``readings`` say what values up to each bound mean, in ascending order of the bounds.
    """

    name: str
    value: Expr
    meaning: str
    crossover: Expr | None = None
    readings: tuple[tuple[Expr, str], ...] = ()


@dataclass(frozen=True)
class Setup:
    """The exact parameters of one problem: every parameter of the theory, and the control where it is given."""

    theory: str
    values: Mapping[Symbol, Rational]
    control: Rational | None = None

    def as_text(self) -> dict[str, str]:
        return {symbol.name: str(value) for symbol, value in self.values.items()}


def validated(theory: str, parameters: Sequence[Parameter], control: Parameter, values: Mapping[str, object]) -> Setup:
    """The setup of ``theory`` with ``values`` by name, the control optional, defaults filled in; raises `SetupError`."""
    known = {parameter.name: parameter for parameter in (*parameters, control)}
    for name in values:
        if name not in known:
            raise SetupError(f"{theory} has no parameter {name!r}; {instead(name, known)}")
    filled: dict[Symbol, Rational] = {}
    for parameter in parameters:
        value = values.get(parameter.name, parameter.default)
        if value is None:
            raise SetupError(f"{theory} needs {parameter.name} ({parameter.meaning}); give {parameter.name}=VALUE")
        filled[parameter.symbol] = parameter.validate(value)
    driven = values.get(control.name)
    return Setup(theory, filled, None if driven is None else control.validate(driven))


def agree(problem: Any, setup: object, kind: type[Any]) -> None:
    """Raises `TypeError` where ``problem`` is not of a ``kind`` or ``setup`` is none, `SetupError` where it is another's."""
    if not isinstance(problem, kind):
        raise TypeError(f"{str(problem)[:80]} ({type(problem).__name__}) is no {kind.__name__}")
    if not isinstance(setup, Setup):
        raise TypeError(f"{str(setup)[:80]} ({type(setup).__name__}) is no setup; setup() of {problem.name} makes one")
    if setup.values.keys() != {parameter.symbol for parameter in problem.parameters}:
        raise SetupError(f"a setup of {setup.theory} with {', '.join(setup.as_text())} is none of {problem.name}")


@dataclass(frozen=True)
class EffectiveAction:
    """An effective action ``value`` over ``order_parameters``, driven by ``control``.

    ``window`` is the interval of the control in which its transitions lie (expressions in the parameters), and
    ``closed_forms`` are controls of transitions, by kind, that are known as expressions (nan where they are not): results
    are held against them. ``digits`` are those of a result that nobody asked more of.
    Raises `ExactnessError` when a formula holds a float, a symbol twin, an undeclared symbol, when a symbol is declared
    twice, or when a declared symmetry does not leave the action unchanged.
    """

    name: str
    value: Expr
    order_parameters: tuple[OrderParameter, ...]
    control: Parameter
    parameters: tuple[Parameter, ...]
    window: tuple[Expr, Expr]
    size: Symbol | None = None
    symmetries: tuple[Symmetry, ...] = ()
    phases: tuple[Phase, ...] = ()
    observables: tuple[Observable, ...] = ()
    digits: int = 15
    closed_forms: tuple[tuple[str, Expr], ...] = ()
    meaning: str = ""

    def __post_init__(self) -> None:
        formulas = self._formulas()
        for label, formula in formulas.items():
            refuse_floats(formula, label)
        symbols = [*self.variables, self.control.symbol, *(p.symbol for p in self.parameters)]
        declared = set(symbols)
        refuse_twins([*formulas.values(), *declared], f"the action {self.name!r}")
        for symbol in declared:
            if symbols.count(symbol) > 1:
                raise ExactnessError(f"the action {self.name!r} declares the symbol {symbol} twice")
        for label, formula in formulas.items():
            undeclared = formula.free_symbols - declared
            if undeclared:
                names = ", ".join(sorted(str(symbol) for symbol in undeclared))
                raise ExactnessError(
                    f"{label} holds the undeclared symbol {names}; declare it as a parameter or order parameter"
                )
        if self.size is not None and self.size not in declared:
            raise ExactnessError(f"the size parameter {self.size} of {self.name!r} is not among its parameters")
        for symmetry in self.symmetries:
            image = self.value.subs(symmetry.image, simultaneous=True)
            if (image - self.value).simplify() != 0:
                raise ExactnessError(f"the declared symmetry {symmetry.name!r} changes the action {self.name!r}")

    def _formulas(self) -> dict[str, Basic]:
        formulas: dict[str, Basic] = {f"the action {self.name!r}": self.value}
        for order in self.order_parameters:
            formulas[f"the lower bound of {order.symbol}"] = order.lower
            formulas[f"the upper bound of {order.symbol}"] = order.upper
        for index, bound in enumerate(self.window):
            formulas[f"the {'upper' if index else 'lower'} end of the window"] = bound
        for observable in self.observables:
            formulas[f"the observable {observable.name!r}"] = observable.value
            if observable.crossover is not None:
                formulas[f"the crossover level of {observable.name!r}"] = observable.crossover
        for symmetry in self.symmetries:
            for symbol, image in symmetry.image.items():
                formulas[f"the image of {symbol} under {symmetry.name!r}"] = image
        for kind, control in self.closed_forms:
            formulas[f"the closed form of the {kind}"] = control
        for phase in self.phases:
            if phase.where is not None:
                formulas[f"the phase {phase.name!r}"] = phase.where
        return formulas

    @property
    def variables(self) -> tuple[Symbol, ...]:
        """The symbols of the order parameters."""
        return tuple(order.symbol for order in self.order_parameters)

    def setup(self, values: Mapping[str, object]) -> Setup:
        """Validate ``values`` (by name, the control optional) against the declared ranges and fill in the defaults."""
        return validated(self.name, self.parameters, self.control, values)

    def subs(self, **values: object) -> EffectiveAction:
        """The same action with some parameters set to exact values, for good: ``action.subs(L=32, V=8)``."""
        known = {parameter.name: parameter for parameter in self.parameters}
        unknown = sorted(values.keys() - known.keys())
        if unknown:
            raise SetupError(f"{self.name} has no parameter {unknown[0]!r} left to set; it takes {', '.join(known)}")
        bound: dict[Basic, Expr] = {known[name].symbol: known[name].validate(value) for name, value in values.items()}
        return replace(
            self,
            value=self.value.subs(bound),
            order_parameters=tuple(
                replace(o, lower=o.lower.subs(bound), upper=o.upper.subs(bound)) for o in self.order_parameters
            ),
            window=(self.window[0].subs(bound), self.window[1].subs(bound)),
            phases=tuple(p if p.where is None else replace(p, where=p.where.subs(bound)) for p in self.phases),
            observables=tuple(replace(o, value=o.value.subs(bound)) for o in self.observables),
            closed_forms=tuple((kind, control.subs(bound)) for kind, control in self.closed_forms),
            parameters=tuple(p for p in self.parameters if p.symbol not in bound),
            size=None if self.size in bound else self.size,
        )

    def _repr_latex_(self) -> str:
        arguments = ", ".join(latex(symbol) for symbol in self.variables)
        return f"$\\displaystyle F({arguments}; {latex(self.control.symbol)}) = {latex(self.value)}$"
