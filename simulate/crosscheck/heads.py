r"""What claims about the copy head share: heads that are trained, and the minima and transitions of their action.

.. math:: \min_G E(G) \approx F(s^*), \qquad a_G \approx a(s^*), \qquad P^*: F(s_1) = F(s_2)

The action is that of the population, projected on the plane of uniform and copying attention: what it leaves out is of
the relative order 1/P and 1/L and grows towards the transition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache

import torch
from sympy import Basic, Expr, Symbol
from torch import Tensor

from derive.action import EffectiveAction
from derive.catalogue import Theory
from derive.copy_head.model import L, V
from numerics.points import Kind, Point, Transitions
from numerics.stationary import minima
from numerics.transitions import transitions
from simulate.copy_head import CopyHead, replicas, task
from simulate.copy_head_observables import order_parameters, population_loss
from simulate.crosscheck.claims import Case, Expected, Values
from simulate.optimise import Minimum, polish

__all__ = [
    "NORM",
    "POPULATION",
    "WHOLE",
    "beside",
    "bracket",
    "case",
    "head_of",
    "minima_of",
    "observed",
    "polished",
    "same",
    "sizes_of",
    "trained",
    "transitions_of",
    "values_of",
]

NORM = 1e-7
"""The gradient norm to which heads are trained, per sequence: energies are then known far better than they scatter."""
POPULATION = "projected action of the population: of order 1/P and 1/L"
WHOLE: Expected = {"coverage": (1.0, 0.0)}
"""The plane of uniform and copying attention is all that the action knows of."""
_DIGITS = 10
_WINDOW = 0.04
"""Share of P in which what changes sign is taken for a straight line."""


def case(attention: str, how: Mapping[str, object] | None = None, /, **parameters: object) -> Case:
    """An experiment with a head of that attention."""
    texts = [{name: str(value) for name, value in each.items()} for each in (parameters, how or {})]
    return Case(f"copy-head/{attention}", *texts)


def head_of(at: Case, seed: int) -> CopyHead:
    """The head of one seed's sequences."""
    setup = at.setup
    return CopyHead(task(setup), replicas(setup, [seed]))


def minima_of(action: EffectiveAction, at: Case) -> list[Point]:
    """The minima of the action at the parameters of the case, by their first order parameter."""
    found = [point for point in minima(action, action.setup(at.parameters), _DIGITS) if point.kind is Kind.MINIMUM]
    first = action.variables[0].name
    return sorted(found, key=lambda point: float(point.order_parameters[first]))


def beside(theory: Theory, at: Case) -> Point:
    """The minimum on the side of the case's start."""
    return minima_of(theory.action(), at)[0 if at.how["start"] == "zero" else -1]


def values_of(theory: Theory, at: Case) -> dict[Basic, Expr]:
    """The values of all parameters, and of the control where the case has one."""
    action = theory.action()
    setup = action.setup(at.parameters)
    return {**setup.values, **({} if setup.control is None else {action.control.symbol: setup.control})}


def transitions_of(theory: Theory, at: Case) -> Transitions:
    return _along_control(theory, tuple(at.parameters.items()))


@cache
def _along_control(theory: Theory, parameters: tuple[tuple[str, str], ...]) -> Transitions:
    action = theory.action()
    return transitions(action, action.setup(dict(parameters)), _DIGITS)


def trained(at: Case, seed: int) -> Values:
    """A head trained from the case's start: what is `observed` of it."""
    head = head_of(at, seed)
    return observed(head, polished(head, head.begin(at.how["start"])))


def polished(head: CopyHead, start: Tensor) -> Minimum:
    """The minimum that L-BFGS reaches."""
    return polish(head.energy, start, NORM * head.replicas[0].P)


def observed(head: CopyHead, minimum: Minimum) -> Values:
    """Energy, order parameters and the loss on all sequences; ``copy_weight`` is the copying share of |A|^2."""
    with torch.no_grad():
        order = {name: float(value) for name, value in order_parameters(head, minimum.theta).items()}
        loss, _ = population_loss(head, minimum.theta)
    copied = (head.task.L - 1) * order["a_G"] ** 2
    return {"energy": minimum.energy, "loss": float(loss), "copy_weight": copied / (order["u"] ** 2 + copied), **order}


def same(energy: float, other: float) -> bool:
    """Whether two energies are of one minimum."""
    return math.isclose(energy, other, rel_tol=1e-6)


def sizes_of(at: Case) -> dict[Symbol, int]:
    return {L: int(at.parameters["L"]), V: int(at.parameters["V"])}


def bracket(below: Callable[[int], bool], least: int, known: Callable[[int], bool] = lambda P: True) -> tuple[int, int]:
    """Two numbers of sequences, the lower one ``below`` the place that is sought, between which a straight line will do.

    The search begins at ``least``; they are neighbours where what is interpolated is not ``known`` at both.
    """
    low, high = least, 2 * least
    while below(high):
        low, high = high, 2 * high
    while high - low > 1 and (high - low > _WINDOW * high or not (known(low) and known(high))):
        middle = (low + high) // 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high
