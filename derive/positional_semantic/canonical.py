r"""The potential in overlaps that differ: tokens of one covariance share theirs, and rotations of Q and Q* are used up.

.. math:: q_l = q_{k(l)}, \quad V_l = V_{k(l)}, \quad \theta_l = \theta_{k(l)}, \quad m_l = \sum_j B_{lj} m_j, \qquad
          \hat q_l = \hat q_{k(l)}/n_k, \; \ldots, \quad \hat m_l = \sum_j [B (B^T B)^{-1}]_{lj} \hat m_j

k(l) is the class of the tokens with the covariance of l, of size n_k, and the columns of B span the range of the Gram
matrices of the p_l and Q*: that holds of the overlaps of any Q. Conjugates enter in these combinations only. The loss is a
function of Z Z^T and Y Y^T, so Q may be rotated until the matrix of the m_j is lower triangular (QR), and Q*, where its
Gram matrices allow, until theta is.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import combinations, product

from sympy import Expr, Rational, S, Symbol

from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, potential, ridge
from derive.positional_semantic.fields import random_fields
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.positional_semantic.overlaps import Overlaps, conjugates, fields, overlaps, paired, rectangular, symmetric
from derive.positional_semantic.potential import tidy

__all__ = ["STEPS", "classes", "is_diagonal", "of_classes", "off_diagonal", "pairs", "place"]


def classes(model: Model) -> list[list[int]]:
    """The tokens grouped by their covariances."""
    groups: dict[tuple[Expr, ...], list[int]] = {}
    for token in range(model.length):
        groups.setdefault(tuple(space.eigenvalues[token] for space in model.spaces), []).append(token)
    return list(groups.values())


def basis(model: Model) -> Matrix:
    """B (L x J): orthogonal columns that span the range of the positions' Gram matrices, each with a leading one."""
    reach = Matrix.hstack(*(Matrix.hstack(space.positions, space.cross) for space in model.spaces))
    columns = Matrix.orthogonalize(*reach.columnspace())
    return Matrix.hstack(*(column / next(entry for entry in column if entry != 0) for column in columns))


def rotates_teacher(model: Model) -> bool:
    """Whether rotations of Q* leave the model as it is: Q*^T Q* a multiple of 1 and no position along Q* anywhere."""
    one = Matrix.eye(model.teacher_rank)
    return all(space.cross.is_zero_matrix and space.teacher == space.teacher[0, 0] * one for space in model.spaces)


def _lower(matrix: Matrix) -> Matrix:
    return Matrix(matrix.rows, matrix.cols, lambda i, j: matrix[i, j] if j <= i else S.Zero)


def of_classes(model: Model, suffix: str = "") -> list[Overlaps]:
    """The overlaps of every class; m, the matrix of all m_j (J x r_s), stands with the first."""
    s, t, groups = model.student_rank, model.teacher_rank, classes(model)
    found = []
    for k in range(len(groups)):
        name = f"{suffix}_{k + 1}" if len(groups) > 1 else suffix
        m = _lower(rectangular(f"m{suffix}", basis(model).cols, s)) if k == 0 else Matrix.zeros(0, s)
        theta = rectangular(f"theta{name}", s, t)
        rotated = k == 0 and rotates_teacher(model)
        found.append(
            Overlaps(symmetric(f"q{name}", s), symmetric(f"V{name}", s), m, _lower(theta) if rotated else theta)
        )
    return found


def pairs(model: Model) -> list[tuple[str, Symbol, Symbol]]:
    """(q, V, m or theta; overlap; the conjugate it multiplies) for every overlap that is left."""
    whole = paired(of_classes(model, ""), of_classes(model, "hat"))
    return [entry for entry in whole if entry[1] != 0]


def off_diagonal(model: Model) -> set[Symbol]:
    """The overlaps off the diagonals of their matrices; a row of m beyond the last column is not one of these."""
    size = model.student_rank
    matrices = [part for token in of_classes(model, "") for part in (token.q, token.V, token.m[:size, :], token.theta)]
    return {part[i, j] for part in matrices for i in range(part.rows) for j in range(part.cols) if i != j} - {S.Zero}


def place(model: Model) -> dict[Symbol, Expr]:
    """The overlaps and conjugates of every token, in those that are left."""
    B, values = basis(model), dict[Symbol, Expr]()
    dual = B * (B.T * B).inv()
    for tokens, named, rows, shared in (
        (overlaps(model), of_classes(model, ""), B, False),
        (conjugates(model), of_classes(model, "hat"), dual, True),
    ):
        for kind, group in zip(named, classes(model), strict=True):
            part = Rational(1, len(group)) if shared else S.One
            for token in group:
                for old, new in (("q", kind.q), ("V", kind.V), ("theta", kind.theta)):
                    values |= dict(zip(getattr(tokens[token], old), part * new, strict=True))
                values |= dict(zip(tokens[token].m, rows[token, :] * named[0].m, strict=True))
    return values


def canonical_potential(model: Model, potential: Expr) -> Expr:
    """The potential at overlaps that some Q has, and conjugates that share what only their sums decide."""
    return tidy(potential.xreplace(place(model)))


def is_diagonal(model: Model, positions: bool) -> bool:
    """Whether solutions with diagonal matrices stay so, without or with ``positions`` (m) among them.

    A sign of one column of Q and Q* keeps the law. It turns the m_j of that column around, and where there is one on the
    diagonal, but for the first, an exchange of two tokens has to turn that one back, and no other.
    """
    rows, columns = basis(model).cols, model.student_rank
    if not rotates_teacher(model) or (positions and rows > columns > 1):
        return False
    exchanges = list(combinations(range(model.length), 2))
    turned = range(1, min(rows, columns)) if positions else ()
    return all(any(_reflects(model, *two, column) for two in exchanges) for column in turned)


def _reflects(model: Model, one: int, two: int, column: int) -> bool:
    """Whether the exchange of two tokens keeps the model, and all columns of B but for the sign of one."""
    order, B = list(range(model.length)), basis(model)
    order[one], order[two] = two, one
    turned = B * Matrix.diag(*(-1 if j == column else 1 for j in range(B.cols)))
    kept = all(
        space.positions.extract(order, order) == space.positions and space.eigenvalues[one] == space.eigenvalues[two]
        for space in model.spaces
    )
    return kept and model.target.extract(order, order) == model.target and B.extract(order, range(B.cols)) == turned


# --- checks ---


def _redundant_claim(derivation: Derivation) -> Iterable[Comparison]:
    """What slopes in the conjugates, at any of them, demand of the overlaps: the same in a class, and of m to lie in B."""
    model, whole, B = derivation.model, derivation.value("potential"), basis(derivation.model)
    out = Matrix.eye(model.length) - B * B.pinv()
    outside = Matrix.hstack(*(out * part for space in model.spaces for part in (space.positions, space.cross)))
    yield "Gram matrices in the range of B", outside, (0,) * len(outside)
    for seed in (1, 2):
        draw = random.Random(seed)
        values = {**instances.parameters(model, seed), alpha: S(2)}
        values |= {name: instances.rational(draw) for _, *both in potential.pairs(model) for name in both}
        values |= {hat.V[a, a]: S(3 + a) for hat in conjugates(model) for a in range(model.student_rank)}
        demands = {}
        for _, overlap, conjugate in potential.pairs(model):
            slope = whole.diff(conjugate)
            demands[overlap] = values[overlap] - (slope / slope.diff(overlap)).xreplace(values)
        tokens = [token for group in classes(model) for token in group[1:]]
        first = {token: group[0] for group in classes(model) for token in group}
        for token, name in product(tokens, ("q", "V", "theta")):
            pair = (getattr(overlaps(model)[place], name) for place in (first[token], token))
            for one, other in zip(*pair, strict=True):
                yield f"{other} and {one}, instance {seed}", demands[other], demands[one]
        m = Matrix([[demands[name] for name in token.m] for token in overlaps(model)])
        yield f"m out of the range, instance {seed}", out * m, (0,) * len(m)


def _slope_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss: value and slopes against those of the potential of every token, by the chain rule."""
    model, there = derivation.model, place(derivation.model)
    chain = ridge.with_loss(derivation, ridge.quadratic_loss(model))
    whole, ours = chain.value("potential"), chain.value("canonical potential")
    draw = random.Random(1)
    values = {**instances.parameters(model, 1), alpha: S(2)}
    values |= {name: instances.rational(draw) for _, *both in pairs(model) for name in both}
    diagonal = {part[a, a] for token in of_classes(model, "") for part in (token.q, token.V) for a in range(part.rows)}
    diagonal |= {hat.V[a, a] for hat in of_classes(model, "hat") for a in range(hat.V.rows)}
    values |= {name: S(3 + order) for order, name in enumerate(sorted(diagonal, key=str))}
    full = {**instances.parameters(model, 1), alpha: S(2)}
    full |= {name: value.xreplace(values) for name, value in there.items()}
    yield "value", instances.closed(ours.xreplace(values)), instances.closed(whole.xreplace(full))
    slopes = {name: instances.closed(whole.diff(name).xreplace(full)) for name in there}
    for _, *both in pairs(model):
        for name in both:
            total = sum((slopes[old] * value.diff(name) for old, value in there.items()), S.Zero)
            yield f"slope in {name}", instances.closed(ours.diff(name).xreplace(values)), total


def _rotation_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The loss of a sample does not change when the fields are rotated (for a single one: change their sign)."""
    model, loss = derivation.model, derivation.value("sufficient loss")
    known = instances.parameters(model, 1)
    for name, rank in (("z", model.student_rank), ("Y", model.teacher_rank)):
        values, turn = random_fields(model, 1), Matrix.diag(-1, *([1] * (rank - 1))).as_mutable()
        for a in range(rank - 1):
            step = Matrix.eye(rank).as_mutable()
            step[a : a + 2, a : a + 2] = Matrix([[3, -4], [4, 3]]) / 5
            turn = turn * step
        names = fields(name, model.length, rank)
        turned = {**values, **dict(zip(names, names.xreplace(values) * turn, strict=True))}
        yield f"fields {name}", loss.xreplace({**known, **turned}), loss.xreplace({**known, **values})


STEPS = (
    Step(
        "canonical potential",
        Symbol("e"),
        canonical_potential,
        "Tokens with one covariance have the same q, V and theta, and the m_l lie in the range of the Gram matrices;"
        " conjugates enter in the corresponding sums. Rotations of Q and Q* leave the loss as it is: they make the"
        " matrices of m and theta lower triangular.",
        takes=("potential",),
        checks=(
            Check("slopes of the potential in all conjugates, at any of them", "exact", _redundant_claim),
            Check("value and slopes against the potential of every token", "exact", _slope_claim),
            Check("the loss at rotated fields", "numeric", _rotation_claim),
        ),
    ),
)
