r"""What a certificate claims: each kind of transition as a square system, and the signs that say what its root is.

.. math:: \text{spinodal: } \nabla F = 0,\; \det H = 0 \qquad
          \text{coexistence: } \nabla F(x_1) = \nabla F(x_2) = 0,\; F(x_1) = F(x_2)

Null vectors are columns of the adjugate of H, so that the unknowns are order parameters, control and size alone. The
systems are written in partial derivatives of the action, wherever these come from; their Jacobians follow by the product
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product
from operator import add
from typing import NamedTuple

from flint import arb, arb_mat
from sympy import Expr, Matrix, Rational, S, Symbol, eye

from derive.action import EffectiveAction, Setup, Symmetry
from numerics.balls import Ball
from numerics.certify.intervals import ProofError, ball_of
from numerics.jets import Index

__all__ = [
    "KINDS",
    "LEVELS",
    "OF_SOLUTIONS",
    "Blocks",
    "Claim",
    "Derivatives",
    "Facts",
    "Kind",
    "Mirror",
    "Partials",
    "Scene",
    "index_of",
    "mirror",
    "resting",
]

Blocks = tuple[tuple[Index, int], ...]

Derivatives = Callable[[Expr, Sequence[Ball], Blocks], Mapping[Index, Ball]]
"""The map from an expression, the values of order parameters, control and size, and blocks of derivatives to those."""

Facts = Iterator[tuple[str, Ball]]
"""Sentences, each with a ball that has to be positive for it to be true."""


class Dual(NamedTuple):
    """A value with its derivatives in the unknowns."""

    value: Ball
    slope: tuple[Ball, ...]

    def __add__(self, other: Dual) -> Dual:  # type: ignore[override]
        return Dual(self.value + other.value, tuple(map(add, self.slope, other.slope)))

    def __mul__(self, other: Dual) -> Dual:  # type: ignore[override]
        slopes = zip(self.slope, other.slope, strict=True)
        return Dual(self.value * other.value, tuple(a * other.value + self.value * b for a, b in slopes))

    def times(self, factor: Ball | int) -> Dual:
        return Dual(self.value * factor, tuple(a * factor for a in self.slope))


Square = Sequence[Sequence[Dual]]

_OTHERS_POSITIVE = "all eigenvalues of the Hessian but the one that vanishes are positive"


def _sum(terms: Sequence[Dual]) -> Dual:
    return reduce(Dual.__add__, terms)


def _without(matrix: Square, row: int, column: int) -> list[list[Dual]]:
    return [[x for j, x in enumerate(line) if j != column] for i, line in enumerate(matrix) if i != row]


def _determinant(matrix: Square) -> Dual:
    if len(matrix) == 1:
        return matrix[0][0]
    return _sum([(x * _determinant(_without(matrix, 0, j))).times((-1) ** j) for j, x in enumerate(matrix[0])])


def _null(matrix: Square, column: int) -> list[Dual]:
    """A column of the adjugate: a null vector where the determinant vanishes."""
    if len(matrix) == 1:
        return [Dual(arb(1), tuple(arb(0) for _ in matrix[0][0].slope))]
    return [_determinant(_without(matrix, column, i)).times((-1) ** (i + column)) for i in range(len(matrix))]


def _values(matrix: Square) -> list[list[Ball]]:
    return [[x.value for x in line] for line in matrix]


def _minors(matrix: Sequence[Sequence[Ball]]) -> list[Ball]:
    """The leading principal minors."""
    return [arb_mat([line[:k] for line in matrix[:k]]).det() for k in range(1, len(matrix) + 1)]


def index_of(hessian: Sequence[Sequence[Ball]]) -> int:
    """How many eigenvalues of a symmetric matrix are proven to be negative, all others being positive; or `ProofError`."""
    minors = _minors(hessian)
    if len(minors) == 2 and minors[1] < 0:
        return 1
    if not all(minor > 0 or minor < 0 for minor in minors):
        raise ProofError("the signs of the Hessian's eigenvalues are not proven")
    signs = [True, *(bool(minor > 0) for minor in minors)]
    return sum(a != b for a, b in pairwise(signs))


@dataclass(frozen=True)
class Partials:
    """The derivatives of an expression at one point of a claim; ``variables`` says which of them each unknown is, if any."""

    n: int
    jet: Mapping[Index, Ball]
    variables: tuple[int | None, ...]

    def value(self, *index: int) -> Ball:
        return self.jet[tuple(sorted(index))]

    def dual(self, *index: int) -> Dual:
        return Dual(self.value(*index), tuple(arb(0) if k is None else self.value(*index, k) for k in self.variables))

    @property
    def gradient(self) -> list[Dual]:
        return [self.dual(i) for i in range(self.n)]

    @property
    def hessian(self) -> list[list[Dual]]:
        return [[self.dual(i, j) for j in range(self.n)] for i in range(self.n)]

    @property
    def bends(self) -> list[list[Ball]]:
        return [[self.value(i, j) for j in range(self.n)] for i in range(self.n)]

    def along(self, vector: Sequence[Ball], order: int, *extra: int) -> Ball:
        """The derivative of that order along a vector."""
        total = arb(0)
        for index in product(range(self.n), repeat=order):
            total += reduce(lambda value, i: value * vector[i], index, self.value(*index, *extra))
        return total

    def slopes_along(self, vector: Sequence[Ball], order: int) -> list[Ball]:
        """The gradient of the derivative of that order along a vector."""
        return [self.along(vector, order, i) for i in range(self.n)]


class Claim(NamedTuple):
    """The equations at some values of the unknowns, and what else is true there."""

    equations: list[Dual]
    facts: Callable[[], Facts]


class Mirror(NamedTuple):
    """What keeps a branch: equations of the points kept, the vectors along them, and those across.

    Across them the gradient vanishes on the branch whatever the control: by a symmetry that undoes itself and turns these
    vectors round, or, where it is ``lopsided``, although there is none and cubic terms may be left.
    """

    constraints: Sequence[tuple[Sequence[Rational], Ball]]
    even: Sequence[Sequence[Rational]]
    odd: Sequence[Sequence[Rational]]
    lopsided: bool = False


def mirror(symmetry: Symmetry, variables: Sequence[Symbol]) -> Mirror | None:
    """The mirror that a symmetry is, if it is affine with rational coefficients and undoes itself."""
    image = Matrix([symmetry.image.get(v, v) for v in variables])
    slope = image.jacobian(Matrix(variables))
    offset = image.subs(dict.fromkeys(variables, S.Zero), simultaneous=True)
    one = eye(len(variables))
    if not all(entry.is_Rational for entry in (*slope, *offset)) or slope**2 != one or slope == one:
        return None
    moved = (slope - one).row_join(offset)
    rows = [moved.row(k) for k in moved.T.rref()[1]]
    even, odd = ([list(vector) for vector in (slope + sign * one).nullspace()] for sign in (-1, 1))
    return Mirror([(list(row[:-1]), ball_of(row[-1])) for row in rows], even, odd)


def resting(action: EffectiveAction, setup: Setup, place: Sequence[Rational]) -> Mirror | None:
    """What a branch that rests at ``place`` obeys, if the gradient is seen to vanish there whatever the control."""
    value, at = action.value.subs(setup.values), dict(zip(action.variables, place, strict=True))
    if any(value.diff(variable).subs(at).simplify() != 0 for variable in action.variables):
        return None
    reflected = value.subs({variable: 2 * x - variable for variable, x in at.items()}, simultaneous=True)
    units = [[S(int(i == k)) for i in range(len(place))] for k in range(len(place))]
    return Mirror(
        [(unit, -ball_of(x)) for unit, x in zip(units, place, strict=True)],
        [],
        units,
        (reflected - value).simplify() != 0,
    )


class Scene(NamedTuple):
    """What a claim is made of.

    The unknowns, the points, the control's name, by how much an observable exceeds its level, a mirror, and the column of
    the adjugate that null vectors are.
    """

    unknowns: Sequence[Ball]
    points: Sequence[Partials]
    control: str
    excess: Partials | None = None
    mirror: Mirror | None = None
    column: int = 0


def _positive(matrix: Sequence[Sequence[Ball]], sentence: str) -> Facts:
    for minor in _minors(matrix):
        yield sentence, minor


def _signed(value: Ball, above: str, below: str) -> tuple[str, Ball]:
    """The sentence that the sign of a ball's midpoint makes true, if it is the sign of the whole ball."""
    return (above, value) if value.mid() > 0 else (below, -value)


def _stiff(hessian: Square, column: int) -> list[list[Ball]]:
    return _values(_without(hessian, column, column))


def _spinodal(scene: Scene) -> Claim:
    (f,), j = scene.points, scene.column
    H = f.hessian

    def facts() -> Facts:
        v = [x.value for x in _null(H, j)]
        yield from _positive(_stiff(H, j), _OTHERS_POSITIVE)
        growth = -f.along(v, 3) * f.along(v, 1, f.n)
        ends = f"a minimum and the point that it meets are there {{}} this {scene.control} and not on the other side"
        yield _signed(growth, ends.format("above"), ends.format("below"))

    return Claim([*f.gradient, _determinant(H)], facts)


def _coexistence(scene: Scene) -> Claim:
    one, two = scene.points

    def facts() -> Facts:
        for f in scene.points:
            yield from _positive(f.bends, "both points are minima")
        lower = f"the first point is the lower one {{}} this {scene.control}: the transition is of first order"
        yield _signed(one.value(one.n) - two.value(two.n), lower.format("below"), lower.format("above"))

    return Claim([*one.gradient, *two.gradient, one.dual() + two.dual().times(-1)], facts)


def _fold(scene: Scene) -> Claim:
    """A spinodal whose two points are of any kind, as those of a potential are."""
    (f,), j = scene.points, scene.column
    H = f.hessian

    def facts() -> Facts:
        v = [x.value for x in _null(H, j)]
        ends = f"two solutions that meet are there {{}} this {scene.control} and not on the other side"
        slope = f.along(v, 1, f.n)
        yield _signed(-f.along(v, 3) * slope, ends.format("above"), ends.format("below"))

    return Claim([*f.gradient, _determinant(H)], facts)


def _equal(scene: Scene) -> Claim:
    """A coexistence of two points of any kind."""
    one, two = scene.points

    def facts() -> Facts:
        lower = f"the potential of the first is the lower one {{}} this {scene.control}"
        yield _signed(one.value(one.n) - two.value(two.n), lower.format("below"), lower.format("above"))

    return _coexistence(scene)._replace(facts=facts)


def _crossover(scene: Scene) -> Claim:
    (f,) = scene.points
    assert scene.excess is not None
    return Claim([*f.gradient, scene.excess.dual()], lambda: _positive(f.bends, "the point is a minimum"))


def _crossing(scene: Scene) -> Claim:
    """At a stationary point of any kind, as those of a potential are."""
    return _crossover(scene)._replace(facts=lambda: iter(()))


def _steepest(scene: Scene) -> Claim:
    (f,) = scene.points
    ss, sc = f.dual(0, 0), f.dual(0, 1)
    bend = f.dual(0, 0, 0) * sc * sc + (f.dual(0, 0, 1) * sc * ss).times(-2) + f.dual(0, 1, 1) * ss * ss
    return Claim([*f.gradient, bend], lambda: _positive(f.bends, "the point is a minimum"))


def _critical_end_point(scene: Scene) -> Claim:
    (f,), j, n = scene.points, scene.column, scene.points[0].n
    H = f.hessian
    v = _null(H, j)
    cubic = [f.dual(*index) * v[index[0]] * v[index[1]] * v[index[2]] for index in product(range(n), repeat=3)]

    def facts() -> Facts:
        vector = [x.value for x in v]
        yield from _positive(_stiff(H, j), _OTHERS_POSITIVE)
        quartic = f.along(vector, 4) - 3 * _relaxed(_stiff(H, j), _others(f.slopes_along(vector, 2), j))
        yield "the action grows with the fourth power along the vector of that one: the point is a minimum", quartic

    return Claim([*f.gradient, _determinant(H), _sum(cubic)], facts)


def _others(vector: Sequence[Ball], place: int) -> list[Ball]:
    return [x for i, x in enumerate(vector) if i != place]


def _relaxed(matrix: Sequence[Sequence[Ball]], force: Sequence[Ball]) -> Ball:
    """w H^-1 w."""
    if not matrix:
        return arb(0)
    answer = arb_mat(matrix).solve(arb_mat(len(force), 1, force)).entries()
    return sum((a * b for a, b in zip(force, answer, strict=True)), arb(0))


def _instability(scene: Scene) -> Claim:
    """On a branch that something keeps, the gradient across it vanishes by itself, and the Hessian across it is singular."""
    (f,), j, mirror = scene.points, scene.column, scene.mirror
    assert mirror is not None
    grad, H, none = f.gradient, f.hessian, [Dual(arb(0), tuple(arb(0) for _ in f.variables))]
    still = [
        Dual(_dot(row, scene.unknowns) + level, tuple(map(ball_of, (*row, S.Zero))))
        for row, level in mirror.constraints
    ]
    even = [_sum([g.times(ball_of(b)) for g, b in zip(grad, vector, strict=True)]) for vector in mirror.even]

    def block(basis: Sequence[Sequence[Rational]]) -> list[list[Dual]]:
        def entry(a: Sequence[Rational], b: Sequence[Rational]) -> Dual:
            return _sum(none + [H[i][k].times(ball_of(a[i] * b[k])) for i in range(f.n) for k in range(f.n)])

        return [[entry(a, b) for b in basis] for a in basis]

    odd = block(mirror.odd)

    def facts() -> Facts:
        v = _combined(mirror.odd, [x.value for x in _null(odd, j)])
        yield from _positive(_stiff(odd, j), _OTHERS_POSITIVE)
        yield from _positive(_values(block(mirror.even)), _OTHERS_POSITIVE)
        if mirror.lopsided:
            yield (
                "the cubic coefficient along the vector of that one is not zero: another branch crosses",
                abs(f.along(v, 3)),
            )
            return
        force = f.slopes_along(v, 2)
        quartic = f.along(v, 4) - 3 * _relaxed(_values(block(mirror.even)), [_dot(b, force) for b in mirror.even])
        order = (
            "the quartic coefficient of the action along the vector of that one is {}: the transition is of {} order"
        )
        yield _signed(quartic, order.format("positive", "second"), order.format("negative", "first"))

    return Claim([*still, *even, _determinant(odd)], facts)


def _dot(row: Sequence[Rational], vector: Sequence[Ball]) -> Ball:
    return sum((ball_of(a) * b for a, b in zip(row, vector, strict=False)), arb(0))


def _combined(basis: Sequence[Sequence[Rational]], weights: Sequence[Ball]) -> list[Ball]:
    return [
        sum((ball_of(vector[i]) * w for vector, w in zip(basis, weights, strict=True)), arb(0))
        for i in range(len(basis[0]))
    ]


@dataclass(frozen=True)
class Kind:
    """The equations in words, how many points, which derivatives, the claim; whether the size is an unknown and H singular."""

    text: str
    points: int
    blocks: Callable[[int], Blocks]
    claim: Callable[[Scene], Claim]
    sized: bool = False
    soft: bool = False


def _up_to(order: int, sized: bool = False) -> Callable[[int], Blocks]:
    def blocks(n: int) -> Blocks:
        size = (((n + 1,), order - 1),) if sized else ()
        return ((), order), ((n,), order - 1), *size

    return blocks


OF_SOLUTIONS: Mapping[str, str] = {
    "observable-crossing": "observable-crossing",
    "spinodal": "fold",
    "coexistence": "equal-potentials",
}
"""What is proven of the transitions of a state evolution, whose solutions are no minima of its potential."""
LEVELS = ("crossover", "observable-crossing")
"""Kinds of transitions at which an observable is at a level."""
KINDS: Mapping[str, Kind] = {
    "spinodal": Kind("grad F = 0, det H = 0", 1, _up_to(3), _spinodal, soft=True),
    "fold": Kind("grad F = 0, det H = 0", 1, _up_to(3), _fold, soft=True),
    "coexistence": Kind("grad F = 0 at both points, F is the same at both", 2, _up_to(2), _coexistence),
    "equal-potentials": Kind("grad F = 0 at both solutions, F is the same at both", 2, _up_to(2), _equal),
    "crossover": Kind("grad F = 0, {via} is at its crossover level", 1, _up_to(2), _crossover),
    "observable-crossing": Kind("grad F = 0, {via} is at its level", 1, _up_to(2), _crossing),
    "steepest": Kind(
        "F' = 0, the slope of the order parameter against the control is extreme",
        1,
        lambda n: (((), 4), ((n,), 3), ((n, n), 2), ((n, n, n), 1)),
        _steepest,
    ),
    "critical-end-point": Kind(
        "grad F = 0, det H = 0, the third derivative along the null vector of H is 0",
        1,
        _up_to(4, sized=True),
        _critical_end_point,
        sized=True,
        soft=True,
    ),
    "instability": Kind("the branch is kept by {via}; grad F = 0, det H = 0", 1, _up_to(4), _instability, soft=True),
}
