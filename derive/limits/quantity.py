r"""The exact equations of a quantity of an action in a limit, and their solution as a series.

.. math:: G(y(X); X) = 0, \qquad y \leftarrow y - G'(y)^{-1} G(y) \text{ in the field of series}

A minimum, a coexistence, a spinodal, an instability or the crossing of a level is a root of closed equations; X, which
grows, stands for the size or for one over the distance of the variable from its limit. From the leading terms Newton's
method gives as many terms as are asked for, each step of it twice as many; leading terms that do not balance are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sympy import QQ, Add, Dummy, Expr, ImmutableMatrix, Matrix, Rational, S, Symbol, hessian, oo

from derive.action import EffectiveAction, SetupError
from derive.exact import ExactnessError, parse_rational
from derive.limits.constant import ONE, LimitError
from derive.limits.series import ASCENDING, UNIT, PrecisionError, Scale, Series, evaluate, solved
from derive.names import instead

__all__ = [
    "LARGE",
    "ORDERS",
    "Expansion",
    "Limit",
    "Quantity",
    "Wanted",
    "correction",
    "expansion",
    "named",
    "quantity",
    "sought",
]

_KINDS = ("coexistence", "spinodal", "instability")
LARGE = Symbol("X", positive=True)
"""What grows in a limit."""
ORDERS = 12
"""Terms of a series at most."""
_ROUNDS = 24
_FEWEST, _SPARE = 4, 8


@dataclass(frozen=True)
class Limit:
    """``variable`` goes to infinity, or to the number ``to`` from above (``side`` = 1) or from below (-1)."""

    variable: Symbol
    to: Expr
    side: int = 1

    @classmethod
    def parsed(cls, action: EffectiveAction, text: str) -> Limit:
        """``L=oo``, ``T=0``, ``T=1-`` or ``T=1+`` of a parameter or the control; raises `SetupError` for anything else."""
        name, equals, end = text.partition("=")
        known = {parameter.name: parameter for parameter in (*action.parameters, action.control)}
        if not equals or name not in known:
            raise SetupError(
                f"a limit is NAME=oo, NAME=0, NAME=VALUE- or NAME=VALUE+, not {text[:40]!r}; as NAME {instead(name, known)}"
            )
        parameter = known[name]
        if end == "oo":
            if parameter.upper is not None:
                raise SetupError(f"{name} cannot grow without end: {parameter.range_text}")
            return cls(parameter.symbol, oo)
        side = -1 if end.endswith("-") else 1
        try:
            to = parse_rational(end.removesuffix("-").removesuffix("+"))
        except ExactnessError as error:
            raise SetupError(f"the limit of {name}: {error}") from None
        if not end.endswith(("-", "+")) and to != parameter.lower:
            raise SetupError(f"say from which side {name} goes to {to}: {name}={to}- or {name}={to}+")
        high = parameter.upper is not None and (to > parameter.upper or (to == parameter.upper and side > 0))
        if to < parameter.lower or (to == parameter.lower and side < 0) or high:
            raise SetupError(f"{text} is out of range: {parameter.range_text}")
        return cls(parameter.symbol, to, side)

    @property
    def inside(self) -> Expr:
        """The variable in terms of X."""
        return LARGE if self.to is oo else self.to + self.side / LARGE

    @property
    def large(self) -> Expr:
        """X in terms of the variable."""
        return self.variable if self.to is oo else 1 / (self.side * (self.variable - self.to))

    def __str__(self) -> str:
        return f"{self.variable} = {self.to}{'' if self.to is oo else '-' if self.side < 0 else '+'}"


@dataclass(frozen=True)
class Wanted:
    """A series that is wanted: of the quantity ``name`` as ``limit``, with ``order`` terms; ``meaning`` says it in words.

    ``phase`` says whose it is where there are several, ``values`` what other parameters are unless they are given.
    """

    name: str
    limit: Limit
    meaning: str = ""
    order: int = 3
    phase: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantity:
    """``equations`` in ``unknowns`` and X, whose root has the quantity at ``place``; and the Hessian of each phase.

    ``implied`` has to vanish at the root, though no equation says so.
    """

    kind: str
    unknowns: tuple[Symbol, ...]
    equations: tuple[Expr, ...]
    place: int
    hessians: tuple[ImmutableMatrix, ...]
    implied: tuple[Expr, ...] = ()

    @cached_property
    def slopes(self) -> tuple[Expr, ...]:
        """The Jacobian, row by row."""
        return tuple(equation.diff(name) for equation in self.equations for name in self.unknowns)


def named(action: EffectiveAction, name: str) -> tuple[str, str]:
    """The kind of quantity that ``name`` is, and the observable that crosses or the order parameter at a minimum.

    Raises `SetupError` where it is none.
    """
    crossing = [observable.name for observable in action.observables if observable.crossover is not None]
    parameters = [str(symbol) for symbol in action.variables]
    if name in _KINDS:
        return name, ""
    if name in crossing:
        return "crossover", name
    if name in parameters:
        return "minimum", name
    every = [*_KINDS, *crossing, *parameters]
    raise SetupError(f"{name[:40]!r} is no quantity of {action.name}; it has {', '.join(every)}")


def sought(action: EffectiveAction, wanted: Wanted, given: Collection[str]) -> tuple[str, str]:
    """What is `named` and ``wanted``; parameters ``given`` have values. Raises `SetupError` where these do not fit."""
    kind, observable = named(action, wanted.name)
    control, variable = action.control.name, str(wanted.limit.variable)
    phases = [phase.name for phase in action.phases]
    if kind != "minimum" and variable == control:
        raise SetupError(f"a {kind} is at a value of the control {control}: a limit is of another parameter")
    if kind != "minimum" and control in given:
        raise SetupError(f"{control} is what the series of a {kind} gives; leave it out")
    if kind == "minimum" and control not in (*given, variable):
        raise SetupError(f"{wanted.name} is an order parameter, whose series needs a value of the control {control}")
    if variable in given:
        raise SetupError(f"{variable} goes to {wanted.limit.to} in this limit; leave its value out")
    if wanted.phase is not None and wanted.phase not in (*phases, "minimum"):  # what has no name goes by its kind
        raise SetupError(f"{wanted.phase[:40]!r} is none of the phases {', '.join(phases) or 'minimum'}")
    if not 1 <= wanted.order <= ORDERS:
        raise SetupError(f"the order is a whole number from 1 to {ORDERS}, not {wanted.order}")
    return kind, observable


def quantity(
    action: EffectiveAction,
    kind: str,
    values: Mapping[Symbol, Rational],
    limit: Limit,
    observable: str = "",
    unstable: tuple[Sequence[Expr], int] = ((), 0),
) -> Quantity:
    """The equations of a ``kind`` of point of ``action`` with parameters ``values``, in a ``limit``.

    ``observable`` is the one whose level is crossed, or the order parameter of a minimum that is wanted. ``unstable`` is
    where a point becomes unstable, near the limit, and the order parameter that changes most where it does.
    """
    known = {**values, limit.variable: limit.inside}
    value, x, control = action.value.xreplace(known), action.variables, action.control.symbol
    slopes, curved = [value.diff(name) for name in x], ImmutableMatrix(hessian(value, x))
    if kind == "minimum":
        return Quantity(kind, x, tuple(slopes), [str(name) for name in x].index(observable), (curved,))
    if kind == "instability":
        return _instability(slopes, curved, x, control, *unstable)
    if kind == "spinodal":
        return Quantity(kind, (*x, control), (*slopes, curved.det()), len(x), (curved,))
    if kind == "crossover":
        watched = next(one for one in action.observables if one.name == observable)
        crossing = (watched.value - watched.crossover).xreplace(known)
        return Quantity(kind, (*x, control), (*slopes, crossing), len(x), (curved,))
    first, second = ({name: Symbol(f"{name}_{i}", real=True) for name in x} for i in (1, 2))
    both = [slope.xreplace(names) for names in (first, second) for slope in slopes]
    gap = _difference(value, first, second)
    unknowns, curves = (*first.values(), *second.values(), control), (curved.xreplace(first), curved.xreplace(second))
    return Quantity(kind, unknowns, (*both, gap), 2 * len(x), curves)


def _instability(
    slopes: Sequence[Expr],
    curved: ImmutableMatrix,
    x: tuple[Symbol, ...],
    control: Symbol,
    at: Sequence[Expr],
    along: int,
) -> Quantity:
    """Where a branch of stationary points meets another: grad F = 0, H v = 0 and v . dgrad F/dcontrol = 0.

    A point that is stationary at every X and control has only det H = 0 left. Else v is one ``along`` an order parameter,
    and the slope in that, which follows from the others at a crossing of branches, is no equation: they were too many.
    """
    there = dict(zip(x, at, strict=True))
    if all(slope.subs(there).equals(S.Zero) for slope in slopes):
        curved = curved.subs(there)
        return Quantity("instability", (control,), (curved.det(),), 0, (curved,))
    others = tuple(Dummy(f"v_{name}", real=True) for i, name in enumerate(x) if i != along)
    v = Matrix([*others[:along], S.One, *others[along:]])
    drift = sum((part * slope.diff(control) for part, slope in zip(v, slopes, strict=True)), S.Zero)
    equations = (*slopes[:along], *slopes[along + 1 :], *(curved * v), drift)
    return Quantity("instability", (*x, control, *others), equations, len(x), (curved,), (slopes[along],))


def _difference(value: Expr, first: Mapping[Symbol, Symbol], second: Mapping[Symbol, Symbol]) -> Expr:
    """``value`` at two points, one less the other; what does not depend on the point drops out exactly."""
    if isinstance(value, Add):
        return Add(*(_difference(term, first, second) for term in value.args))
    factor, rest = value.as_independent(*first, as_Add=False)
    if isinstance(rest, Add):
        return factor * _difference(rest, first, second)
    return factor * (rest.xreplace(first) - rest.xreplace(second)) if rest.has(*first) else S.Zero


@dataclass(frozen=True)
class Expansion:
    """The unknowns as series whose terms are all right, and the scale of what is left of each; None for nothing."""

    unknowns: tuple[Series, ...]
    left: tuple[Scale | None, ...]


def expansion(problem: Quantity, start: Sequence[Series], order: int) -> Expansion:
    """The root of the equations near ``start``, with ``order`` + 1 terms of the quantity if it has so many.

    Raises `LimitError` where the start does not balance the equations, or the terms cancel too often.
    """
    point, width, most = list(start), _FEWEST, _SPARE * (order + _FEWEST)
    largest, stepped = UNIT, 0  # share and width of the last step
    for _ in range(_ROUNDS):
        moves = _moves(problem, point, width)
        left = None if moves is None else [move.scale for move in moves]
        if left is not None:
            right = [series.above(scale) for series, scale in zip(point, left, strict=True)]
            if not any(left) or len(right[problem.place].terms) > order:
                return Expansion(tuple(right), tuple(left))
        if moves is None or not any(move.terms for move in moves):  # all that is carried cancels
            if width == most:
                raise LimitError(f"the terms cancel to {most} orders")
            width = min(2 * width, most)
            continue
        shares = [
            (move.scale.over(series.scale or UNIT), name)
            for move, series, name in zip(moves, point, problem.unknowns, strict=True)
            if move.scale is not None
        ]
        share, name = max(shares, key=lambda item: ASCENDING(item[0]))
        known = largest == UNIT or width == stepped  # else what was cut off before may be as large as what was left
        if share > largest or (share == largest and known):
            if largest == UNIT or width >= 2 * (order + _FEWEST):
                raise LimitError(f"the leading terms do not balance: {name} would change by a share {_size(share)}")
            width *= 2
            continue
        largest, stepped, width = share, width, max(width, min(2 * width, order + _FEWEST))
        point = [(series - move).known for series, move in zip(point, moves, strict=True)]
    raise LimitError(f"Newton's method did not settle in {_ROUNDS} rounds")


def _moves(problem: Quantity, point: Sequence[Series], width: int) -> list[Series] | None:
    """Newton's step at ``point``, in series of ``width`` terms; None where these are too few."""
    n, grown = len(point), Series.single(ONE, width, power=QQ(1))
    values = {LARGE: grown, **dict(zip(problem.unknowns, (series.within(width) for series in point), strict=True))}
    units = [series.scale or UNIT for series in point]
    try:
        found = evaluate((*problem.equations, *problem.slopes), values, width)
        return solved([found[n * (i + 1) : n * (i + 2)] for i in range(n)], found[:n], units)
    except PrecisionError:
        return None


def correction(problem: Quantity, point: Sequence[Series], width: int) -> Series | None:
    """What Newton's step adds to the quantity at ``point``; None where ``width`` terms are too few."""
    moves = _moves(problem, point, width)
    return None if moves is None else -moves[problem.place]


def _size(scale: Scale) -> Expr:
    return scale.expression(LARGE) if scale != UNIT else S.One
