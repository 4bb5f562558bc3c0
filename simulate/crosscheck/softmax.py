r"""Claims about the softmax head: both branches, the first-order transition and what the readout says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import torch
from sympy import Float, S, log, sqrt
from torch import Tensor

from derive.catalogue import Theory
from derive.copy_head.model import L, c, s, u
from derive.copy_head.scaling import ELL, UNPERTURBED
from simulate.copy_head import CopyHead, Replica, one_hot, sequences, task
from simulate.copy_head_observables import attention, order_parameters
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values, known
from simulate.crosscheck.heads import (
    POPULATION,
    WHOLE,
    beside,
    bracket,
    case,
    head_of,
    minima_of,
    observed,
    polished,
    same,
    sizes_of,
    trained,
    transitions_of,
    values_of,
)
from simulate.optimise import Adam, GradientDescent, Minimum, settled
from simulate.run import Method, drive, stiffness
from simulate.verdict import Bar

__all__ = ["CLAIMS"]

Cases = tuple[Case, ...]


def branch(theory: Theory, at: Case) -> Expected:
    """The action's minimum on the side of the start."""
    point = beside(theory, at)
    return {**known(energy=point.action, **point.order_parameters, **point.observables), **WHOLE}


def relaxed_branch(theory: Theory, at: Case) -> Expected:
    """The minimum of the relaxed action, and its same-token coordinate."""
    point = beside(theory, at)
    place = {**values_of(theory, at), s: Float(str(point.order_parameters["s"]))}
    relaxed = theory.derivation().value("relaxed coordinate").subs(place).evalf()
    return {**known(energy=point.action), "h": (float(relaxed), 0.0)}


def both(at: Case, seed: int) -> Values:
    """How many different minima the two starts lead to, and by how much the loss drops from one to the other."""
    head = head_of(at, seed)
    uniform, copying = (observed(head, end) for end in _ends(head))
    return {
        "branches": 1.0 if same(uniform["energy"], copying["energy"]) else 2.0,
        "loss_drop": uniform["loss"] - copying["loss"],
    }


def _ends(head: CopyHead) -> list[Minimum]:
    """The minima reached from no attention and from copying."""
    return [polished(head, head.begin(start)) for start in ("zero", "copy")]


_COPYING = 1.0
"""A score gap above which a head copies; begun at 2, it falls to tenths where only uniform attention is left."""


def branches(theory: Theory, at: Case) -> Expected:
    """The minima of the action, and the derivation's jump of the loss between the outer two."""
    points = minima_of(theory.action(), at)
    low, high = (point.observables["loss"] for point in (points[-1], points[0]))
    return {
        "branches": (float(len(points)), 0.0),
        "loss_drop": (float(high) - float(low), float(high.error + low.error)),
    }


def crossing(at: Case, seed: int) -> Values:
    """The number of sequences at which both starts lead to equal energies, the sequences being the first of one list.

    Where no number of sequences has two minima, the one at which the only minimum begins to copy.
    """
    problem = task(at.setup)

    @cache
    def gap(P: int) -> tuple[float, bool]:
        """The energy of copying above that of uniform attention, and whether both are there."""
        head = CopyHead(problem, (Replica(seed, P),))
        uniform, copying = _ends(head)
        if same(uniform.energy, copying.energy):
            copies = float(order_parameters(head, copying.theta)["s"]) > _COPYING
            return (-math.inf if copies else math.inf), False
        return copying.energy - uniform.energy, True

    low, high = bracket(lambda P: gap(P)[0] > 0, problem.L, lambda P: gap(P)[1])
    (below, seen), (above, seen_too) = gap(low), gap(high)
    return {"P": low + (high - low) * (below / (below - above) if seen and seen_too else 0.5)}


def coexistence(theory: Theory, at: Case) -> Expected:
    return known(P=transitions_of(theory, at).of("coexistence").value)


def resummed(theory: Theory, at: Case) -> Expected:
    """The law of long sequences, all powers of ln L summed."""
    root, law = theory.derivation().value("resummed law")
    values = values_of(theory, at)
    samples = values[L] * law.subs(UNPERTURBED, root).subs({**values, ELL: log(sqrt(values[L]))})
    return {"P": (float(samples.evalf()), 0.0)}


def predictors(at: Case, seed: int) -> Values:
    """The loss of a trained head, and what its output is like on new sequences.

    ``like_unigram`` and ``like_bigram`` are the squares of the correlations of the outputs, less their mean over symbols,
    with the counts of a sequence and with the token to be copied.
    """
    head = head_of(at, seed)
    minimum = polished(head, head.begin(at.how["start"]))
    tokens = sequences(head.task, seed, _FRESH, "fresh")
    X = one_hot(head.task, tokens, torch.float64)
    with torch.no_grad():
        (W,) = head.readout(minimum.theta)
        A = torch.cat([part for part, _ in attention(head, minimum.theta, tokens, torch.zeros_like(tokens[:, 0]))])
        output = A @ X @ W
    counts, target = X.mean(1, keepdim=True).expand_as(X), X.roll(head.task.shift, 1)
    return {
        "loss": observed(head, minimum)["loss"],
        "like_unigram": _likeness(output, counts),
        "like_bigram": _likeness(output, target),
    }


_FRESH = 1000


def _likeness(one: Tensor, other: Tensor) -> float:
    a, b = ((each - each.mean(-1, keepdim=True)).flatten() for each in (one, other))
    return float((a @ b) ** 2 / (a @ a) / (b @ b))


def ideal(theory: Theory, at: Case) -> Expected:
    """The derived loss of the ideal predictor, and the angles between attention on the plane and those of both."""
    chain, point = theory.derivation(), beside(theory, at)
    sizes = sizes_of(at)
    square, _, hits, _ = (part.subs(sizes) for part in chain.value("attention plane"))
    place = {u: S.One, c: Float(str(point.observables["a_G"]))}
    _, unigram, bigram = chain.value("ideal predictors").subs(sizes)
    loss = unigram if at.how["start"] == "zero" else bigram
    pooled = square.subs({u: S.One, c: S.Zero})
    square, hits = square.subs(place), hits.subs(place)
    found = {"loss": loss, "like_unigram": pooled / square, "like_bigram": hits**2 / square / sizes[L]}
    return {name: (float(value), 0.0) for name, value in found.items()}


def methods(at: Case, seed: int) -> Values:
    """By how much the energies that gradient descent and Adam reach lie above that of L-BFGS, relative to it."""
    head = head_of(at, seed)
    start = head.begin(at.how["start"])
    lowest = polished(head, start).energy
    rate = 1 / float(stiffness(head.energy, start))
    ways: dict[str, Method] = {"descent": GradientDescent(head.energy, rate), "adam": Adam(head.energy, _ADAM_RATE)}
    ends = {name: drive(way, start, _MOST_STEPS, until=settled(_SETTLED)) for name, way in ways.items()}
    return {name: float(end.now["energy"]) / lowest - 1 for name, end in ends.items()}


_ADAM_RATE, _MOST_STEPS, _SETTLED = 0.003, 3000, 1e-3


def one_minimum(theory: Theory, at: Case) -> Expected:
    return {"descent": (0.0, 0.0), "adam": (0.0, 0.0)}


def _copying(at: Case) -> Bar:
    if at.how["start"] == "zero":
        return Bar(0.002, "uniform attention: a_G is of order 1/P", absolute=True)
    return Bar(0.03, POPULATION)


def _branch_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, POPULATION),
        "loss": Bar(0.03, POPULATION),
        "a_G": _copying(at),
        "coverage": Bar(0.05, "what is outside of the plane is of order 1/P", absolute=True),
    }


def _near_bars(at: Case) -> Bars:
    return {**_branch_bars(at), "energy": Bar(0.06, "projected action, where what it leaves out counts twice")}


def _relaxed_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, "the relaxed action halves what the projection leaves out, 6 % near the transition"),
        "h": Bar(0.15, "of second order in h: what is left out is of relative order h"),
    }


def _transition_bars(at: Case) -> Bars:
    return {"P": Bar(0.05, "both energies are off by up to 6 % near the transition, where they cross at an angle")}


def _predictor_bars(at: Case) -> Bars:
    share = Bar(0.02, "squared correlation; the readout of finite data is not a multiple of one", absolute=True)
    loss = Bar(
        0.01, "the ridges, of order V/P, and attention that is not all on what the predictor sees", absolute=True
    )
    return {"loss": loss, "like_unigram": share, "like_bigram": share}


def _both_bars(at: Case) -> Bars:
    drop = Bar(0.03, "difference of two losses of the projected action, relative to the plateau", absolute=True)
    return {"branches": Bar(0.1, "a whole number", absolute=True), "loss_drop": drop}


def _ladder(name: str, values: Iterable[object], **fixed: object) -> Cases:
    return tuple(case("softmax", **fixed, **{name: value}) for value in values)


_SIZES = {"L": 32, "V": 8}


def _started(start: str, *numbers: int) -> Cases:
    return tuple(case("softmax", {"start": start}, **_SIZES, P=P) for P in numbers)


_AWAY = (*_started("zero", 100, 150, 200, 250, 420, 500, 600, 700), *_started("copy", 420, 500, 600, 700))
"""More than 20 % from the transition, which is within 20 % of `_NEAR`."""


_NEAR = (*_started("zero", 300, 330), *_started("copy", 330, 370))


_PREDICTED = (
    case("softmax", {"start": "zero"}, L=32, V=8, P=250),
    case("softmax", {"start": "copy"}, L=8, V=4, P=10000),
)

_TRANSITION = Claim(
    name="softmax transition",
    theory="copy-head/softmax",
    statement="first-order transition: the number of sequences at which the trained energies cross, over L and V",
    steps=("softmax action",),
    cases=(*_ladder("L", (16, 32, 64), V=8), *_ladder("V", (4, 16), L=32)),
    quick=_ladder("L", (32,), V=8),
    seeds=6,
    measure=crossing,
    expect=coexistence,
    bars=_transition_bars,
    seconds=6,
)

CLAIMS = (
    Claim(
        name="softmax branches",
        theory="copy-head/softmax",
        statement="energy, loss, copying attention and coverage of trained heads along both branches",
        steps=("softmax action", "softmax attention", "softmax loss", "population action", "attention plane"),
        cases=_AWAY,
        quick=tuple(each for each in _AWAY if each.parameters["P"] in ("250", "420")),
        seeds=8,
        measure=trained,
        expect=branch,
        bars=_branch_bars,
        seconds=0.4,
    ),
    Claim(
        name="softmax branches near the transition",
        theory="copy-head/softmax",
        statement="the same within 20 % of the transition",
        steps=("softmax action", "softmax attention", "softmax loss"),
        cases=_NEAR,
        quick=tuple(each for each in _NEAR if each.parameters["P"] == "330"),
        seeds=8,
        measure=trained,
        expect=branch,
        bars=_near_bars,
        seconds=0.4,
    ),
    Claim(
        name="relaxed softmax branches",
        theory="copy-head/softmax-relaxed",
        statement="energy of the copying head with the same-token coordinate relaxed, and this coordinate",
        steps=("relaxed action", "relaxed coordinate", "same-token response"),
        cases=_started("copy", 330, 420),
        quick=_started("copy", 330, 420),
        seeds=8,
        measure=trained,
        expect=relaxed_branch,
        bars=_relaxed_bars,
        seconds=0.4,
    ),
    Claim(
        name="relaxed softmax branch near its end",
        theory="copy-head/softmax-relaxed",
        statement="uniform attention within 6 % of its spinodal, where what the projected action leaves out is magnified",
        steps=("relaxed action",),
        cases=_started("zero", 370),
        quick=(),
        seeds=8,
        measure=trained,
        expect=branch,
        bars=_branch_bars,
        seconds=0.4,
    ),
    Claim(
        name="softmax hysteresis",
        theory="copy-head/softmax",
        statement="both minima between the spinodals, one outside, and the drop of the loss between them",
        steps=("softmax action", "loss jump"),
        cases=_ladder("P", (280, 330, 370, 430), **_SIZES),
        quick=_ladder("P", (280, 330, 430), **_SIZES),
        seeds=8,
        measure=both,
        expect=branches,
        bars=_both_bars,
        seconds=0.5,
    ),
    _TRANSITION,
    replace(
        _TRANSITION,
        name="softmax law",
        statement="the same against the law of long sequences",
        steps=("softmax balance", "softmax threshold", "resummed law"),
        cases=_ladder("L", (64,), V=8),
        quick=(),
        expect=resummed,
        bars=lambda at: {"P": Bar(0.25, "what the law leaves out is of order 1/sqrt(L), twice 1/8")},
    ),
    Claim(
        name="unigram and bigram",
        theory="copy-head/softmax",
        statement="the pooled head predicts the counts of a sequence, the copying one the token before; ideal losses",
        steps=("ideal predictors", "attention plane", "copy weight"),
        cases=_PREDICTED,
        quick=_PREDICTED,
        seeds=8,
        measure=predictors,
        expect=ideal,
        bars=_predictor_bars,
        seconds=0.6,
    ),
    Claim(
        name="optimisers",
        theory="copy-head/softmax",
        statement="gradient descent and Adam reach the minimum that L-BFGS reaches",
        steps=(),
        cases=(case("softmax", {"start": "copy"}, **_SIZES, P=330),),
        quick=(),
        seeds=2,
        measure=methods,
        expect=one_minimum,
        bars=lambda at: dict.fromkeys(("descent", "adam"), Bar(0.001, "one minimum, to a thousandth", absolute=True)),
        seconds=2,
    ),
)
