"""The plan of an experiment: what is asked for, completed and refused before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

from sympy import Integer, Rational, Symbol

from derive.action import Parameter, Setup, SetupError
from derive.copy_head.model import T
from derive.positional_semantic.model import Model
from simulate.langevin import LEAST_DRAWS
from simulate.models import SAMPLERS, described, family_of
from simulate.run import BudgetError, device

__all__ = ["BURN", "METHODS", "THIN", "Plan", "at", "planned"]

_ADAM_RATE = 0.003
_TRAINING: Mapping[str, Any] = {"tolerance": 1e-5, "restarts": 1}
_STEPWISE: Mapping[str, Any] = {**_TRAINING, "steps": 20_000, "rate": None}
_SAMPLING: Mapping[str, Any] = {"chains": 4, "steps": 10_000, "rate": None}
_NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "lbfgs": _TRAINING,
    "gd": _STEPWISE,
    "adam": {**_STEPWISE, "rate": _ADAM_RATE},
    "mala": _SAMPLING,
    "ula": _SAMPLING,
    "sgld": {**_SAMPLING, "batch": None},
    "message-passing": {"tolerance": 1e-5, "steps": 300, "share": 1.0},
}
"""What each method takes, with its own choice; `None` is one that the problem decides."""
METHODS = tuple(_NUMBERS)
_ALSO_CALLED = {"langevin": "mala"}
_LEAST = {"chains": 2, "restarts": 1, "steps": 1, "batch": 1, "rank": 1, "chunk": 1}
_MOST = {"tolerance": 1e-2}
"""Beyond, a start may pass for a minimum."""

THIN = 5
BURN = 0.2
"""The share of the steps of a chain in which it forgets its start."""
_MEMORY = 4 * 1024**3
_COPIES, _LBFGS_COPIES = 10, 60
"""Bytes that states may use, and how many a method keeps of each: SciPy's L-BFGS 2 x 20 of its history, and copies."""


@dataclass(frozen=True)
class Plan:
    """What is done: the setup, the ``starts`` in turn, the method, the device, and all ``numbers`` of method and model.

    ``ladder`` holds the values of the control of a sweep; ``model`` is that of the theory, where there are several.
    """

    setup: Setup
    method: str
    starts: tuple[str, ...]
    on: str
    numbers: Mapping[str, Any]
    ladder: tuple[Rational, ...] = ()
    model: Model | None = None

    @property
    def text(self) -> str:
        """In one line."""
        shown = {**self.values, **self.chosen}
        numbers = ", ".join(f"{name} = {value}" for name, value in shown.items())
        return f"{numbers}; {self.method} from {' and '.join(self.starts)} on {self.on}"

    @property
    def chosen(self) -> dict[str, Any]:
        """The numbers that are set."""
        return {name: x for name, x in self.numbers.items() if x is not None and x is not False}

    @property
    def values(self) -> dict[str, str]:
        """Sizes and parameters as text, and the control where it is one."""
        sizes = {} if self.model is None else _sizes(self.model)
        control = {} if self.setup.control is None else {self.control: str(self.setup.control)}
        return {**sizes, **self.setup.as_text(), **control}

    @property
    def control(self) -> str:
        return family_of(self.setup.theory).control.name

    @property
    def headline(self) -> tuple[str, ...]:
        """The main observables."""
        return family_of(self.setup.theory).headline

    @property
    def phases(self) -> tuple[str, ...]:
        """Where each row begins."""
        return tuple(islice(cycle(self.starts), self.numbers.get("chains") or self.numbers.get("restarts", 1)))

    @property
    def places(self) -> tuple[Mapping[str, str], ...]:
        """What tells the records of one seed apart: the control and the direction of a sweep."""
        if not self.ladder:
            return ({},)
        return tuple({self.control: str(x), "direction": way} for way in ("up", "down") for x in self.ladder)

    @property
    def about(self) -> dict[str, str]:
        """What a store of this experiment is made for."""
        return {
            "theory": self.setup.theory,
            "parameters": ", ".join(f"{name}={text}" for name, text in sorted(self.values.items())),
            "method": self.method,
            "start": ", ".join(self.starts),
            "device": self.on,
            **{name: str(value) for name, value in self.numbers.items()},
            **({"sweep": ", ".join(map(str, self.ladder))} if self.ladder else {}),
        }


def planned(
    theory: str,
    values: Mapping[str, str],
    method: str = METHODS[0],
    start: str | None = None,
    on: str = "cpu",
    ladder: Sequence[Rational] = (),
    **asked: Any,
) -> Plan:
    """The plan for the values of a command line; ``asked`` are numbers of the method and the model, `None` their own.

    ``start`` names one start, or several with commas; by default chains begin in all, training in the first. Raises
    `SetupError` for what cannot be and `BudgetError` for what does not fit the memory, before anything is allocated.
    """
    family, left = family_of(theory), dict(values)
    d = left.pop("d", None) if "d" in family.numbers else None
    setup, model = described(theory, left)
    if d is not None and model is not None:
        asked["d"] = _dimensions(d, model)
    method = _ALSO_CALLED.get(method, method)
    if method not in family.methods:
        raise SetupError(f"there is no method {method!r} for {theory}; there are {', '.join(family.methods)}")
    starts = tuple(start.split(",")) if start is not None else family.starts[: None if method in SAMPLERS else 1]
    for each in starts:
        if each not in family.starts:
            raise SetupError(f"there is no start {each!r} for {theory}; there are {', '.join(family.starts)}")
    numbers = {**family.numbers, **_NUMBERS[method]}
    if "restarts" in numbers:
        numbers["restarts"] = len(starts)
    for name, value in asked.items():
        if value is not None:
            numbers[name] = _valid(name, value, numbers, f"{method} of {theory}")
    if method == "sgld":
        numbers["joint"] = True  # with W integrated out, the energies of sequences do not add up
    if method in SAMPLERS:
        _refuse_unsampled(setup, method, numbers["steps"])
    try:
        on = str(device(on))
    except ValueError as error:
        raise SetupError(str(error)) from None
    plan = Plan(setup, method, starts, on, numbers, tuple(ladder), model)
    if len(starts) > len(plan.phases):
        rows = next((name for name in ("chains", "restarts") if name in numbers), None)
        more = f"take --{rows} {len(starts)} or more" if rows else f"{method} takes one"
        raise SetupError(f"--init {','.join(starts)} names {len(starts)} starts; {more}")
    if ladder and (method != METHODS[0] or setup.control is not None or numbers["restarts"] > 1):
        raise SetupError(f"a sweep takes {METHODS[0]} without restarts, and no {plan.control} of its own")
    for step in plan.ladder or (setup.control,):
        _refuse_large(plan, family.prepare(at(plan, step), 0).dimension)
    return plan


def _refuse_large(plan: Plan, dimension: int) -> None:
    rows, copies = (1, _LBFGS_COPIES) if plan.method == "lbfgs" else (len(plan.phases), _COPIES)
    needed = rows * copies * dimension * 8
    if needed > _MEMORY:
        raise BudgetError(
            f"{plan.method} of {rows} states of {dimension} numbers needs {needed / 1024**3:.3g} GiB, more than the"
            f" {_MEMORY / 1024**3:.3g} GiB they may use; take smaller or fewer states"
        )


def _valid(name: str, value: Any, known: Mapping[str, Any], what: str) -> Any:
    if name not in known:
        raise SetupError(f"{what} takes no {name}; it takes {', '.join(known)}")
    if name in _LEAST and value < _LEAST[name]:
        why = ": whether chains have met is seen from two or more" if name == "chains" else ""
        raise SetupError(f"{name} = {value} must be at least {_LEAST[name]}{why}")
    if not 0 <= value < math.inf or (name not in _LEAST and value == 0):
        raise SetupError(f"{name} = {value} must be positive and finite")
    if value > _MOST.get(name, math.inf):
        raise SetupError(f"{name} = {value} must be at most {_MOST[name]}: a start would pass for a minimum")
    return value


def _refuse_unsampled(setup: Setup, method: str, steps: int) -> None:
    if setup.values[T] == 0:
        raise SetupError(
            f"{method} samples at T > 0, and T = 0 has nothing to sample; give T=1/100, or train with lbfgs"
        )
    if (steps - int(BURN * steps)) // THIN < LEAST_DRAWS:
        raise SetupError(
            f"{steps} steps leave fewer than {LEAST_DRAWS} draws of a chain; take {2 * LEAST_DRAWS * THIN}"
        )


def _dimensions(text: str, model: Model) -> int:
    """Enough for the positions of all tokens and the teacher."""
    least = Integer(model.length + model.teacher_rank)
    d = Parameter(Symbol("d"), "number of dimensions", lower=least, strict=False).validate(text)
    if not d.is_Integer:
        raise SetupError(f"d = {d} must be a whole number of dimensions")
    return int(d)


def _sizes(model: Model) -> dict[str, str]:
    return {"L": str(model.length), "r_s": str(model.student_rank), "r_t": str(model.teacher_rank)}


def at(plan: Plan, control: Rational | None) -> Plan:
    """The experiment at one value of the control, which must be one in its range."""
    at = None if control is None else family_of(plan.setup.theory).control.validate(control)
    return replace(plan, setup=replace(plan.setup, control=at), ladder=())
