r"""Loci in two parameters: each kind of transition, and each special point, as equations with exact derivatives.

.. math:: D^k F(x_p)[d_1, \ldots, d_k], \qquad
          \partial_{d_1} D^k F[d_1, \ldots]\, e_j = D^k F[e_j, d_2, \ldots], \quad
          \partial_{x} D^k F[d_1, \ldots]\, e_j = D^{k+1} F[d_1, \ldots, e_j]

An equation is a sum of derivatives of the action along coordinates and unknown vectors; its Jacobian follows by the
product rule. One equation less than unknowns: a curve in the plane of the control and a second parameter, which is the
size of the landscape. As many: a point. Sources: Griewank and Reddien (1984) for cusps, Golubitsky and Schaeffer (1985)
for what is degenerate by symmetry, Griffiths, PRB 7 (1973) 545, for the names of the points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from mpmath import mpf
from sympy import Expr

from numerics.jets import Index, Jet, indices, jet
from numerics.landscape import Landscape
from numerics.newton import Matrix, System, Vector

__all__ = [
    "CONTROL",
    "Locus",
    "bicritical",
    "coexistence",
    "contracted",
    "crossing",
    "cusp",
    "fold",
    "instability",
    "landau_point",
    "line_end",
    "steepest",
    "system",
    "tricritical",
    "triple",
]

CONTROL, SECOND = 0, 1


@dataclass(frozen=True)
class Derivative:
    """A derivative of the action (or of the locus's observable) at a point, along coordinates and unknown vectors."""

    along: tuple[int | str, ...] = ()
    point: int = 0
    parameters: tuple[int, ...] = ()
    factor: int = 1
    observed: bool = False


@dataclass(frozen=True)
class Product:
    """A constant times entries of unknown vectors and scalars, each by name and place."""

    factor: mpf
    entries: tuple[tuple[str, int], ...] = ()


Equation = tuple[Derivative | Product, ...]


@dataclass(frozen=True)
class Locus:
    """Equations in ``points``, then the parameters, then ``vectors``, then ``scalars``."""

    n: int
    points: int
    vectors: tuple[str, ...]
    scalars: tuple[str, ...]
    equations: tuple[Equation, ...]
    observed: Expr | None = None

    def place(self, name: str, free: int) -> int:
        """Where the vector or scalar ``name`` begins among the unknowns, of which ``free`` are parameters."""
        start = self.points * self.n + free
        if name in self.vectors:
            return start + self.n * self.vectors.index(name)
        return start + self.n * len(self.vectors) + self.scalars.index(name)

    def count(self, free: int) -> int:
        """The number of unknowns."""
        return self.n * (self.points + len(self.vectors)) + free + len(self.scalars)


# --- the loci ---


def _flat(n: int, point: int = 0, slack: str = "", scales: Sequence[mpf] = (), vector: str = "v") -> list[Equation]:
    """The gradient vanishes, but for ``slack`` times the critical vector where it is given."""
    forces = [Derivative((i,), point) for i in range(n)]
    if not slack:
        return [(force,) for force in forces]
    pushes = [Product(1 / scales[i] ** 2, ((slack, 0), (vector, i))) for i in range(n)]
    return list(zip(forces, pushes, strict=True))


def _null(n: int, scales: Sequence[mpf], point: int = 0) -> list[Equation]:
    """H v = 0 and |v| = 1 in scaled coordinates."""
    length = [Product(1 / scales[i] ** 2, (("v", i), ("v", i))) for i in range(n)]
    return [*((Derivative((i, "v"), point),) for i in range(n)), (*length, Product(mpf(-1)))]


def fold(n: int, scales: Sequence[mpf]) -> Locus:
    """grad F = 0, H v = 0: a minimum ends."""
    return Locus(n, 1, ("v",), (), (*_flat(n), *_null(n, scales)))


def instability(n: int, scales: Sequence[mpf], point: int = 0) -> Locus:
    """As `fold`, and v . dgrad F/dcontrol = 0: two branches cross. The slack of a true crossing is zero."""
    rest: Equation = (Derivative(("v",), point, (CONTROL,)),)
    return Locus(n, 1, ("v",), ("slack",), (*_flat(n, point, "slack", scales), *_null(n, scales, point), rest))


def coexistence(n: int) -> Locus:
    """Two stationary points of equal action."""
    return Locus(n, 2, (), (), (*_flat(n, 0), *_flat(n, 1), _equal(0, 1)))


def _equal(one: int, other: int) -> Equation:
    return Derivative(point=one), Derivative(point=other, factor=-1)


def crossing(n: int, excess: Expr) -> Locus:
    """A stationary point at which ``excess``, an observable minus its level, vanishes."""
    return Locus(n, 1, (), (), (*_flat(n), (Derivative(observed=True),)), excess)


def steepest(n: int) -> Locus:
    """The slope of one order parameter with the control is extreme."""
    slope: Equation = (Derivative((0, "slope")), Derivative((0,), parameters=(CONTROL,)))
    bend: Equation = (
        Derivative((0, "slope", "slope")),
        Derivative((0, "slope"), parameters=(CONTROL,), factor=2),
        Derivative((0,), parameters=(CONTROL, CONTROL)),
    )
    return Locus(n, 1, ("slope",), (), (*_flat(n), slope, bend))


def cusp(n: int, scales: Sequence[mpf]) -> Locus:
    """Two minima and the saddle between them merge: D^3 F[v, v, v] = 0 at a fold."""
    return Locus(n, 1, ("v",), (), (*fold(n, scales).equations, (Derivative(("v", "v", "v")),)))


def tricritical(n: int, scales: Sequence[mpf]) -> Locus:
    r"""The quartic Landau coefficient vanishes at an instability: F_vvvv + 3 F_vvu = 0 with H u + F_xvv = 0, u . v = 0."""
    relaxed = [
        (Derivative((i, "u")), Derivative((i, "v", "v")), Product(1 / scales[i] ** 2, (("tilt", 0), ("v", i))))
        for i in range(n)
    ]
    across = tuple(Product(1 / scales[i] ** 2, (("u", i), ("v", i))) for i in range(n))
    quartic: Equation = (Derivative(("v",) * 4), Derivative(("u", "v", "v"), factor=3))
    equations = (*instability(n, scales).equations, *relaxed, across, quartic)
    return Locus(n, 1, ("v", "u"), ("slack", "tilt"), equations)


def landau_point(n: int, scales: Sequence[mpf]) -> Locus:
    """The cubic Landau coefficient vanishes at an instability: F_vvv = 0."""
    return Locus(n, 1, ("v",), ("slack",), (*instability(n, scales).equations, (Derivative(("v", "v", "v")),)))


def triple(n: int) -> Locus:
    """Three minima of equal action."""
    return Locus(n, 3, (), (), (*_flat(n, 0), *_flat(n, 1), *_flat(n, 2), _equal(0, 1), _equal(1, 2)))


def line_end(n: int, scales: Sequence[mpf]) -> Locus:
    """An instability, of the second point, that shares its action with another phase: a second-order line ends there."""
    return Locus(n, 2, ("v",), ("slack",), (*_flat(n, 0), *instability(n, scales, 1).equations, _equal(0, 1)))


def bicritical(n: int, scales: Sequence[mpf], one: Sequence[mpf], other: Sequence[mpf]) -> Locus:
    """Two instabilities of one point, along v near ``one`` and w near ``other``, orthonormal in scaled coordinates."""
    dual = {"v": [a / s**2 for a, s in zip(one, scales, strict=True)]}
    dual["w"] = [a / s**2 for a, s in zip(other, scales, strict=True)]
    equations: list[Equation] = [
        (Derivative((i,)), Product(dual["v"][i], (("push v", 0),)), Product(dual["w"][i], (("push w", 0),)))
        for i in range(n)
    ]
    for name, rival in (("v", "w"), ("w", "v")):
        equations += [(Derivative((i, name)), Product(dual[rival][i], ((f"mix {name}", 0),))) for i in range(n)]
        equations.append((*(Product(d, ((name, i),)) for i, d in enumerate(dual[name])), Product(mpf(-1))))
        equations.append(tuple(Product(d, ((name, i),)) for i, d in enumerate(dual[rival])))
        equations.append((Derivative((name,), parameters=(CONTROL,)),))
    return Locus(n, 1, ("v", "w"), ("push v", "push w", "mix v", "mix w"), tuple(equations))


# --- their numbers ---


def system(landscape: Landscape, locus: Locus, free: int) -> System:
    """The residual and the exact Jacobian; unknowns are the points, the first ``free`` parameters, vectors, scalars.

    With one parameter free the second one is that of the setup. Raises `ArithmeticError` outside the action's domain.
    """
    n, start = locus.n, locus.points * locus.n
    jets = {
        observed: _jet(landscape, locus, free, observed)
        for observed in {t.observed for e in locus.equations for t in e if isinstance(t, Derivative)}
    }

    def evaluate(y: Sequence[mpf]) -> tuple[Vector, Matrix]:
        parameters = y[start : start + free]
        try:
            values = {
                (observed, p): function(y[p * n : (p + 1) * n], *parameters)
                for observed, function in jets.items()
                for p in range(locus.points)
            }
        except (TypeError, ValueError) as error:  # outside the domain of the action
            raise ArithmeticError(str(error)) from None
        residual, rows = [], []
        for equation in locus.equations:
            value, row = mpf(0), [mpf(0)] * len(y)
            for term in equation:
                value += _add(locus, term, values, y, free, row)
            residual.append(value)
            rows.append(row)
        return residual, rows

    return evaluate


def _add(
    locus: Locus,
    term: Derivative | Product,
    values: dict[tuple[bool, int], Jet],
    y: Sequence[mpf],
    free: int,
    row: Vector,
) -> mpf:
    """The value of a term; its derivatives are added to ``row``."""
    n = locus.n
    if isinstance(term, Product):
        places = [locus.place(name, free) + k for name, k in term.entries]
        factors = [y[place] for place in places]
        for k, place in enumerate(places):
            row[place] += term.factor * _times(factors[:k] + factors[k + 1 :])
        return term.factor * _times(factors)
    f, extra = values[term.observed, term.point], tuple(n + q for q in term.parameters)
    directions: list[int | Sequence[mpf]] = [
        d if isinstance(d, int) else y[(at := locus.place(d, free)) : at + n] for d in term.along
    ]
    for j in range(n):
        row[term.point * n + j] += term.factor * contracted(f, n, [*directions, j], extra)
    for q in range(free):
        row[locus.points * n + q] += term.factor * contracted(f, n, directions, (*extra, n + q))
    for k, name in enumerate(term.along):
        if isinstance(name, str):
            at = locus.place(name, free)
            for j in range(n):
                row[at + j] += term.factor * contracted(f, n, [*directions[:k], j, *directions[k + 1 :]], extra)
    return term.factor * contracted(f, n, directions, extra)


def _times(factors: Sequence[mpf]) -> mpf:
    result = mpf(1)
    for factor in factors:
        result *= factor
    return result


def contracted(f: Jet, n: int, directions: Sequence[int | Sequence[mpf]], extra: Index) -> mpf:
    total = mpf(0)
    for index in product(*((d,) if isinstance(d, int) else range(n) for d in directions)):
        weights = [d[i] for i, d in zip(index, directions, strict=True) if not isinstance(d, int)]
        total += f[(*index, *extra)] * _times(weights)
    return total


def _jet(landscape: Landscape, locus: Locus, free: int, observed: bool) -> Callable[..., Jet]:
    """The map from a point and parameters to all derivatives that the equations and their Jacobian need."""
    n = locus.n
    orders: dict[Index, int] = {}
    for term in (t for e in locus.equations for t in e if isinstance(t, Derivative) and t.observed == observed):
        extra = tuple(n + q for q in term.parameters)
        orders[extra] = max(orders.get(extra, 0), len(term.along) + 1)
        for q in range(free):
            more = tuple(sorted((*extra, n + q)))
            orders[more] = max(orders.get(more, 0), len(term.along))
    value = locus.observed if observed else landscape.action.value
    assert value is not None
    evaluate = jet(value, landscape.variables, indices(n, *orders.items()), landscape.arguments)
    return lambda x, control, second=None: evaluate(landscape.at(x, control, second))
