r"""Claims about the copy head at T > 0: samples of the posterior against the fluctuating action.

.. math:: \langle s \rangle \approx s^* + T \frac{ds}{dT}, \qquad \langle \delta s^2 \rangle \approx T/F''(s^*)

and the density of one entry of the attention, the push-forward of Gaussian scores through the row-softmax.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm
from sympy import Basic, Expr, Float

from derive.catalogue import Theory
from derive.copy_head.fluctuations import VARIANCES
from derive.copy_head.model import T, s
from derive.copy_head.relaxed import COPIED
from simulate.copy_head import CopyHead, copied, replicas, sequences, task
from simulate.copy_head_observables import attention, mean_attention, order_parameters
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values
from simulate.crosscheck.copy_head import case, head_of, minima_of
from simulate.langevin import Metropolis, StochasticLangevin
from simulate.optimise import polish
from simulate.run import Tensors, drive, stiffness
from simulate.verdict import Bar

__all__ = ["CLAIMS"]

_NORM, _JOINT_NORM = 1e-5, 1e-4
_STEP = 3.0
"""In units of dimension^(-1/3) over the largest curvature: two thirds of the moves are accepted."""
_EVEN_STEP = 1.3
"""The same where nearly all curvatures are the largest one, that of the prior."""
_BURN, _THIN, _SEEN = 300, 5, 8
"""Steps to forget the start, steps between draws, and sequences whose attention is looked at."""
_LEVELS = {"copied": (0.22, 0.27, 0.32, 0.37, 0.42), "other": (0.015, 0.02, 0.025, 0.03, 0.04, 0.05)}
"""Values at which the distribution functions of the entries are compared."""
_COUNT = 10_000


def sampled(at: Case, seed: int) -> Values:
    """The score gap and the entries of the attention in the posterior, by Metropolis-adjusted Langevin dynamics.

    ``drift`` is how far the mean of s is from the minimum of this energy at T = 0, over T; ``copied<x`` the share of the
    copied entries below x; ``off_gaussian`` the distance of the distribution of the others from a Gaussian of the same
    mean and variance.
    """
    head, steps = head_of(at, seed), int(at.how["steps"])
    cold = replace(head, task=replace(head.task, T=0.0))
    start = polish(cold.energy, cold.begin("copy"), _NORM).theta
    warmth, curvature, noise = head.task.T, float(stiffness(head.energy, start)), head.noise()
    tokens = sequences(head.task, seed, _SEEN, "fresh")
    pattern, owner = copied(head.task), torch.zeros(_SEEN, dtype=torch.long)

    def observe(now: Tensors) -> Tensors:
        order = order_parameters(head, now["theta"])
        ((A, _),) = attention(head, now["theta"], tokens, owner)
        kinds = {"copied": A[:, pattern], "other": A[:, ~pattern]}
        return {"s": order["s"], "a_G": order["a_G"]} | {name: x.reshape(1, -1) for name, x in kinds.items()}

    method = Metropolis(head.energy, warmth, _STEP * head.task.dimension ** (-1 / 3) / curvature, noise)
    begin = start + math.sqrt(warmth / curvature) * noise.normal(start)
    run = drive(method, begin, _BURN + steps, observe=observe, burn=_BURN, thin=_THIN)
    gap, entries = run.draws["s"], {name: run.draws[name].flatten().numpy() for name in _LEVELS}
    below = {f"{name}<{x}": float((entries[name] < x).mean()) for name, levels in _LEVELS.items() for x in levels}
    moved = float(gap.mean() - order_parameters(head, start)["s"])
    return {
        "s": float(gap.mean()),
        "a_G": float(run.draws["a_G"].mean()),
        "drift": moved / warmth,
        "variance": float(gap.var()),
        "accepted": float(run.now["accepted"]) / run.count,
        "off_gaussian": _off_gaussian(np.sort(entries["other"])),
        **below,
    }


def stochastic(at: Case, seed: int) -> Values:
    """The score gap with W in the state, from gradients of some of the sequences and a step that decreases."""
    setup, steps = at.setup, int(at.how["steps"])
    problem = task(setup, joint=True)
    head = CopyHead(problem, replicas(setup, [seed]))
    start = polish(head.energy, head.begin("copy"), _JOINT_NORM).theta
    rate = float(at.how["rate"]) / float(stiffness(head.energy, start))
    estimate = head.minibatch(int(at.how["batch"]))
    method = StochasticLangevin(estimate, problem.T, rate, head.noise(), horizon=steps / 4)
    observed = drive(
        method, start, steps, observe=lambda now: order_parameters(head, now["theta"]), burn=steps // 4, thin=_THIN
    )
    return {"s": float(observed.draws["s"].mean()), "a_G": float(observed.draws["a_G"].mean())}


def pooled(at: Case, seed: int) -> Values:
    """The mean square of u in the posterior of a linear head about zero attention, over T."""
    head, steps = head_of(at, seed), int(at.how["steps"])
    zero, noise, warmth = head.begin("zero", spread=0.0), head.noise(), head.task.T
    rate = _EVEN_STEP * head.task.dimension ** (-1 / 3) / head.task.gamma_g
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
    stiffness_at_zero = theory.derivation().value("stiffness at zero").subs(_values(theory, at))
    return {"susceptibility": (float(stiffness_at_zero.inv()[0, 0]), 0.0)}


def _values(theory: Theory, at: Case) -> dict[Basic, Expr]:
    """The values of all parameters and of the control."""
    action = theory.action()
    setup = action.setup(at.parameters)
    assert setup.control is not None
    return {**setup.values, action.control.symbol: setup.control}


def _off_gaussian(ordered: NDArray[np.float64]) -> float:
    """The Kolmogorov-Smirnov distance of a sample from the Gaussian of its mean and variance."""
    ranks = (np.arange(len(ordered)) + 0.5) / len(ordered)
    return float(np.abs(norm.cdf(ordered, ordered.mean(), ordered.std()) - ranks).max())


def fluctuating(theory: Theory, at: Case) -> Expected:
    """Means, variance and distribution functions from the action with the fluctuations of all scores.

    The mean gap is that of the minimum at T = 0, moved by T times the derived drift.
    """
    chain, action = theory.derivation(), theory.action()
    (*_, cold) = minima_of(theory, replace(at, parameters={**at.parameters, "T": "0"}))
    values = _values(theory, at)

    def number(expression: Expr, gap: float) -> float:
        return float(expression.subs(values | {s: Float(gap)}).evalf())

    still = float(cold.order_parameters["s"])
    drift = number(chain.value("drift")[-1].doit().subs(T, 0), still)
    gap = still + float(values[T]) * drift
    widths = [number(each, gap) for each in chain.value("score variance")]
    place = {**values, **dict(zip(VARIANCES, map(Float, widths), strict=True))}
    place[COPIED] = Float(number(chain.value("copied attention"), gap))
    logits = [(float(mean.subs(place)), float(width.subs(place))) for mean, width in chain.value("entry logits")]
    means = [float(entry[0].subs(place)) for entry in chain.value("entry moments")]
    stiff = number(action.value.subs(T, 0).diff(s, 2), still)
    shares = {
        f"{name}<{x}": float(norm.cdf(math.log(x / (1 - x)), mean, math.sqrt(width)))
        for (name, levels), (mean, width) in zip(_LEVELS.items(), logits, strict=True)
        for x in levels
    }
    found = {
        "s": gap,
        "a_G": means[0] - means[1],
        "drift": drift,
        "variance": float(values[T]) / stiff,
        "off_gaussian": _off_gaussian(_quantiles(*logits[1])),
        **shares,
    }
    return {name: (value, 0.0) for name, value in found.items()}


def _quantiles(mean: float, width: float) -> NDArray[np.float64]:
    """Of the logit-normal law."""
    logits = norm.ppf((np.arange(_COUNT) + 0.5) / _COUNT, mean, math.sqrt(width))
    quantiles: NDArray[np.float64] = expit(logits)
    return quantiles


def _bars(at: Case) -> Bars:
    entries = Bar(0.03, "the density is that of one Gaussian row; finite P spreads the scores", absolute=True)
    return {
        "s": Bar(0.02, "the theory is of first order in T and projected on the plane"),
        "a_G": Bar(0.02, "the theory is of first order in T and projected on the plane"),
        "drift": Bar(0.3, "of first order in T, one loop, the query's own key left out: of order 1/L"),
        "variance": Bar(0.2, "of first order in T"),
        "off_gaussian": Bar(0.2, "the density is that of one Gaussian row"),
        **{f"{name}<{x}": entries for name, levels in _LEVELS.items() for x in levels},
    }


CLAIMS = (
    Claim(
        name="softmax posterior",
        theory="copy-head/softmax",
        statement="Langevin samples: mean and variance of the gap, its drift with T, the law of an attention entry",
        steps=("softmax action", "drift", "score variance", "entry logits", "entry density", "entry moments"),
        cases=tuple(case("softmax", {"steps": 3000}, L=24, V=6, P=400, T=T) for T in ("0.02", "0.05")),
        quick=(case("softmax", {"steps": 1500}, L=24, V=6, P=400, T="0.05"),),
        seeds=8,
        measure=sampled,
        expect=fluctuating,
        bars=_bars,
        seconds=17,
    ),
    Claim(
        name="softmax posterior from mini-batches",
        theory="copy-head/softmax",
        statement="the same means from stochastic gradient Langevin dynamics with W in the state",
        steps=("softmax action", "drift", "entry moments"),
        cases=(case("softmax", {"steps": 6000, "batch": 200, "rate": "0.05"}, L=24, V=6, P=400, T="0.05"),),
        quick=(),
        seeds=6,
        measure=stochastic,
        expect=fluctuating,
        bars=lambda at: {name: bar for name, bar in _bars(at).items() if name in ("s", "a_G")},
        seconds=25,
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
