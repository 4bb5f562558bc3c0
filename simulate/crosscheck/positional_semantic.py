r"""Claims about positional and semantic learning: descent and message passing against the state evolution.

.. math:: q_d = q + O(1/d), \qquad q^{t+1}_d \approx q^{t+1} = \Omega\big(\alpha \Psi(q^t, \ldots)\big)

Descent ends in minima of the training loss at finite d, which are extrapolated to infinite d; the iterates of message
passing follow those of the state evolution one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from torch import Tensor

from derive.catalogue import Theory
from derive.positional_semantic.theory import chosen
from derive.state_evolution import StateEvolution
from numerics.evolution import Evolution
from numerics.sectors import minima
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values, known
from simulate.message_passing import MessagePassing
from simulate.optimise import lowest, polish
from simulate.positional_semantic import STARTS, Student, samples_of, task
from simulate.verdict import Bar

__all__ = ["CLAIMS"]

_NORM, _DIGITS = 1e-7, 4
_STEPS = 4
_SPREAD = 0.5


def _case(alpha: str, d: int, parameters: Mapping[str, str] | None = None, **how: object) -> Case:
    experiment = {"d": str(d), **{name: str(value) for name, value in how.items()}}
    return Case("positional-semantic", {"alpha": alpha, **(parameters or {})}, experiment)


def _student(at: Case, seed: int) -> Student:
    """A student whose data share nothing with those of another d: the streams of a seed begin with the same numbers."""
    d, setup = int(at.how["d"]), at.setup
    assert setup.control is not None
    model, _ = chosen(at.parameters)
    problem = task(setup, d, model)
    return Student(problem, seed + _STRIDE * d, (samples_of(problem, float(setup.control)),))


_STRIDE = 10**6


def _scalars(student: Student, theta: Tensor) -> dict[str, float]:
    """The overlaps of two tokens of one covariance at rank one, with m and theta positive."""
    seen = student.overlaps(theta)
    sides = seen["m"].flatten()
    return {
        "q": float(seen["q"].mean()),
        "theta": abs(float(seen["theta"].mean())),
        "m": abs(float(sides[0] - sides[1])) / 2,
        "e": float(seen["e"]),
        "norm": float(seen["norm"]),
    }


def descended(at: Case, seed: int) -> Values:
    """The minimum that descent reaches from the case's start, the lowest of several, and its test error, mse = L eps_g."""
    student = _student(at, seed)
    starts = replace(student, counts=student.counts * int(at.how.get("starts", 1))).begin(at.how["start"])
    minimum = lowest(student.energy, [start[None] for start in starts], _NORM)
    error = float(student.test_errors(minimum.theta)[0, 0])
    return {**_scalars(student, minimum.theta), "eps_g": error, "mse": student.task.L * error}


def fixed_point(theory: Theory, at: Case) -> Expected:
    """Overlaps and observables of the solution in the sector that the case's start lies in."""
    (evolution, parameters), sector = theory.prepared(at.parameters), at.how["start"]
    assert isinstance(evolution, StateEvolution)
    found = minima(evolution, evolution.setup(parameters), _DIGITS, sector=sector)
    (point,) = (point for point in found if point.name == sector)
    return known(**point.order_parameters, **point.observables)


# --- against the linear map of the tokens ---


def beyond_linear(at: Case, seed: int) -> Values:
    """The test error of the linear map of least energy, and by how much that of attention exceeds it, relative to it."""
    student = _student(at, seed)
    _, errors = student.baseline()
    level = student.task.L * float(errors[0, 0])
    return {"linear_mse": level, "excess": descended(at, seed)["mse"] / level - 1}


def linear_level(theory: Theory, at: Case) -> Expected:
    """The same from the derived baseline and the fixed point."""
    evolution = theory.state_evolution()
    setup = evolution.setup(at.parameters)
    assert setup.control is not None
    running, solved = Evolution(evolution, setup), fixed_point(theory, at)
    (mse, error), place = solved["mse"], np.array([solved[overlap.name][0] for overlap in evolution.overlaps])
    coarse, level = (float(running.measured(place, float(setup.control), rule)[-1]) for rule in running.ladder[1:3])
    return {
        "linear_mse": (level, abs(level - coarse)),
        "excess": (mse / level - 1, error / level + abs(level - coarse) * mse / level**2),
    }


# --- message passing ---


def passed(at: Case, seed: int) -> Values:
    """Overlaps and widths of the iterates of message passing, begun near the teacher."""
    student = _student(at, seed)
    passing = MessagePassing(student)
    now = passing.begin(student.begin("semantic", spread=_SPREAD))
    seen: dict[str, float] = {}
    for step in range(1, _STEPS + 1):
        now = passing.step(step, now)
        values = _scalars(student, now["theta"]) | {"V": float(now["V"].mean())}
        seen |= {f"{name}_{step}": value for name, value in values.items()}
    return seen


def iterated(theory: Theory, at: Case) -> Expected:
    """The same from the state evolution, begun with the overlaps of that start: of the teacher, and of what is added."""
    evolution = theory.state_evolution()
    setup = evolution.setup(at.parameters)
    assert setup.control is not None
    running, names = Evolution(evolution, setup), [overlap.name for overlap in evolution.overlaps]
    teacher, width = (running.scales[names.index(name)] for name in ("theta", "V"))
    begin = {"q": teacher * (1 + _SPREAD**2), "V": width, "m": 0.0, "theta": teacher}
    control, rules = float(setup.control), running.ladder[2:4]
    coarse, fine = (np.array([begin[name] for name in names]) for _ in rules)
    found = {}
    for step in range(1, _STEPS + 1):
        coarse, fine = (running.update(x, control, rule) for x, rule in zip((coarse, fine), rules, strict=True))
        for name, value, other in zip(names, fine, coarse, strict=True):
            found[f"{name}_{step}"] = (float(value), abs(float(value - other)))
    return found


# --- which solution wins ---


def both(at: Case, seed: int) -> Values:
    """By how much the loss of the positional minimum exceeds that of the semantic one, relative to it, on the same data."""
    student = _student(at, seed)
    positional, semantic = (polish(student.energy, student.begin(start), _NORM) for start in STARTS[:2])
    return {"advantage": positional.energy / semantic.energy - 1}


def losses(theory: Theory, at: Case) -> Expected:
    """The same from the fixed points."""
    (positional, bad), (semantic, off) = (
        fixed_point(theory, replace(at, how={"start": start}))["e"] for start in STARTS[:2]
    )
    return {"advantage": (positional / semantic - 1, bad / semantic + off * positional / semantic**2)}


def strayed(at: Case, seed: int) -> Values:
    """The share of random starts from which descent ends in the semantic minimum, nearer to the teacher."""
    student = _student(at, seed)
    begun = replace(student, counts=student.counts * int(at.how["starts"])).begin("random")
    ends = [polish(student.energy, start[None], _NORM).theta for start in begun]
    seen = [_scalars(student, theta) for theta in ends]
    scale = student.task.spaces[0].eigenvalues[0]  # theta/sigma^2 and m are both of the order of the student's length
    return {"semantic": float(np.mean([each["theta"] / scale > each["m"] for each in seen]))}


def either(theory: Theory, at: Case) -> Expected:
    """Both minima attract: the share is neither zero nor one."""
    return {"semantic": (0.5, 0.0)}


# --- the rows ---


def _minimum_bars(at: Case) -> Bars:
    if at.how["start"] == "semantic" and float(at.parameters["alpha"]) >= _WHOLE_FROM:
        rest = "extrapolated in 1/d; what is left is of order 1/d^2"
        return {name: Bar(0.03, rest) for name in ("q", "theta", "norm", "mse", "eps_g")} | {"e": Bar(0.01, rest)}
    broken = "replica symmetry is broken: the overlap deficit is about a tenth"
    aligned = "theta" if at.how["start"] == "semantic" else "m"
    return {"q": Bar(0.06, broken), aligned: Bar(0.04, broken), "e": Bar(0.02, broken)}


def _linear_bars(at: Case) -> Bars:
    if at.how["start"] == "semantic":
        rest = "test errors extrapolated in 1/d, to 3 % of that of attention"
        return {"linear_mse": Bar(0.01, "exact but for terms of order 1/d^2"), "excess": Bar(0.03, rest, absolute=True)}
    return {"excess": Bar(0.1, "replica symmetry is broken: the overlap deficit is about a tenth", absolute=True)}


def _winner_bars(at: Case) -> Bars:
    return {"advantage": Bar(0.02, "e of the positional solution is off by replica symmetry breaking", absolute=True)}


def _passed_bars(at: Case) -> Bars:
    bar = Bar(0.015, f"1/d and the fluctuations of the start at d = {at.how['d']}")
    return {f"{name}_{step}": bar for step in range(1, _STEPS + 1) for name in ("q", "theta", "V")}


def _strayed_bars(at: Case) -> Bars:
    return {"semantic": Bar(0.45, "neither minimum is reached from less than a twentieth of the starts", absolute=True)}


_WARM = {"sigma": "1", "lambda": "4/5"}
"""Tokens and a ridge so large that no proximal map jumps and no iterate leaves the semantic sector."""
_WHOLE_FROM = 1.5
"""The alpha from which the semantic solution lacks less than a thousandth of its overlap for the jumps."""
_SIZES, _LARGE_SIZES = (250, 500, 1000), (1000, 2000)
"""With few samples the minima of small d are no line in 1/d: descent from the positions ends in several of them."""
_UPDATES = ("reduced potential", "channel", "prior", "potential", "field law", "sufficient loss")

_PASSING = Claim(
    name="message passing",
    theory="positional-semantic",
    statement="the iterates of message passing follow those of the state evolution one by one",
    steps=_UPDATES,
    cases=(_case("6", 1000, _WARM),),
    quick=(_case("6", 1000, _WARM),),
    seeds=16,
    quick_seeds=10,
    measure=passed,
    expect=iterated,
    bars=_passed_bars,
    seconds=2,
)

_POSITIONAL = Claim(
    name="positional minimum",
    theory="positional-semantic",
    statement="the same from the positions, where replica symmetry is broken",
    steps=(*_UPDATES, "training loss", "overlap deficit"),
    cases=tuple(_case(alpha, d, start="positional") for alpha in ("1", "1.5", "2") for d in _SIZES),
    quick=(),
    seeds=60,
    measure=descended,
    expect=fixed_point,
    bars=_minimum_bars,
    seconds=0.8,
    size="d",
    beside=("deficit",),
)

_SEMANTIC = Claim(
    name="semantic minimum",
    theory="positional-semantic",
    statement="overlaps, training loss and test error that descent reaches from the teacher, extrapolated in 1/d",
    steps=(*_UPDATES, "training loss", "test error", "norm", "overlap deficit"),
    cases=tuple(_case(alpha, d, start="semantic") for alpha in ("1", "1.5", "2") for d in _SIZES),
    quick=tuple(_case("1.5", d, start="semantic") for d in _SIZES[::2]),
    seeds=40,
    quick_seeds=26,
    measure=descended,
    expect=fixed_point,
    bars=_minimum_bars,
    seconds=0.5,
    size="d",
    beside=("deficit",),
)

CLAIMS = (
    _SEMANTIC,
    replace(
        _SEMANTIC,
        name="semantic minimum of another target",
        statement="the same for an A that is not symmetric, from the state evolution of any model",
        steps=("canonical potential", "worst direction"),
        cases=tuple(_case("2", d, {"A": "[[3/5,2/5],[1/5,4/5]]"}, start="semantic") for d in _SIZES),
        quick=(),
    ),
    _POSITIONAL,
    replace(
        _POSITIONAL,
        name="positional minimum at few samples",
        statement="the same at alpha = .6, where some runs leave the positions: the lower of two",
        cases=tuple(_case("0.6", d, start="positional", starts=2) for d in _LARGE_SIZES),
        seeds=160,
        seconds=2.5,
    ),
    Claim(
        name="linear baseline",
        theory="positional-semantic",
        statement="test errors of the linear map and of attention, which wins from the teacher, beyond alpha_l",
        steps=("linear baseline", "test error"),
        cases=tuple(
            _case(alpha, d, start=start)
            for alpha, start in (("1.3", "semantic"), ("1.7", "semantic"), ("1", "positional"))
            for d in _SIZES
        ),
        quick=(),
        seeds=30,
        measure=beyond_linear,
        expect=linear_level,
        bars=_linear_bars,
        seconds=0.8,
        size="d",
    ),
    Claim(
        name="which solution wins",
        theory="positional-semantic",
        statement="difference of the training losses of both minima on both sides of alpha_c",
        steps=("training loss", "reduced potential"),
        cases=tuple(_case(alpha, d) for alpha in ("1", "1.5", "2") for d in _SIZES),
        quick=(),
        seeds=60,
        measure=both,
        expect=losses,
        bars=_winner_bars,
        seconds=1.0,
        size="d",
    ),
    Claim(
        name="random starts",
        theory="positional-semantic",
        statement="descent from random starts reaches either minimum",
        steps=(),
        cases=tuple(_case(alpha, 500, starts=64) for alpha in ("1", "2")),
        quick=(),
        seeds=4,
        measure=strayed,
        expect=either,
        bars=_strayed_bars,
        seconds=15,
    ),
    _PASSING,
    replace(
        _PASSING,
        name="message passing at large d",
        cases=(_case("4", 4000, _WARM),),
        quick=(),
        seeds=8,
        seconds=15,
    ),
)
