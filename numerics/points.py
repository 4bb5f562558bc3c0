r"""Numbers with error bounds, stationary points and transitions: what the solvers return.

.. math:: \nabla F(x; \lambda) = 0

All of them are frozen records. A `Number` prints as a decimal string of N significant digits together with a bound on
the error *of that string*, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import overload

import mpmath
from mpmath import mpf

__all__ = [
    "CostError",
    "Kind",
    "Number",
    "PhasePoint",
    "Point",
    "Points",
    "SolverError",
    "Stability",
    "Status",
    "Transition",
    "TransitionKind",
    "Transitions",
    "justified",
    "number",
]


class SolverError(ArithmeticError):
    """A solver lost what it was following; nothing it has is worth reporting."""


class CostError(ValueError):
    """A rule of integration would need more nodes than can be afforded."""


class Status(Enum):
    """How a computation ended; ``message`` says it in words."""

    OK = "ok"
    DIGITS = "digits not reached"
    DEGENERATE = "degenerate"
    COVER = "cover incomplete"
    UNRESOLVED = "transition unresolved"
    UNDECIDED = "order undecided"
    DIVERGED = "no root"
    UNPROVEN = "not proven"

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "every number carries the digits asked for",
    Status.DIGITS: "two precisions or rules of integration do not agree to the digits asked for; the bounds say how far",
    Status.DEGENERATE: "a stationary point is degenerate: its Hessian is singular there, roots coincide",
    Status.COVER: "stationary points are missing: the indices of those found contradict the gradient around the box",
    Status.UNRESOLVED: "a transition or solution was located, but its defining system was not solved or not confirmed",
    Status.UNDECIDED: "the Landau coefficient that decides the order of a transition vanishes to working precision",
    Status.DIVERGED: "no iteration converged: there is no regular root near the starts",
    Status.UNPROVEN: "not everything that was found is proven; the notes say what is not",
}


class Kind(StrEnum):
    """The type of a stationary point by the signs of its Hessian eigenvalues; or a fixed point of a state evolution."""

    MINIMUM = "minimum"
    SADDLE = "saddle"
    MAXIMUM = "maximum"
    DEGENERATE = "degenerate"
    FIXED_POINT = "fixed-point"


class Stability(StrEnum):
    """Stable: the lowest minimum. Metastable: another minimum. Unstable: everything else."""

    STABLE = "stable"
    METASTABLE = "metastable"
    UNSTABLE = "unstable"


class TransitionKind(StrEnum):
    """What happens at a transition."""

    COEXISTENCE = "coexistence"
    SPINODAL = "spinodal"
    INSTABILITY = "instability"
    CROSSOVER = "crossover"
    CRITICAL_END_POINT = "critical-end-point"
    TRICRITICAL = "tricritical"
    OBSERVABLE_CROSSING = "observable-crossing"


@dataclass(frozen=True)
class Number:
    """A real number known to within ``error``, to be printed with ``digits`` significant digits."""

    value: mpf
    error: mpf
    digits: int

    @property
    def text(self) -> str:
        """The decimal string of ``digits`` significant digits (``0`` for an exact zero, ``nan`` where undefined)."""
        if self.value == 0:
            return "0"
        return str(mpmath.nstr(self.value, self.digits, strip_zeros=False)).replace(".e", "e")

    @property
    def bound(self) -> str:
        """An upper bound, of one digit, on the distance of `text` from the number: rounding and solver error."""
        if mpmath.isnan(self.value) or mpmath.isinf(self.error):
            return "nan" if mpmath.isnan(self.value) else "inf"
        with mpmath.workprec(max(53, self.value.bc, self._exponent_bits()) + 64):
            off = abs(self.value - mpf(self.text)) + self.error
            if off == 0:
                return "0"
            return _round_up(max(off, self._half_unit()))

    @property
    def reached(self) -> bool:
        """Whether `text` is within a unit of its last digit."""
        if mpmath.isnan(self.value) or self.error == 0:
            return True
        return bool(self.value != 0 and self.error <= self._half_unit())

    def _half_unit(self) -> mpf:
        if self.value == 0:
            return mpf(0)
        with mpmath.workdps(30):
            exponent = mpmath.floor(mpmath.log10(abs(mpf(self.text))) + mpf(10) ** -25)
            return 5 * mpf(10) ** (int(exponent) - self.digits)

    def _exponent_bits(self) -> int:
        return 4 * self.digits

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return self.text


def number(value: float, error: float, digits: int) -> Number:
    """A `Number` from double precision."""
    return Number(mpf(float(value)), mpf(float(error)), digits)


def justified(value: float, error: float, digits: int) -> Number:
    """A `Number` from double precision with as many of ``digits`` digits as its error leaves, one at least; nan where value
    or error is not finite."""
    if not math.isfinite(value + error):
        return number(math.nan, math.nan, digits)
    known = digits if error == 0 or value == 0 else int(mpmath.floor(mpmath.log10(abs(value) / (2 * error)))) + 1
    return number(value, error, max(1, min(digits, known)))


def _round_up(value: mpf) -> str:
    """``value`` with one significant digit, rounded up: 5.01e-28 becomes 6e-28."""
    with mpmath.workdps(30):
        exponent = int(mpmath.floor(mpmath.log10(value)))
        digit = int(mpmath.ceil(value / mpf(10) ** exponent * (1 - mpf(10) ** -25)))
        return f"1e{exponent + 1:+d}" if digit >= 10 else f"{max(digit, 1)}e{exponent:+d}"


@dataclass(frozen=True)
class Point:
    """A classified stationary point; ``copies`` symmetric images of it (itself included) are the same phase.

    ``hessian`` holds the eigenvalues in ascending order. An observable that is undefined at the point is nan; ``readings``
    say in words what the values of some mean. Every number has a bound of its own; ``error`` is the largest among order
    parameters and action, ``reached`` asks all.
    """

    name: str
    kind: Kind
    stability: Stability
    order_parameters: Mapping[str, Number]
    action: Number
    hessian: tuple[Number, ...]
    observables: Mapping[str, Number] = field(default_factory=dict)
    copies: int = 1
    symmetry: tuple[str, ...] = ()
    readings: Mapping[str, str] = field(default_factory=dict)
    certified: bool = False

    @property
    def error(self) -> str:
        """The largest bound among those of the order parameters and the action."""
        return max((self.action, *self.order_parameters.values()), key=lambda number: mpf(number.bound)).bound

    @property
    def reached(self) -> bool:
        """Whether every number has its digits."""
        numbers = (self.action, *self.order_parameters.values(), *self.hessian, *self.observables.values())
        return all(number.reached for number in numbers)


@dataclass(frozen=True)
class Points(Sequence[Point]):
    """All stationary points at one value of the control: minima first, the lowest action first."""

    points: tuple[Point, ...]
    status: Status = Status.OK
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Point, ...]: ...
    def __getitem__(self, index: int | slice) -> Point | tuple[Point, ...]:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class PhasePoint:
    """A phase at a transition: its name, where it lies and its action there."""

    name: str
    order_parameters: Mapping[str, Number]
    action: Number


@dataclass(frozen=True)
class Transition:
    """A transition at ``value`` of the control ``control``.

    ``order`` is "first" or "second" where the word applies, else ``None``; ``at`` holds the size of a critical end
    point; ``observable`` names what crosses at a crossover; ``method`` says which system was solved. ``phases`` are, for
    a coexistence, the phase below and the one above; for a spinodal, the phase that ends. ``bend`` is, at the instability
    of an overlap in a state evolution, how far its square moves the control towards where zero is unstable.
    """

    kind: TransitionKind
    order: str | None
    control: str
    value: Number
    phases: tuple[PhasePoint, ...]
    method: str
    status: Status = Status.OK
    at: Mapping[str, Number] = field(default_factory=dict)
    observable: str | None = None
    certified: bool = False
    bend: Number | None = None

    @property
    def error(self) -> str:
        return self.value.bound

    @property
    def phase(self) -> str | None:
        """The name of the phase that ends at a spinodal."""
        return self.phases[0].name if self.kind is TransitionKind.SPINODAL and self.phases else None

    @property
    def places(self) -> list[tuple[tuple[mpf, ...], mpf]]:
        """The points of its phases, each with the control; none where the size is one of its own."""
        points = [] if self.at else [phase.order_parameters.values() for phase in self.phases]
        return [(tuple(number.value for number in point), self.value.value) for point in points]

    @property
    def title(self) -> str:
        """The kind, with the phase that ends or the observable that crosses where there is one."""
        what = self.phase or self.observable
        return f"{self.kind} ({what})" if what else str(self.kind)


@dataclass(frozen=True)
class Transitions(Sequence[Transition]):
    """Every transition along the control, in ascending order; a critical end point comes last."""

    entries: tuple[Transition, ...]
    status: Status = Status.OK
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @overload
    def __getitem__(self, index: int) -> Transition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Transition, ...]: ...
    def __getitem__(self, index: int | slice) -> Transition | tuple[Transition, ...]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        lines = [f"{entry.title}: {entry.control} = {entry.value} +- {entry.error}" for entry in self.entries]
        return "\n".join((*lines, *self.notes))

    def of(self, kind: str, phase: str | None = None) -> Transition:
        """The first transition of a ``kind`` ("coexistence", "spinodal", ...), for a spinodal that of ``phase``.

        Raises `LookupError`, which names what there is.
        """
        for entry in self.entries:
            if entry.kind == kind and phase in (None, entry.phase):
                return entry
        there = ", ".join(dict.fromkeys(entry.title for entry in self.entries)) or "no transition"
        raise LookupError(f"there is no {kind if phase is None else f'{kind} ({phase})'}; there is {there}")
