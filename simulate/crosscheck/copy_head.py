r"""Claims about the copy head: trained heads against the effective action.

.. math:: \min_G E(G) \approx F(s^*), \qquad a_G \approx a(s^*), \qquad P^*: F(s_1) = F(s_2)

The action is that of the population, projected on the plane of uniform and copying attention: what it leaves out is of
the relative order 1/P and 1/L and grows towards the transition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sympy import Basic, Expr, Float, S, Symbol, cancel
from torch import Tensor

from derive.catalogue import Theory, find
from derive.copy_head.model import L, V, c, s, u
from derive.copy_head.signed import NEGATIVE
from numerics.points import Kind, Point, TransitionKind, Transitions
from numerics.stationary import minima
from numerics.transitions import transitions
from simulate.copy_head import CopyHead, Replica, one_hot, replicas, sequences, task
from simulate.copy_head_observables import attention, order_parameters, population_loss
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values, known
from simulate.optimise import Adam, GradientDescent, Minimum, hysteresis, polish, settled
from simulate.run import Method, drive, hessian_product, stiffness
from simulate.verdict import Bar

__all__ = ["CLAIMS", "beside", "case", "head_of", "minima_of", "values_of"]

_NORM = 1e-7
"""The gradient norm to which heads are trained, per sequence: energies are then known far better than they scatter."""
_DIGITS = 10


def case(attention: str, how: Mapping[str, object] | None = None, /, **parameters: object) -> Case:
    """An experiment with a head of that attention."""
    texts = [{name: str(value) for name, value in each.items()} for each in (parameters, how or {})]
    return Case(f"copy-head/{attention}", *texts)


def head_of(at: Case, seed: int) -> CopyHead:
    """The head of one seed's sequences."""
    setup = at.setup
    return CopyHead(task(setup), replicas(setup, [seed]))


def minima_of(theory: Theory, at: Case) -> list[Point]:
    """The minima of the theory's action at the parameters of the case, by their first order parameter."""
    action = theory.action()
    found = [point for point in minima(action, action.setup(at.parameters), _DIGITS) if point.kind is Kind.MINIMUM]
    first = action.variables[0].name
    return sorted(found, key=lambda point: float(point.order_parameters[first]))


def beside(theory: Theory, at: Case) -> Point:
    """The minimum on the side of the case's start."""
    return minima_of(theory, at)[0 if at.how["start"] == "zero" else -1]


def values_of(theory: Theory, at: Case) -> dict[Basic, Expr]:
    """The values of all parameters and of the control."""
    action = theory.action()
    setup = action.setup(at.parameters)
    assert setup.control is not None
    return {**setup.values, action.control.symbol: setup.control}


def _transitions(theory: Theory, at: Case) -> Transitions:
    return _along_control(theory, tuple(at.parameters.items()))


@cache
def _along_control(theory: Theory, parameters: tuple[tuple[str, str], ...]) -> Transitions:
    action = theory.action()
    return transitions(action, action.setup(dict(parameters)), _DIGITS)


# --- one minimum ---

_WHOLE: Expected = {"coverage": (1.0, 0.0)}
"""The plane of uniform and copying attention is all that the action knows of."""


def trained(at: Case, seed: int) -> Values:
    """A head trained from the case's start: energy, order parameters and loss on new sequences."""
    head = head_of(at, seed)
    return _observed(head, _trained(head, head.begin(at.how["start"])))


def _trained(head: CopyHead, start: Tensor) -> Minimum:
    return polish(head.energy, start, _NORM * head.replicas[0].P)


def _observed(head: CopyHead, minimum: Minimum) -> Values:
    with torch.no_grad():
        order = {name: float(value) for name, value in order_parameters(head, minimum.theta).items()}
        loss, _ = population_loss(head, minimum.theta)
    copied = (head.task.L - 1) * order["a_G"] ** 2
    return {"energy": minimum.energy, "loss": float(loss), "copy_weight": copied / (order["u"] ** 2 + copied), **order}


def branch(theory: Theory, at: Case) -> Expected:
    """The action's minimum on the side of the start."""
    point = beside(theory, at)
    return {**known(energy=point.action, **point.order_parameters, **point.observables), **_WHOLE}


def relaxed_branch(theory: Theory, at: Case) -> Expected:
    """The minimum of the relaxed action, its same-token coordinate, and the energy of the projected one."""
    point, projected = beside(theory, at), beside(find("copy-head/softmax"), at)
    place = {**values_of(theory, at), s: Float(str(point.order_parameters["s"]))}
    relaxed = theory.derivation().value("relaxed coordinate").subs(place).evalf()
    return {
        **known(energy=point.action, projected=projected.action),
        "h": (float(relaxed), 0.0),
        "explained": (0.5, 0.0),
    }


def explained(found: Values, expected: Expected) -> Values:
    """The share of what the projected energy is off that the relaxed action makes up for."""
    relaxed, projected = (expected[name][0] for name in ("energy", "projected"))
    return {**found, "explained": (relaxed - projected) / (found["energy"] - projected)}


# --- the first-order transition ---


def both(at: Case, seed: int) -> Values:
    """How many different minima the two starts lead to, and by how much the loss drops from one to the other."""
    head = head_of(at, seed)
    uniform, copying = (_observed(head, end) for end in _ends(head))
    return {
        "branches": 1.0 if _same(uniform["energy"], copying["energy"]) else 2.0,
        "loss_drop": uniform["loss"] - copying["loss"],
    }


def _ends(head: CopyHead) -> list[Minimum]:
    """The minima reached from no attention and from copying."""
    return [_trained(head, head.begin(start)) for start in ("zero", "copy")]


_COPYING = 1.0
"""A score gap above which a head copies; begun at 2, it falls to tenths where only uniform attention is left."""


def _same(energy: float, other: float) -> bool:
    return math.isclose(energy, other, rel_tol=1e-6)


def branches(theory: Theory, at: Case) -> Expected:
    """The minima of the action, and the derivation's jump of the loss between the outer two."""
    points = minima_of(theory, at)
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
        if _same(uniform.energy, copying.energy):
            copies = float(order_parameters(head, copying.theta)["s"]) > _COPYING
            return (-math.inf if copies else math.inf), False
        return copying.energy - uniform.energy, True

    low, high = problem.L, 2 * problem.L
    while gap(high)[0] > 0:
        low, high = high, 2 * high
    while high - low > 1 and (high - low > _WINDOW * high or not (gap(low)[1] and gap(high)[1])):
        middle = (low + high) // 2
        low, high = (middle, high) if gap(middle)[0] > 0 else (low, middle)
    (below, seen), (above, seen_too) = gap(low), gap(high)
    return {"P": low + (high - low) * (below / (below - above) if seen and seen_too else 0.5)}


_WINDOW = 0.04
"""Share of P in which the difference of two energies is taken for a straight line."""


def coexistence(theory: Theory, at: Case) -> Expected:
    return known(P=_transitions(theory, at).of("coexistence").value)


# --- the second-order transition ---


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
    return known(P=_transitions(theory, at).of("instability").value)


# --- the global minimum of the linear head ---


def deepest(at: Case, seed: int) -> Values:
    """The lowest of the minima from several starts, with what the paper filters: minima that are not the lowest."""
    head = head_of(at, seed)
    minima = [_trained(head, start) for start in _starts(head)]
    found = _observed(head, min(minima, key=lambda each: each.energy))
    trapped = sum(not _same(each.energy, found["energy"]) for each in minima)
    return {**found, "trapped": trapped / len(minima)}


def _starts(head: CopyHead) -> list[Tensor]:
    """No attention, copying, weak and strong, and pooling with and without copying."""
    zero, (weak, strong) = head.begin("zero"), (head.begin("copy", gap) for gap in (2.0, float(head.task.L)))
    return [zero, weak, strong, zero + 1 / 4, strong + 1 / 4]


def global_minimum(theory: Theory, at: Case) -> Expected:
    point = min(minima_of(theory, at), key=lambda each: float(each.action))
    return {**known(energy=point.action, **point.observables), **_WHOLE}


def plateau(theory: Theory, at: Case) -> Expected:
    """The derived loss of uniform attention with an ideal readout."""
    _, pooled, _ = theory.derivation().value("loss plateaus")
    return {"loss": (float(pooled.subs(_sizes(at))), 0.0)}


# --- its metastable states ---


def trapped(at: Case, seed: int) -> Values:
    """The minimum from pooling in which some symbols count negatively, its energy relative to that of pooling."""
    head = head_of(at, seed)
    signed = head.begin("zero").reshape(1, head.task.width, -1)
    signed[:, :, : head.task.V] += 1 / 2
    signed[:, :, : int(at.how["negative"])] -= 1
    found, pooling = (_observed(head, _trained(head, start)) for start in (signed.flatten(1), _starts(head)[3]))
    return {**found, "excess": 1 - found["energy"] / pooling["energy"]}


def filtered(at: Case, seed: int) -> Values:
    """The share of the runs from no attention that do not reach the lowest minimum, and how much higher they end."""
    problem = task(at.setup)
    heads = [CopyHead(problem, (Replica(seed, int(at.parameters["P"]), run),)) for run in range(int(at.how["runs"]))]
    lowest = _trained(heads[0], _starts(heads[0])[3]).energy
    energies = [_trained(head, head.begin("zero")).energy for head in heads]
    count = sum(not _same(energy, lowest) for energy in energies)
    return {"filtered": count / len(heads), "excess": 1 - sum(energies) / len(heads) / lowest}


@cache
def _signed(theory: Theory) -> Expr:
    signed: Expr = theory.derivation().value("signed action")
    return signed


def _pooling(theory: Theory, at: Case, negative: int) -> Point:
    """The derived minimum in which so many symbols count negatively."""
    action, place = theory.action(), {**values_of(theory, at), NEGATIVE: negative}
    signed = replace(action, value=cancel(_signed(theory).subs(place)))
    found = minima(signed, action.setup(at.parameters), _DIGITS)
    return min(found, key=lambda point: float(point.action))


def signed_pooling(theory: Theory, at: Case) -> Expected:
    """Energy relative to pooling, and the share of |A|^2 that is in the plane, where the mean of the signs remains."""
    negative = int(at.how["negative"])
    point, pooling = _pooling(theory, at, negative), _pooling(theory, at, 0)
    uniform, copying = (float(number) for number in point.order_parameters.values())
    square = theory.derivation().value("attention plane")[0].subs(_sizes(at))
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
    return _observed(head, _trained(head, head.begin("copy", _OPPOSED) + 1 / 16))


_OPPOSED = -2.6


def anti_copy(theory: Theory, at: Case) -> Expected:
    """The metastable minimum with u c < 0 (of its two images the solvers keep that with u > 0)."""
    (point,) = (each for each in minima_of(theory, at) if each.name == "anti-copy")
    u, c = (point.order_parameters[name] for name in "uc")
    return known(energy=point.action, loss=point.observables["loss"], u=u, a_G=c)


def crossover(at: Case, seed: int) -> Values:
    """The number of sequences at which half of the attention of a head begun in pooling and copying is the copy's."""
    problem = task(at.setup)

    @cache
    def excess(P: int) -> float:
        head = CopyHead(problem, (Replica(seed, P),))
        return _observed(head, _trained(head, _starts(head)[-1]))["copy_weight"] - 0.5

    low, high = problem.L, 2 * problem.L
    while excess(high) < 0:
        low, high = high, 2 * high
    while high - low > max(1, _WINDOW * high):
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return {"P": low + (high - low) * excess(low) / (excess(low) - excess(high))}


def expected_crossover(theory: Theory, at: Case) -> Expected:
    return known(P=_transitions(theory, at).of("crossover").value)


def loop(at: Case, seed: int) -> Values:
    """The largest relative difference of the energies on the way up and on the way down a ladder in P."""
    problem = task(at.setup)
    heads = [CopyHead(problem, (Replica(seed, int(P)),)) for P in at.how["ladder"].split(",")]
    tolerance = _NORM * heads[0].replicas[0].P
    ways = hysteresis([head.energy for head in heads], _starts(heads[0])[3], heads[0].noise(), tolerance=tolerance)
    return {"hysteresis": max(abs(down.energy / up.energy - 1) for up, down in zip(*ways, strict=True))}


def without_hysteresis(theory: Theory, at: Case) -> Expected:
    """No first-order transition within the ladder, hence no hysteresis."""
    ladder = [int(P) for P in at.how["ladder"].split(",")]
    jumps = [entry for entry in _transitions(theory, at) if entry.kind is TransitionKind.COEXISTENCE]
    if any(ladder[0] < float(entry.value) < ladder[-1] for entry in jumps):
        raise ArithmeticError("the theory has a first-order transition within the ladder")
    return {"hysteresis": (0.0, 0.0)}


# --- what the readout says ---


def predictors(at: Case, seed: int) -> Values:
    """The loss of the unigram predictor on new sequences, and what the trained head's output is like.

    ``like_unigram`` and ``like_bigram`` are the squares of the correlations of the outputs, less their mean over symbols,
    with the counts of a sequence and with the token to be copied.
    """
    head = head_of(at, seed)
    minimum = _trained(head, head.begin(at.how["start"]))
    tokens = sequences(head.task, seed, _FRESH, "fresh")
    X = one_hot(head.task, tokens, torch.float64)
    with torch.no_grad():
        (W,) = head.readout(minimum.theta)
        A = torch.cat([part for part, _ in attention(head, minimum.theta, tokens, torch.zeros_like(tokens[:, 0]))])
        output = A @ X @ W
    counts, target = X.mean(1, keepdim=True).expand_as(X), X.roll(head.task.shift, 1)
    return {
        "unigram": float((target - counts).square().sum(-1).mean()),
        "like_unigram": _likeness(output, counts),
        "like_bigram": _likeness(output, target),
    }


_FRESH = 1000


def _likeness(one: Tensor, other: Tensor) -> float:
    a, b = ((each - each.mean(-1, keepdim=True)).flatten() for each in (one, other))
    return float((a @ b) ** 2 / (a @ a) / (b @ b))


def _sizes(at: Case) -> dict[Symbol, int]:
    return {L: int(at.parameters["L"]), V: int(at.parameters["V"])}


def ideal(theory: Theory, at: Case) -> Expected:
    """The derived loss of the unigram predictor, and the angles between attention on the plane and those of both."""
    chain, point = theory.derivation(), beside(theory, at)
    sizes = _sizes(at)
    square, _, hits, _ = (part.subs(sizes) for part in chain.value("attention plane"))
    place = {u: S.One, c: Float(str(point.observables["a_G"]))}
    _, unigram, _ = chain.value("ideal predictors").subs(sizes)
    pooled = square.subs({u: S.One, c: S.Zero})
    square, hits = square.subs(place), hits.subs(place)
    found = {"unigram": unigram, "like_unigram": pooled / square, "like_bigram": hits**2 / square / sizes[L]}
    return {name: (float(value), 0.0) for name, value in found.items()}


# --- the papers' own methods ---


def methods(at: Case, seed: int) -> Values:
    """By how much the energies that gradient descent and Adam reach lie above that of L-BFGS, relative to it."""
    head = head_of(at, seed)
    start = head.begin(at.how["start"])
    lowest = _trained(head, start).energy
    rate = 1 / float(stiffness(head.energy, start))
    ways: dict[str, Method] = {"descent": GradientDescent(head.energy, rate), "adam": Adam(head.energy, _ADAM_RATE)}
    ends = {name: drive(way, start, _MOST_STEPS, until=settled(_SETTLED)) for name, way in ways.items()}
    return {name: float(end.now["energy"]) / lowest - 1 for name, end in ends.items()}


_ADAM_RATE, _MOST_STEPS, _SETTLED = 0.003, 3000, 1e-3


def one_minimum(theory: Theory, at: Case) -> Expected:
    return {"descent": (0.0, 0.0), "adam": (0.0, 0.0)}


# --- the rows ---

_POPULATION = "projected action of the population: of order 1/P and 1/L"


def _copying(at: Case) -> Bar:
    if at.how["start"] == "zero":
        return Bar(0.002, "uniform attention: a_G is of order 1/P", absolute=True)
    return Bar(0.03, _POPULATION)


def _branch_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, _POPULATION),
        "loss": Bar(0.03, _POPULATION),
        "a_G": _copying(at),
        "a_1": Bar(0.03, _POPULATION),
        "copy_weight": Bar(0.03, "a share of one", absolute=True),
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


def _onset_bars(at: Case) -> Bars:
    return {"P": Bar(0.02, "extrapolated in 1/P; what is left is of order 1/P^2")}


def _finite_onset_bars(at: Case) -> Bars:
    count = int(at.how["sequences"])
    return {
        "P": Bar(0.06 * 64 / count, "top eigenvalue of a few sequences, too large by order 1/P: 6 % for 64 of them")
    }


def _linear_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, _POPULATION),
        "copy_weight": Bar(0.03, "a share of one; finite data copy a little more", absolute=True),
        "coverage": Bar(0.05, "what is outside of the plane is of order 1/P", absolute=True),
    }


def _predictor_bars(at: Case) -> Bars:
    share = Bar(0.02, "squared correlation; the readout of finite data is not a multiple of one", absolute=True)
    loss = Bar(0.01, "exact for the law of the sequences; the size is that of a useful measurement")
    return {"unigram": loss, "like_unigram": share, "like_bigram": share}


def _both_bars(at: Case) -> Bars:
    drop = Bar(0.03, "difference of two losses of the projected action, relative to the plateau", absolute=True)
    return {"branches": Bar(0.1, "a whole number", absolute=True), "loss_drop": drop}


Cases = tuple[Case, ...]


def _ladder(name: str, values: Iterable[object], **fixed: object) -> Cases:
    return tuple(case("softmax", **fixed, **{name: value}) for value in values)


_SIZES = {"L": 32, "V": 8}


def _started(start: str, *numbers: int) -> Cases:
    return tuple(case("softmax", {"start": start}, **_SIZES, P=P) for P in numbers)


_AWAY = (*_started("zero", 100, 150, 200, 250, 420, 500, 600, 700), *_started("copy", 420, 500, 600, 700))
"""More than 20 % from the transition, which is within 20 % of `_NEAR`."""
_NEAR = (*_started("zero", 300, 330), *_started("copy", 330, 370))
_PLATEAU = tuple(case("linear", L=24, V=4, P=P) for P in (120, 160, 200))
_SIGNED = tuple(case("linear", {"negative": k}, L=24, V=4, P=P) for k, P in ((1, 160), (2, 160), (2, 80)))
"""At P = 80 a single negative sign turns back in the finite data of some seeds."""
_ANTI = (case("linear", L=24, V=4, P=1000),)
_ONSETS = tuple(case("linear", {"sequences": count}, L=64, V=V) for V in (4, 8, 16) for count in (64, 256, 1024))
_PREDICTED = (
    case("softmax", {"start": "zero"}, L=32, V=8, P=250),
    case("softmax", {"start": "copy"}, L=8, V=4, P=10000),
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
        name="relaxed share of the deviation",
        theory="copy-head/softmax-relaxed",
        statement="relaxing this coordinate makes up for half of what the projected energy is off at the transition",
        steps=("relaxed action",),
        cases=_started("copy", 330),
        quick=(),
        seeds=8,
        measure=trained,
        expect=relaxed_branch,
        bars=lambda at: {"explained": Bar(0.1, "the rest is of order 1/P, at P about as much", absolute=True)},
        seconds=0.4,
        against=explained,
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
    Claim(
        name="softmax transition",
        theory="copy-head/softmax",
        statement="first-order transition: the number of sequences at which the trained energies cross, over L and V",
        steps=("softmax action", "sample law", "resummed law", "softmax balance", "softmax threshold"),
        cases=(*_ladder("L", (16, 32, 64), V=8), *_ladder("V", (4, 16), L=32)),
        quick=_ladder("L", (32,), V=8),
        seeds=6,
        measure=crossing,
        expect=coexistence,
        bars=_transition_bars,
        seconds=6,
    ),
    Claim(
        name="linear onset",
        theory="copy-head/linear",
        statement="second-order transition: instability of zero attention, extrapolated in the number of sequences",
        steps=("linear action", "stiffness at zero", "pooling transition", "critical direction", "pooling law"),
        cases=(*_ONSETS, *(case("linear", {"sequences": count}, L=24, V=4) for count in (56, 224, 896))),
        quick=tuple(case("linear", {"sequences": count}, L=64, V=8) for count in (64, 256)),
        seeds=8,
        measure=onset,
        expect=instability,
        bars=_onset_bars,
        seconds=1.2,
        size="sequences",
    ),
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
        bars=lambda at: {"loss": Bar(0.03, _POPULATION)},
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
            **dict.fromkeys(("energy", "a_G"), Bar(0.03, _POPULATION)),
            **dict.fromkeys(("loss", "u"), Bar(0.05, "of order 1/L; in u the state is soft, and the loss follows")),
        },
        seconds=1.5,
    ),
    Claim(
        name="linear crossover",
        theory="copy-head/linear",
        statement="the number of sequences at which half of the attention copies",
        steps=("linear action", "copy weight", "crossover law"),
        cases=(case("linear", L=24, V=4),),
        quick=(case("linear", L=24, V=4),),
        seeds=8,
        measure=crossover,
        expect=expected_crossover,
        bars=_transition_bars,
        seconds=3,
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
