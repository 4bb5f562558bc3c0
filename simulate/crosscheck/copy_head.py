r"""Claims about the copy head: trained heads against the effective action.

.. math:: \min_G E(G) \approx F(s^*), \qquad a_G \approx a(s^*), \qquad P^*: F(s_1) = F(s_2)

The action is that of the population, projected on the plane of uniform and copying attention: what it leaves out is of
the relative order 1/P and 1/L and grows towards the transition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sympy import Float, S
from torch import Tensor

from derive.catalogue import Theory
from derive.copy_head.model import L, V, c, u
from numerics.points import Kind, Point, TransitionKind, Transitions
from numerics.stationary import minima
from numerics.transitions import transitions
from simulate.copy_head import CopyHead, Replica, one_hot, replicas, sequences, task
from simulate.copy_head_observables import attention, order_parameters, population_loss
from simulate.crosscheck.claims import Bars, Case, Claim, Expected, Values, known
from simulate.optimise import Adam, GradientDescent, Minimum, hysteresis, polish, settled
from simulate.run import Method, drive, hessian_product, stiffness
from simulate.verdict import Bar

__all__ = ["CLAIMS", "case", "head_of", "minima_of"]

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


def _beside(theory: Theory, at: Case) -> Point:
    """The minimum on the side of the case's start."""
    return minima_of(theory, at)[0 if at.how["start"] == "zero" else -1]


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
    point = _beside(theory, at)
    return {**known(energy=point.action, **point.order_parameters, **point.observables), **_WHOLE}


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


def ideal(theory: Theory, at: Case) -> Expected:
    """The derived loss of the unigram predictor, and the angles between attention on the plane and those of both."""
    chain, point = theory.derivation(), _beside(theory, at)
    sizes = {L: int(at.parameters["L"]), V: int(at.parameters["V"])}
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
_NEAR = "projected action within 20 % of the transition, where what it leaves out counts twice"


_TRANSITION = 330
"""About where the transition of L = 32, V = 8 lies: it only chooses between two tolerances."""


def _branch_bars(at: Case) -> Bars:
    near = abs(int(at.parameters["P"]) / _TRANSITION - 1) < 0.2
    copying = (
        Bar(0.03, _POPULATION)
        if at.how["start"] == "copy"
        else Bar(0.002, "uniform attention: a_G is of order 1/P", absolute=True)
    )
    return {
        "energy": Bar(0.06, _NEAR) if near else Bar(0.03, _POPULATION),
        "loss": Bar(0.03, _POPULATION),
        "a_G": copying,
        "a_1": Bar(0.03, _POPULATION),
        "copy_weight": Bar(0.03, "a share of one", absolute=True),
        "coverage": Bar(0.05, "what is outside of the plane is of order 1/P", absolute=True),
    }


def _near_bars(at: Case) -> Bars:
    return {"energy": Bar(0.03, "the relaxed action halves what the projection leaves out, 6 % near the transition")}


def _transition_bars(at: Case) -> Bars:
    return {"P": Bar(0.05, "both energies are off by up to 6 % near the transition, where they cross at an angle")}


def _onset_bars(at: Case) -> Bars:
    return {"P": Bar(0.02, "extrapolated in 1/P; what is left is of order 1/P^2")}


def _small_onset_bars(at: Case) -> Bars:
    return {"P": Bar(0.06, "top eigenvalue of as few sequences as pooling takes: it is too large by order 1/sqrt(P L)")}


def _linear_bars(at: Case) -> Bars:
    return {
        "energy": Bar(0.03, _POPULATION),
        "loss": Bar(0.03, _POPULATION),
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
_STARTED = tuple(
    case("softmax", {"start": start}, **_SIZES, P=P)
    for P in (100, 150, 200, 250, 330, 420, 500, 600, 700)
    for start in ("zero", "copy")
    if start == "zero" or P >= 330
)
_AT_TRANSITION = (
    case("softmax", {"start": "copy"}, **_SIZES, P=330),
    case("softmax", {"start": "copy"}, **_SIZES, P=420),
)
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
        cases=_STARTED,
        quick=tuple(each for each in _STARTED if each.parameters["P"] in ("250", "330", "420")),
        seeds=8,
        measure=trained,
        expect=branch,
        bars=_branch_bars,
        seconds=0.4,
    ),
    Claim(
        name="relaxed softmax branches",
        theory="copy-head/softmax-relaxed",
        statement="energy of the copying head near the transition, with the same-token coordinate relaxed",
        steps=("relaxed action", "relaxed coordinate", "same-token response"),
        cases=_AT_TRANSITION,
        quick=_AT_TRANSITION,
        seeds=8,
        measure=trained,
        expect=branch,
        bars=_near_bars,
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
        cases=tuple(case("linear", {"sequences": count}, L=64, V=V) for V in (4, 8, 16) for count in (64, 256, 1024)),
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
        statement="the same for as many sequences as pooling takes, V^2",
        steps=("pooling transition",),
        cases=(case("linear", {"sequences": 64}, L=64, V=8),),
        quick=(case("linear", {"sequences": 64}, L=64, V=8),),
        seeds=8,
        measure=onset,
        expect=instability,
        bars=_small_onset_bars,
        seconds=0.3,
    ),
    Claim(
        name="linear minimum",
        theory="copy-head/linear",
        statement="energy, loss, share of copying and coverage at the lowest of the minima from five starts",
        steps=("linear action", "loss", "copy weight", "readout", "pair action"),
        cases=tuple(case("linear", L=24, V=4, P=P) for P in (40, 80, 160, 290, 430, 620)),
        quick=tuple(case("linear", L=24, V=4, P=P) for P in (80, 160, 430)),
        seeds=8,
        measure=deepest,
        expect=global_minimum,
        bars=_linear_bars,
        seconds=1,
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
