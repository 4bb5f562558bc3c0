r"""Claims about the linear head: the second-order transition, the global minimum, metastable states and the crossover."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sympy import Expr, Rational, cancel, sqrt
from torch import Tensor

from derive.catalogue import Theory
from derive.copy_head.model import L, V, c, u
from derive.copy_head.signed import NEGATIVE
from numerics.points import Point, TransitionKind
from simulate.copy_head import CopyHead, Replica, task
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values, known
from simulate.crosscheck.heads import (
    NORM,
    POPULATION,
    WHOLE,
    bracket,
    case,
    head_of,
    minima_of,
    observed,
    polished,
    same,
    sizes_of,
    transitions_of,
    values_of,
)
from simulate.optimise import hysteresis
from simulate.run import hessian_product
from simulate.verdict import Bar

__all__ = ["CLAIMS"]


def onset(at: Case, seed: int) -> Values:
    """The number of sequences at which zero attention becomes unstable.

    There the data term is a quadratic form, which grows as the square of the number of sequences; that of ``sequences``
    of them has the top eigenvalue gamma_g (sequences/P)^2 at the number P that is sought.
    """
    problem, count = task(at.setup), int(at.how["sequences"])
    head = CopyHead(problem, (Replica(seed, count),))
    zero = torch.zeros(1, problem.dimension, dtype=torch.float64)

    def data(direction: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = torch.from_numpy(direction).reshape(1, -1)
        return (problem.gamma_g * turned - hessian_product(head.energy, zero, turned))[0].numpy()

    operator = LinearOperator((problem.dimension, problem.dimension), matvec=data, dtype=np.float64)
    begin = np.random.default_rng(seed).normal(size=problem.dimension)
    (top,) = eigsh(operator, k=1, which="LA", v0=begin, tol=1e-6, return_eigenvectors=False)
    return {"P": count * math.sqrt(problem.gamma_g / float(top))}


def instability(theory: Theory, at: Case) -> Expected:
    return known(P=transitions_of(theory, at).of("instability").value)


def pooling_law(theory: Theory, at: Case) -> Expected:
    """The onset in long sequences."""
    values = values_of(theory, at)
    return {"P": (float(values[V] ** 2 * theory.derivation().value("pooling law").subs(values)), 0.0)}


def deepest(at: Case, seed: int) -> Values:
    """The lowest of the minima from several starts, with what the paper filters: minima that are not the lowest."""
    head = head_of(at, seed)
    minima = [polished(head, start) for start in _starts(head)]
    found = observed(head, min(minima, key=lambda each: each.energy))
    trapped = sum(not same(each.energy, found["energy"]) for each in minima)
    return {**found, "trapped": trapped / len(minima)}


def _starts(head: CopyHead) -> list[Tensor]:
    """No attention, copying, weak and strong, and pooling with and without copying."""
    zero, (weak, strong) = head.begin("zero"), (head.begin("copy", gap) for gap in (2.0, float(head.task.L)))
    return [zero, weak, strong, zero + 1 / 4, strong + 1 / 4]


def global_minimum(theory: Theory, at: Case) -> Expected:
    point = min(minima_of(theory.action(), at), key=lambda each: float(each.action))
    return {**known(energy=point.action, **point.observables), **WHOLE}


def plateau(theory: Theory, at: Case) -> Expected:
    """The derived loss of uniform attention with an ideal readout."""
    _, pooled, _ = theory.derivation().value("loss plateaus")
    return {"loss": (float(pooled.subs(sizes_of(at))), 0.0)}


def trapped(at: Case, seed: int) -> Values:
    """The minimum from pooling in which some symbols count negatively, its energy relative to that of pooling."""
    head = head_of(at, seed)
    signed = head.begin("zero").reshape(1, head.task.width, -1)
    signed[:, :, : head.task.V] += 1 / 2
    signed[:, :, : int(at.how["negative"])] -= 1
    found, pooling = (observed(head, polished(head, start)) for start in (signed.flatten(1), _starts(head)[3]))
    return {**found, "excess": 1 - found["energy"] / pooling["energy"]}


def filtered(at: Case, seed: int) -> Values:
    """The share of the runs from no attention that do not reach the lowest minimum, and how much higher they end."""
    problem = task(at.setup)
    heads = [CopyHead(problem, (Replica(seed, int(at.parameters["P"]), run),)) for run in range(int(at.how["runs"]))]
    lowest = polished(heads[0], _starts(heads[0])[3]).energy
    energies = [polished(head, head.begin("zero")).energy for head in heads]
    count = sum(not same(energy, lowest) for energy in energies)
    return {"filtered": count / len(heads), "excess": 1 - sum(energies) / len(heads) / lowest}


@cache
def _signed(theory: Theory) -> Expr:
    signed: Expr = theory.derivation().value("signed action")
    return signed


def _pooling(theory: Theory, at: Case, negative: int) -> Point:
    """The derived minimum in which so many symbols count negatively."""
    action, place = theory.action(), {**values_of(theory, at), NEGATIVE: negative}
    signed = replace(action, value=cancel(_signed(theory).subs(place)))
    return min(minima_of(signed, at), key=lambda point: float(point.action))


def signed_pooling(theory: Theory, at: Case) -> Expected:
    """Energy relative to pooling, and the share of |A|^2 that is in the plane, where the mean of the signs remains."""
    negative = int(at.how["negative"])
    point, pooling = _pooling(theory, at, negative), _pooling(theory, at, 0)
    uniform, copying = (float(number) for number in point.order_parameters.values())
    square = theory.derivation().value("attention plane")[0].subs(sizes_of(at))
    signs = 1 - 2 * negative / int(at.parameters["V"])
    seen, whole = (float(square.subs({u: each, c: copying})) for each in (signs * uniform, uniform))
    return {"excess": (1 - float(point.action) / float(pooling.action), 0.0), "coverage_each": (seen / whole, 0.0)}


def tossed(theory: Theory, at: Case) -> Expected:
    """The same averages over all signs of the symbols."""
    symbols = int(at.parameters["V"])
    counts = Counter(map(sum, product((0, 1), repeat=symbols)))
    energies = {negative: float(_pooling(theory, at, negative).action) for negative in counts}
    mean = sum(count * energies[negative] for negative, count in counts.items()) / counts.total()
    missed = 1 - (counts[0] + counts[symbols]) / counts.total()
    return {"filtered": (missed, 0.0), "excess": (1 - mean / energies[0], 0.0)}


def opposed(at: Case, seed: int) -> Values:
    """The minimum from uniform attention with the copied entries far below the others."""
    head = head_of(at, seed)
    return observed(head, polished(head, head.begin("copy", _OPPOSED) + 1 / 16))


_OPPOSED = -2.6


def anti_copy(theory: Theory, at: Case) -> Expected:
    """The metastable minimum with u c < 0 (of its two images the solvers keep that with u > 0)."""
    (point,) = (each for each in minima_of(theory.action(), at) if each.name == "anti-copy")
    u, c = (point.order_parameters[name] for name in "uc")
    return known(energy=point.action, loss=point.observables["loss"], u=u, a_G=c)


def crossover(at: Case, seed: int) -> Values:
    """The number of sequences at which half of the attention of a head begun in pooling and copying is the copy's."""
    problem = task(at.setup)

    @cache
    def excess(P: int) -> float:
        head = CopyHead(problem, (Replica(seed, P),))
        return observed(head, polished(head, _starts(head)[-1]))["copy_weight"] - 0.5

    low, high = bracket(lambda P: excess(P) < 0, problem.L)
    return {"P": low + (high - low) * excess(low) / (excess(low) - excess(high))}


def expected_crossover(theory: Theory, at: Case) -> Expected:
    return known(P=transitions_of(theory, at).of("crossover").value)


def crossover_law(theory: Theory, at: Case) -> Expected:
    """The crossover in long sequences."""
    values, (law, _) = values_of(theory, at), theory.derivation().value("crossover law")
    return {"P": (float(values[L] ** Rational(3, 2) * sqrt(values[V]) * law.subs(values)), 0.0)}


def loop(at: Case, seed: int) -> Values:
    """The largest relative difference of the energies on the way up and on the way down a ladder in P."""
    problem = task(at.setup)
    heads = [CopyHead(problem, (Replica(seed, int(P)),)) for P in at.how["ladder"].split(",")]
    tolerance = NORM * heads[0].replicas[0].P
    ways = hysteresis([head.energy for head in heads], _starts(heads[0])[3], heads[0].noise(), tolerance=tolerance)
    return {"hysteresis": max(abs(down.energy / up.energy - 1) for up, down in zip(*ways, strict=True))}


def without_hysteresis(theory: Theory, at: Case) -> Expected:
    """No first-order transition within the ladder, hence no hysteresis."""
    ladder = [int(P) for P in at.how["ladder"].split(",")]
    jumps = [entry for entry in transitions_of(theory, at) if entry.kind is TransitionKind.COEXISTENCE]
    if any(ladder[0] < float(entry.value) < ladder[-1] for entry in jumps):
        raise ArithmeticError("the theory has a first-order transition within the ladder")
    return {"hysteresis": (0.0, 0.0)}


def _onset_bars(at: Case) -> Bars:
    return {"P": Bar(0.02, "extrapolated in 1/P; what is left is of order 1/P^2")}


def _finite_onset_bars(at: Case) -> Bars:
    count = int(at.how["sequences"])
    return {
        "P": Bar(0.06 * 64 / count, "top eigenvalue of a few sequences, too large by order 1/P: 6 % for 64 of them")
    }


def _linear_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, POPULATION),
        "copy_weight": Bar(0.03, "a share of one; finite data copy a little more", absolute=True),
        "coverage": Bar(0.05, "what is outside of the plane is of order 1/P", absolute=True),
    }


_PLATEAU = tuple(case("linear", L=24, V=4, P=P) for P in (120, 160, 200))


_SIGNED = tuple(case("linear", {"negative": k}, L=24, V=4, P=P) for k, P in ((1, 160), (2, 160), (2, 80)))
"""At P = 80 a single negative sign turns back in the finite data of some seeds."""


_ANTI = (case("linear", L=24, V=4, P=1000),)
_CROSSOVER = (case("linear", L=24, V=4),)


_ONSETS = tuple(case("linear", {"sequences": count}, L=64, V=V) for V in (4, 8, 16) for count in (64, 256, 1024))

_ONSET = Claim(
    name="linear onset",
    theory="copy-head/linear",
    statement="second-order transition: instability of zero attention, extrapolated in the number of sequences",
    steps=("linear action", "stiffness at zero", "pooling transition", "critical direction"),
    cases=(*_ONSETS, *(case("linear", {"sequences": count}, L=24, V=4) for count in (56, 224, 896))),
    quick=tuple(case("linear", {"sequences": count}, L=64, V=8) for count in (64, 256)),
    seeds=8,
    measure=onset,
    expect=instability,
    bars=_onset_bars,
    seconds=1.2,
    size="sequences",
)

_HALFWAY = Claim(
    name="linear crossover",
    theory="copy-head/linear",
    statement="the number of sequences at which half of the attention copies",
    steps=("linear action", "copy weight"),
    cases=_CROSSOVER,
    quick=_CROSSOVER,
    seeds=8,
    measure=crossover,
    expect=expected_crossover,
    bars=lambda at: {"P": Bar(0.05, "share of the copy along P, which finite data raise by order 1/P and 1/L")},
    seconds=3,
)

CLAIMS = (
    _ONSET,
    Claim(
        name="linear onset from few sequences",
        theory="copy-head/linear",
        statement="the same for few sequences, of which the onset is early, the less the more there are",
        steps=("pooling transition",),
        cases=_ONSETS,
        quick=_ONSETS[3:4],
        seeds=8,
        measure=onset,
        expect=instability,
        bars=_finite_onset_bars,
        seconds=1.2,
    ),
    Claim(
        name="linear onset from fewest sequences",
        theory="copy-head/linear",
        statement="the same for no more sequences than pooling takes",
        steps=("pooling transition",),
        cases=(case("linear", {"sequences": 14}, L=24, V=4),),
        quick=(),
        seeds=32,
        measure=onset,
        expect=instability,
        bars=lambda at: {"P": Bar(0.15, "reported: too large an eigenvalue by order 1/P, 1/14, twice")},
        seconds=0.1,
    ),
    Claim(
        name="linear minimum",
        theory="copy-head/linear",
        statement="energy, share of copying and coverage at the lowest of the minima from five starts",
        steps=("linear action", "copy weight", "pair action"),
        cases=tuple(case("linear", L=24, V=4, P=P) for P in (40, 80, 160, 290, 430, 620)),
        quick=tuple(case("linear", L=24, V=4, P=P) for P in (80, 160, 430)),
        seeds=8,
        measure=deepest,
        expect=global_minimum,
        bars=_linear_bars,
        seconds=1,
    ),
    Claim(
        name="linear loss",
        theory="copy-head/linear",
        statement="the loss along P: none gained, a plateau while the head pools, a slow decrease as it copies",
        steps=("loss", "readout", "linear action"),
        cases=tuple(case("linear", L=24, V=4, P=P) for P in (8, 40, 80, 120, 160, 200, 290, 430, 620)),
        quick=tuple(case("linear", L=24, V=4, P=P) for P in (8, 80, 160, 430)),
        seeds=8,
        measure=deepest,
        expect=global_minimum,
        bars=lambda at: {"loss": Bar(0.03, POPULATION)},
        seconds=1,
    ),
    Claim(
        name="linear plateau",
        theory="copy-head/linear",
        statement="on the plateau the loss is that of the best guess from the counts of a sequence",
        steps=("loss plateaus",),
        cases=_PLATEAU,
        quick=_PLATEAU[1:2],
        seeds=8,
        measure=deepest,
        expect=plateau,
        bars=lambda at: {"loss": Bar(0.05, "the ridges, of order V^2/P, and copying, which has begun")},
        seconds=1,
    ),
    Claim(
        name="linear trapped states",
        theory="copy-head/linear",
        statement="pooling in which some symbols count negatively is a minimum, outside of the plane and higher",
        steps=("signed action", "signed score cost"),
        cases=_SIGNED,
        quick=_SIGNED[:2],
        seeds=8,
        measure=trapped,
        expect=signed_pooling,
        bars=lambda at: {
            "excess": Bar(0.004, "of two energies that are off alike; less than one more sign costs", absolute=True),
            "coverage_each": Bar(0.1, "symbols of the rarer sign count less, by order V/L", absolute=True),
        },
        seconds=0.3,
    ),
    Claim(
        name="linear filter",
        theory="copy-head/linear",
        statement="runs from no attention that end in a trapped state, and their mean energy: signs as if tossed",
        steps=("signed action",),
        cases=tuple(case("linear", {"runs": 8}, L=24, V=4, P=P) for P in (80, 160)),
        quick=(),
        seeds=8,
        measure=filtered,
        expect=tossed,
        bars=lambda at: {
            "filtered": Bar(0.2, "equal signs grow first, and a single negative one may turn back", absolute=True),
            "excess": Bar(0.01, "equal signs grow first, and a single negative one may turn back", absolute=True),
        },
        seconds=2,
    ),
    Claim(
        name="linear anti-copy state",
        theory="copy-head/linear",
        statement="a run begun beside the metastable state of opposite signs falls into it",
        steps=("anti-copy state", "linear action", "loss"),
        cases=_ANTI,
        quick=_ANTI,
        seeds=8,
        measure=opposed,
        expect=anti_copy,
        bars=lambda at: {
            **dict.fromkeys(("energy", "a_G"), Bar(0.03, POPULATION)),
            **dict.fromkeys(("loss", "u"), Bar(0.05, "of order 1/L; in u the state is soft, and the loss follows")),
        },
        seconds=1.5,
    ),
    _HALFWAY,
    replace(
        _ONSET,
        name="linear onset law",
        statement="the onset against the law of long sequences, V^2 with its corrections",
        steps=("pooling law",),
        cases=_ONSETS,
        quick=(),
        expect=pooling_law,
    ),
    replace(
        _HALFWAY,
        name="linear crossover law",
        statement="the crossover against its law of long sequences",
        steps=("crossover law",),
        quick=(),
        expect=crossover_law,
        bars=lambda at: {"P": Bar(0.08, "the crossover's 5 %, and a series in L^(-1/3) up to its fourth power, .014")},
    ),
    Claim(
        name="linear continuity",
        theory="copy-head/linear",
        statement="no hysteresis on the way up and down through the crossover",
        steps=("linear action",),
        cases=(case("linear", {"ladder": "100,200,300,400,500,600"}, L=24, V=4),),
        quick=(),
        seeds=4,
        measure=loop,
        expect=without_hysteresis,
        bars=lambda at: {"hysteresis": Bar(0.001, "both ways end in the same minima to rounding", absolute=True)},
        seconds=3,
    ),
)
