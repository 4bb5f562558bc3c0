r"""Claims about the copy head at T > 0: samples of the posterior against the fluctuating action.

.. math:: \langle s \rangle \approx s^* + T \frac{ds}{dT}, \qquad \langle \delta s^2 \rangle \approx T/F''(s^*)

and the density of one entry of the attention, the push-forward of Gaussian scores through the row-softmax.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm
from sympy import Basic, Expr, Float

from derive.catalogue import Theory
from derive.copy_head.fluctuations import VARIANCES
from derive.copy_head.model import T, s
from derive.copy_head.relaxed import COPIED
from numerics.points import Point
from simulate.copy_head import CopyHead, copied, replicas, sequences, task
from simulate.copy_head_observables import attention, mean_attention, order_parameters
from simulate.crosscheck.claims import Case, Claim, Expected, Values
from simulate.crosscheck.heads import beside, case, head_of, values_of
from simulate.langevin import Metropolis, StochasticLangevin
from simulate.optimise import polish
from simulate.run import Tensors, drive, stiffness, value_and_gradient
from simulate.verdict import Bar

__all__ = ["CLAIMS"]

_NORM, _JOINT_NORM = 1e-5, 1e-4
_STEPS = {"copy": 3.0, "zero": 1.3}
"""In units of dimension^(-1/3) over the largest curvature: two thirds of the moves are accepted.

Uniform attention takes the shorter one, since nearly all curvatures are the largest, that of the prior.
"""
_BURN, _THIN, _SEEN = 300, 5, 8
"""Steps to forget the start, steps between draws, and sequences whose attention is looked at."""
_KINDS = ("copied", "other")
_SHARES = tuple(k / 40 for k in range(1, 40))
"""Shares of the entries of one kind below the quantiles that are kept of their distribution."""
_COUNT = 10_000


def sampled(at: Case, seed: int) -> Values:
    """The score gap and the entries of the attention in the posterior, by Metropolis-adjusted Langevin dynamics.

    ``drift`` is how far the mean of s is from the minimum of this energy at T = 0, over T, ``susceptibility`` the
    variance of s over T; ``copied at q`` the value below which a share q of the copied entries lies; ``off_gaussian``
    the distance of the distribution of the others from a Gaussian of the same mean and variance.
    """
    head, steps = head_of(at, seed), int(at.how["steps"])
    cold = replace(head, task=replace(head.task, T=0.0))
    start = polish(cold.energy, cold.begin(at.how["start"]), _NORM).theta
    warmth, curvature, noise = head.task.T, float(stiffness(head.energy, start)), head.noise()
    tokens = sequences(head.task, seed, _SEEN, "fresh")
    pattern, owner = copied(head.task), torch.zeros(_SEEN, dtype=torch.long)

    def observe(now: Tensors) -> Tensors:
        order = order_parameters(head, now["theta"])
        ((A, _),) = attention(head, now["theta"], tokens, owner)
        entries = {"copied": A[:, pattern], "other": A[:, ~pattern]}
        return {"s": order["s"], "a_G": order["a_G"]} | {name: x.reshape(1, -1) for name, x in entries.items()}

    method = Metropolis(
        head.energy, warmth, _STEPS[at.how["start"]] * head.task.dimension ** (-1 / 3) / curvature, noise
    )
    begin = start + math.sqrt(warmth / curvature) * noise.normal(start)
    run = drive(method, begin, _BURN + steps, observe=observe, burn=_BURN, thin=_THIN)
    gap, entries = run.draws["s"], {name: np.sort(run.draws[name].flatten().numpy()) for name in _KINDS}
    moved = float(gap.mean() - order_parameters(head, start)["s"])
    return {
        "s": float(gap.mean()),
        "a_G": float(run.draws["a_G"].mean()),
        "drift": moved / warmth,
        "susceptibility": float(gap.var()) / warmth,
        "accepted": float(run.now["accepted"]) / run.count,
        "off_gaussian": _off_gaussian(entries["other"]),
        **{_at(name, q): float(np.quantile(x, q)) for name, x in entries.items() for q in _SHARES},
    }


def _at(kind: str, share: float) -> str:
    return f"{kind} at {share}"


def stochastic(at: Case, seed: int) -> Values:
    """The score gap with W in the state, from gradients of some of the sequences and a step that decreases.

    ``warmth`` is the mean of (theta - theta_0) grad E over the dimension and T.
    """
    setup, steps = at.setup, int(at.how["steps"])
    problem = task(setup, joint=True)
    head = CopyHead(problem, replicas(setup, [seed]))
    start = polish(head.energy, head.begin(at.how["start"]), _JOINT_NORM).theta
    rate = float(at.how["rate"]) / float(stiffness(head.energy, start))
    estimate = head.minibatch(int(at.how["batch"]))
    method = StochasticLangevin(estimate, problem.T, rate, head.noise(), horizon=steps / 4)

    def observe(now: Tensors) -> Tensors:
        _, slope = value_and_gradient(head.energy, now["theta"])
        warmth = ((now["theta"] - start) * slope).mean(-1) / problem.T
        return {**order_parameters(head, now["theta"]), "warmth": warmth}

    observed = drive(method, start, steps, observe=observe, burn=steps // 4, thin=_THIN)
    return {name: float(observed.draws[name].mean()) for name in ("s", "a_G", "warmth")}


def pooled(at: Case, seed: int) -> Values:
    """The mean square of u in the posterior of a linear head about zero attention, over T."""
    head, steps = head_of(at, seed), int(at.how["steps"])
    zero, noise, warmth = head.begin("zero", spread=0.0), head.noise(), head.task.T
    rate = _STEPS["zero"] * head.task.dimension ** (-1 / 3) / head.task.gamma_g
    run = drive(
        Metropolis(head.energy, warmth, rate, noise),
        zero + math.sqrt(warmth / head.task.gamma_g) * noise.normal(zero),
        _BURN + steps,
        observe=lambda now: {"u": mean_attention(head, now["theta"])[0].sum((-2, -1)) / head.task.L},
        burn=_BURN,
        thin=_THIN,
    )
    return {"susceptibility": float(run.draws["u"].square().mean()) / warmth}


def susceptible(theory: Theory, at: Case) -> Expected:
    """The uu entry of the inverse Hessian of the action at zero attention."""
    stiffness_at_zero = theory.derivation().value("stiffness at zero").subs(values_of(theory, at))
    return {"susceptibility": (float(stiffness_at_zero.inv()[0, 0]), 0.0)}


def _off_gaussian(ordered: NDArray[np.float64]) -> float:
    """The Kolmogorov-Smirnov distance of a sample from the Gaussian of its mean and variance."""
    ranks = (np.arange(len(ordered)) + 0.5) / len(ordered)
    return float(np.abs(norm.cdf(ordered, ordered.mean(), ordered.std()) - ranks).max())


@cache
def _drift(theory: Theory, part: int) -> Expr:
    """Of the gap with T: from the entropy of W (0), from the other scores (1), from both (2)."""
    drift: Expr = theory.derivation().value("drift")[part].doit().subs(T, 0)
    return drift


def _cold(theory: Theory, at: Case) -> tuple[Point, dict[Basic, Expr]]:
    """The minimum at T = 0 beside the start, and all values with its gap."""
    point = beside(theory, replace(at, parameters={**at.parameters, "T": "0"}))
    return point, {**values_of(theory, at), s: Float(str(point.order_parameters["s"]))}


def softness(theory: Theory, at: Case) -> Expected:
    """The inverse of the second derivative of the action at the minimum beside the start."""
    (curvature,) = _cold(theory, at)[0].hessian
    return {"susceptibility": (1 / float(curvature), float(curvature.error) / float(curvature) ** 2)}


def entropic(theory: Theory, at: Case) -> Expected:
    """The drift from the entropy of the marginalised W alone."""
    _, cold = _cold(theory, at)
    return {"drift": (float(_drift(theory, 0).subs(cold).evalf()), 0.0)}


def fluctuating(theory: Theory, at: Case) -> Expected:
    """The gap, moved from that of the minimum at T = 0 by T times its drift, and the law of the attention there.

    The ``warmth`` is that of every Boltzmann law, by integration by parts.
    """
    chain, (point, cold) = theory.derivation(), _cold(theory, at)
    drift = float(_drift(theory, 2).subs(cold).evalf())
    gap = float(point.order_parameters["s"]) + float(cold[T]) * drift
    warm = {**cold, s: Float(gap)}
    widths = [each.subs(warm).evalf() for each in chain.value("score variance")]
    place = {**warm, **dict(zip(VARIANCES, widths, strict=True)), COPIED: chain.value("copied attention").subs(warm)}
    means = [float(entry[0].subs(place)) for entry in chain.value("entry moments")]
    found = {"s": gap, "a_G": means[0] - means[1], "drift": drift, "warmth": 1.0, **dict.fromkeys(_KINDS, 0.0)}
    for kind, logit_law in zip(_KINDS, chain.value("entry logits"), strict=True):
        found |= zip(_law(kind), (float(each.subs(place)) for each in logit_law), strict=True)
    found["off_gaussian"] = _off_gaussian(_quantiles(*(found[name] for name in _law("other"))))
    return {name: (value, 0.0) for name, value in found.items()}


def gaussian(theory: Theory, at: Case) -> Expected:
    """Entries of a Gaussian law."""
    return {"off_gaussian": (0.0, 0.0)}


def _law(kind: str) -> tuple[str, str]:
    """What the mean and the variance of the logit of an entry are called."""
    return f"{kind} logit", f"{kind} logit's variance"


def distances(found: Values, expected: Expected) -> Values:
    """The Kolmogorov-Smirnov distances of the entries of each kind from the derived law, at the quantiles kept."""

    def distance(kind: str) -> float:
        mean, variance = (expected[name][0] for name in _law(kind))
        quantiles = logit([found[_at(kind, share)] for share in _SHARES])
        return float(np.abs(norm.cdf(quantiles, mean, math.sqrt(variance)) - _SHARES).max())

    return {**found, **{kind: distance(kind) for kind in _KINDS}}


def _quantiles(mean: float, width: float) -> NDArray[np.float64]:
    """Of the logit-normal law."""
    logits = norm.ppf((np.arange(_COUNT) + 0.5) / _COUNT, mean, math.sqrt(width))
    quantiles: NDArray[np.float64] = expit(logits)
    return quantiles


_WARM = "the theory is of first order in T and projected on the plane"
_ROW = Bar(0.03, "the law is that of one Gaussian row; the query's own key is left out: of order 1/L", absolute=True)
_CURVED = Bar(0.2, "of first order in T and 1/P, both over the distance from where the phase ends")


def _at_temperatures(*temperatures: str) -> tuple[Case, ...]:
    how = {"start": "copy", "steps": 3000}
    return tuple(case("softmax", how, L=24, V=6, P=400, T=T) for T in temperatures)


_QUICK = (case("softmax", {"start": "copy", "steps": 1500}, L=24, V=6, P=400, T="0.05"),)

CLAIMS = (
    Claim(
        name="softmax posterior",
        theory="copy-head/softmax",
        statement="Langevin samples: mean of the gap and of the copying attention",
        steps=("softmax action", "drift", "score variance", "entry moments"),
        cases=_at_temperatures("0.001", "0.01", "0.02", "0.05"),
        quick=_QUICK,
        seeds=8,
        measure=sampled,
        expect=fluctuating,
        bars=lambda at: dict.fromkeys(("s", "a_G"), Bar(0.02, _WARM)),
        seconds=17,
    ),
    Claim(
        name="softmax fluctuations",
        theory="copy-head/softmax",
        statement="the variance of the gap is T over the second derivative of the action",
        steps=("softmax action",),
        cases=_at_temperatures("0.001", "0.01", "0.02", "0.05"),
        quick=(),
        seeds=8,
        measure=sampled,
        expect=softness,
        bars=lambda at: {"susceptibility": _CURVED},
        seconds=17,
    ),
    Claim(
        name="softmax drift",
        theory="copy-head/softmax",
        statement="the gap widens with T, as the entropy of W and the fluctuations of the other scores say together",
        steps=("drift", "one-loop term", "fluctuating action"),
        cases=_at_temperatures("0.01", "0.02", "0.05"),
        quick=_QUICK,
        seeds=8,
        measure=sampled,
        expect=fluctuating,
        bars=lambda at: {"drift": Bar(0.3, "one loop, the query's own key left out: of order 1/L and T")},
        seconds=17,
    ),
    Claim(
        name="softmax drift of the entropy alone",
        theory="copy-head/softmax",
        statement="the entropy of W alone, by which the gap would shrink, is rejected",
        steps=("drift",),
        cases=_at_temperatures("0.01", "0.02", "0.05"),
        quick=_QUICK,
        seeds=8,
        measure=sampled,
        expect=entropic,
        bars=lambda at: {"drift": Bar(1.0, "what has the other sign is off by more than all of it", rejects=True)},
        seconds=17,
    ),
    Claim(
        name="softmax entries",
        theory="copy-head/softmax",
        statement="distances of the entries of the attention from the push-forward of Gaussian scores (Kolmogorov-Smirnov)",
        steps=("score variance", "entry logits", "entry density"),
        cases=_at_temperatures("0.05"),
        quick=_QUICK,
        seeds=8,
        measure=sampled,
        expect=fluctuating,
        bars=lambda at: {
            "copied": _ROW,
            "other": _ROW,
            "off_gaussian": Bar(0.2, "the same, of a distance that is small itself"),
        },
        seconds=17,
        against=distances,
    ),
    Claim(
        name="softmax entries are not Gaussian",
        theory="copy-head/softmax",
        statement="a Gaussian of equal mean and variance is rejected by what the push-forward may be off",
        steps=("entry moments",),
        cases=_at_temperatures("0.05"),
        quick=_QUICK,
        seeds=8,
        measure=sampled,
        expect=gaussian,
        bars=lambda at: {"off_gaussian": replace(_ROW, rejects=True)},
        seconds=17,
    ),
    Claim(
        name="softmax precursors",
        theory="copy-head/softmax",
        statement="the variance of the gap is finite at the transition and grows towards the spinodals only",
        steps=("softmax action",),
        cases=tuple(
            case("softmax", {"start": start, "steps": 3000}, L=32, V=8, P=P, T="0.001")
            for start, P in (("zero", 200), ("zero", 330), ("zero", 370), ("copy", 330), ("copy", 370), ("copy", 600))
        ),
        quick=(),
        seeds=6,
        measure=sampled,
        expect=softness,
        bars=lambda at: {"susceptibility": _CURVED},
        seconds=28,
    ),
    Claim(
        name="softmax posterior from mini-batches",
        theory="copy-head/softmax",
        statement="the same means from stochastic gradient Langevin dynamics with W in the state",
        steps=("softmax action", "drift", "entry moments"),
        cases=tuple(
            case("softmax", {"start": "copy", "steps": 6000, "batch": 200, "rate": "0.05"}, L=24, V=6, P=400, T=T)
            for T in ("0.01", "0.05")
        ),
        quick=(),
        seeds=6,
        measure=stochastic,
        expect=fluctuating,
        bars=lambda at: {
            **dict.fromkeys(("s", "a_G"), Bar(0.02, _WARM)),
            "warmth": Bar(0.05, "exact for the law; mini-batches and the step add of the order of the rate"),
        },
        seconds=36,
    ),
    Claim(
        name="linear precursor",
        theory="copy-head/linear",
        statement="the variance of u grows towards the pooling transition",
        steps=("stiffness at zero", "susceptibility"),
        cases=tuple(case("linear", {"steps": 3000}, L=64, V=8, P=P, T="0.001") for P in (20, 35, 45)),
        quick=(),
        seeds=8,
        measure=pooled,
        expect=susceptible,
        bars=lambda at: {
            "susceptibility": Bar(0.15, "the onset of finite data is 2 % early, which counts more near it")
        },
        seconds=18,
    ),
)
