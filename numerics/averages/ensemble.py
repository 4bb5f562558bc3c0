r"""Averages that share one Gaussian measure and one minimisation, as functions of arrays.

.. math:: I_k = \int \mathcal N(x; \mu, C)\, F_k\bigl(x,\, C^{-1}(x - \mu),\, z^*,\, M,\, \partial z^*/\partial c\bigr)\,
          \mathrm{d}x, \qquad z^* = \arg\min_z \tfrac12 (z - c(x))^T V^{-1} (z - c(x)) + g(z; x)

An `Ensemble` holds what a rule of integration needs: the measure, the loss g with its first two derivatives in z, and the
integrands, all emitted from SymPy. Arrays hold components first and points last, as emitted matrices do: x has shape
(variables, points), z (fields, points), a Hessian (fields, fields, points). ``values`` are those of the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Add, Basic, Expr, Mul, Symbol, Tuple
from sympy.matrices import ImmutableDenseMatrix

from derive.averages import GaussianAverage, MoreauEnvelope, Proximal, ProximalJacobian, Score
from numerics.emit import Emitted, emit
from numerics.emit.chain import jet
from numerics.emit.graph import Graph

__all__ = ["Array", "Ensemble", "Loss", "Problem", "ensembles"]

Array = NDArray[np.floating[Any]]

_MINIMUM = (MoreauEnvelope, Proximal, ProximalJacobian)


@dataclass(frozen=True)
class Loss:
    """g(z) with gradient and Hessian in z at every point.

    ``coefficients`` are what depends on x and the values alone, ``constants`` what depends on the values alone.
    """

    jet: Emitted
    coefficients: Array  # (coefficients, points)
    constants: tuple[float, ...]

    def __call__(self, z: Array) -> tuple[Array, Array, Array]:
        """Value (points,), gradient (fields, points) and Hessian (fields, fields, points)."""
        size, count = z.shape
        jet = self.jet.into(np.empty((1 + size + size**2, count)), *z, *self.coefficients, *self.constants)
        return jet[0], jet[1 : size + 1], jet[size + 1 :].reshape(size, size, count)

    def at(self, points: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Loss:
        """The same loss at a choice of the points, which may repeat."""
        return Loss(self.jet, self.coefficients[:, points], self.constants)


@dataclass(frozen=True)
class Problem:
    """The minimisation over ``fields`` fields that the averages of an ensemble share, emitted."""

    fields: int
    variables: tuple[bool, ...]  # those on which the loss depends at fixed fields
    center: Emitted
    width: Emitted
    coefficients: Emitted
    constants: Emitted
    jet: Emitted


@dataclass(frozen=True)
class Ensemble:
    """Emitted averages over one measure, with at most one minimisation problem; ``names`` are those of the arguments."""

    names: tuple[str, ...]
    dimension: int
    size: int
    measure: Emitted
    problem: Problem | None
    integrands: Emitted
    rough: tuple[bool, ...]  # the integrands that hold dz/dc, which is unbounded where a jump closes

    @classmethod
    def compile(cls, nodes: Sequence[GaussianAverage], arguments: tuple[Symbol, ...]) -> Ensemble:
        """Emit ``nodes`` as functions of ``arguments``.

        Raises `ValueError` naming the node that has another measure or minimisation than the first, and
        `EmissionError` for what cannot be emitted.
        """
        if not nodes:
            raise ValueError("an ensemble needs at least one average")
        problem: tuple[Any, ...] | None = None
        for node in nodes:
            if not isinstance(node, GaussianAverage):
                raise ValueError(f"{_short(node)} is not an average over a Gaussian measure")
            if node.measure != nodes[0].measure:
                raise ValueError(f"{_short(node)} is averaged over another measure than {_short(nodes[0])}")
            for found in _problems(node):
                if problem is not None and found != problem:
                    raise ValueError(f"{_short(node)} holds a minimisation of another loss, center or width")
                problem = found
        if nodes[0].covariance.is_symmetric() is False:
            raise ValueError(f"{_short(nodes[0])} has a covariance that is not symmetric")
        variables = nodes[0].variables
        renamed = _renamed(variables)
        taken = set(arguments) & {*renamed, *renamed.values()}
        if taken:
            raise ValueError(f"the argument {taken.pop()} is a variable of the averages")
        return cls(
            names=tuple(symbol.name for symbol in arguments),
            dimension=len(variables),
            size=len(nodes),
            measure=emit((ImmutableDenseMatrix(nodes[0].mean), nodes[0].covariance), arguments),
            problem=None if problem is None else _problem(problem, variables, arguments),
            integrands=_integrands(nodes, problem, renamed, arguments),
            rough=tuple(map(_is_rough, nodes)),
        )

    @property
    def fields(self) -> int:
        """How many fields are minimised over; 0 without a minimisation."""
        return self.problem.fields if self.problem else 0

    @property
    def jacobian(self) -> bool:
        """Whether any integrand needs dz/dc."""
        return any(self.rough)

    def mean(self, values: Array) -> Array:
        """The mean of the variables, (variables,)."""
        return np.asarray(self.measure(*values)[0][:, 0])

    def covariance(self, values: Array) -> Array:
        """The covariance of the variables, (variables, variables)."""
        return np.asarray(self.measure(*values)[1])

    def defined(self, values: Array) -> bool:
        """Whether the covariance, and the width where there is one, are finite and positive definite at ``values``."""
        return self.conditioning(values) > 0

    def conditioning(self, values: Array) -> float:
        """The least over the greatest eigenvalue of the covariance, or of the width if that is less; 0 if not defined."""
        matrices = [self.covariance(values)] + ([self.width(values)] if self.problem else [])
        if not all(np.all(np.isfinite(matrix)) for matrix in matrices):
            return 0.0
        levels = [np.linalg.eigvalsh(matrix) for matrix in matrices]
        return min(float(level[0] / level[-1]) if level[0] > 0 else 0.0 for level in levels)

    def center(self, x: Array, values: Array) -> Array:
        """The point c from which the fields are measured, (fields, points)."""
        return np.asarray(self.shared.center(*x, *values)[:, 0])

    def width(self, values: Array) -> Array:
        """The matrix V, (fields, fields)."""
        return np.asarray(self.shared.width(*values))

    def loss(self, x: Array, values: Array) -> Loss:
        """The loss as a function of z alone, at the points x."""
        points = np.broadcast_shapes(*(np.shape(component) for component in x))
        coefficients = self.shared.coefficients(*x, *values)
        constants = tuple(map(float, self.shared.constants(*values)))
        return Loss(self.shared.jet, np.asarray(coefficients) if coefficients else np.empty((0, *points)), constants)

    def integrand(self, x: Array, score: Array, z: Array, moreau: Array, jacobian: Array, values: Array) -> Array:
        """The integrands (averages, points); ``z``, ``moreau`` and ``jacobian`` are ignored without a minimisation."""
        entries = (*z, moreau, *(jacobian.reshape(-1, moreau.size) if self.jacobian else ())) if self.problem else ()
        return np.asarray(self.integrands(*x, *score, *entries, *values))

    @property
    def shared(self) -> Problem:
        """The minimisation; raises `ValueError` without one."""
        if self.problem is None:
            raise ValueError("these averages hold no minimisation")
        return self.problem


def ensembles(
    nodes: Sequence[GaussianAverage], arguments: tuple[Symbol, ...]
) -> tuple[tuple[Ensemble, tuple[int, ...]], ...]:
    """Group a mixed list: ensembles, each with the places of its nodes in ``nodes``.

    Averages without a minimisation join the first group over their measure.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    problems = [next(iter(_problems(node)), None) for node in nodes]
    for place in sorted(range(len(nodes)), key=lambda place: problems[place] is None):
        measure = nodes[place].measure
        joined = [key for key in groups if key[0] == measure and problems[place] is None]
        groups.setdefault(joined[0] if joined else (measure, problems[place]), []).append(place)
    return tuple(
        (Ensemble.compile([nodes[place] for place in sorted(places)], arguments), tuple(sorted(places)))
        for places in groups.values()
    )


def _minima(node: Basic) -> list[Basic]:
    """What ``node`` holds of minimisations, each once; their losses are not looked into."""
    return [part for part in Graph([node], opaque=_MINIMUM).nodes if isinstance(part, _MINIMUM)]


def _is_rough(node: Basic) -> bool:
    return any(isinstance(part, ProximalJacobian) for part in _minima(node))


def _problems(node: Basic) -> list[tuple[Any, ...]]:
    found = {minimum.problem for minimum in _minima(node)}
    return sorted(found, key=str) if len(found) > 1 else list(found)


def _renamed(variables: Iterable[Symbol]) -> dict[Symbol, Symbol]:
    return {x: Symbol(f"_x{place}", real=True) for place, x in enumerate(variables)}


@lru_cache(maxsize=8)
def _problem(shared: tuple[Any, ...], variables: Tuple, arguments: tuple[Symbol, ...]) -> Problem:
    """Emitted once for all ensembles that share it: the derivatives of a loss in many fields take seconds."""
    loss, names, center, width = shared
    renamed = _renamed(variables)
    if width.free_symbols & set(renamed):
        raise ValueError(f"the width {_short(width)} depends on a variable of the averages")
    fields = tuple(Symbol(f"_z{place}", real=True) for place in range(len(names)))
    value = loss.xreplace({**dict(zip(names, fields, strict=True)), **renamed})
    derived = jet(value, fields)
    square = [entry for row in derived.hessian for entry in row]
    inner = (*fields, *derived.definitions)
    reduced, hoisted = _hoisted([*derived.definitions.values(), derived.value, *derived.gradient, *square], inner)
    definitions = dict(zip(derived.definitions, reduced, strict=False))
    inside = tuple(renamed.values())
    coefficients, constants = (
        {name: part for name, part in hoisted.items() if bool(part.free_symbols & set(inside)) is varies}
        for varies in (True, False)
    )
    return Problem(
        fields=len(fields),
        variables=tuple(x in value.free_symbols for x in inside),
        center=emit(ImmutableDenseMatrix(center).xreplace(renamed), (*inside, *arguments)),
        width=emit(width, arguments),
        coefficients=emit(tuple(coefficients.values()), (*inside, *arguments)),
        constants=emit(tuple(constants.values()), arguments),
        jet=emit(tuple(reduced[len(definitions) :]), (*fields, *coefficients, *constants), definitions=definitions),
    )


def _integrands(
    nodes: Sequence[GaussianAverage],
    problem: tuple[Any, ...] | None,
    renamed: dict[Symbol, Symbol],
    arguments: tuple[Symbol, ...],
) -> Emitted:
    """The integrands as functions of x, its score, and where there is a minimisation of z, M and dz/dc."""
    scores = {Score(x): Symbol(f"_s{place}", real=True) for place, x in enumerate(renamed)}
    entries: dict[Basic, Symbol] = {}
    if problem is not None:
        size = len(problem[1])
        entries |= {Proximal(*problem, i): Symbol(f"_z{i}", real=True) for i in range(size)}
        entries[MoreauEnvelope(*problem)] = Symbol("_m", real=True)
        for i in range(size) if any(map(_is_rough, nodes)) else ():
            entries |= {ProximalJacobian(*problem, i, j): Symbol(f"_j{i}_{j}", real=True) for j in range(size)}
    inside = [node.integrand.xreplace(entries).xreplace(scores).xreplace(renamed) for node in nodes]
    return emit(tuple(inside), (*renamed.values(), *scores.values(), *entries.values(), *arguments))


def _hoisted(expressions: Iterable[Expr], inner: Iterable[Symbol]) -> tuple[list[Expr], dict[Symbol, Expr]]:
    """``expressions`` in ``inner`` and coefficients, and what each coefficient is: the largest parts free of ``inner``."""
    names: dict[Expr, Symbol] = {}
    memo: dict[Basic, Basic] = {}
    chosen = set(inner)

    def coefficient(part: Expr) -> Expr:
        return part if part.is_number else names.setdefault(part, Symbol(f"_k{len(names)}", real=True))

    def reduced(node: Basic) -> Basic:
        if node in memo:
            return memo[node]
        if not node.free_symbols & chosen:
            result = coefficient(node)
        elif not node.args:
            result = node
        elif isinstance(node, Add | Mul):
            free = [part for part in node.args if not part.free_symbols & chosen]
            bound = [reduced(part) for part in node.args if part.free_symbols & chosen]
            result = node.func(*bound, coefficient(node.func(*free))) if free else node.func(*bound)
        else:
            result = node.func(*map(reduced, node.args))
        memo[node] = result
        return result

    done = [reduced(expression) for expression in expressions]
    return done, {name: part for part, name in names.items()}


def _short(node: object) -> str:
    text = str(node)
    return text if len(text) <= 80 else text[:77] + "..."
