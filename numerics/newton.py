r"""Newton's method at any precision, with a certificate, and the small linear algebra it needs.

.. math:: x \leftarrow x - G'(x)^{-1} G(x)

A root is accepted only if the steps contract quadratically, the residual is small, and a second, higher working
precision gives the same digits. Pros: N digits cost a few evaluations, whatever N; the error bound comes from the
Jacobian and from the second precision, not from the last step. Cons: needs a start inside the basin, and a regular root:
where the Jacobian is singular the steps shrink only linearly, which is reported as degenerate, never as a root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import mpmath
from mpmath import mpf

from numerics.points import Status

__all__ = [
    "RESOLUTION",
    "Matrix",
    "Run",
    "SingularError",
    "Solution",
    "System",
    "Vector",
    "determinant",
    "dot",
    "eigen",
    "kernel",
    "linear_solve",
    "negative_eigenvalues",
    "newton",
    "norm",
    "refine",
]

Vector = list[mpf]
Matrix = list[list[mpf]]
System = Callable[[Sequence[mpf]], tuple[Vector, Matrix]]
"""A map from unknowns to residuals and their exact Jacobian, at the caller's working precision."""

RESOLUTION = 22
"""The digits to which starts of Newton's method are known, unless they have to be told apart on a smaller scale."""

_GUARD = 8
_STEPS = 40
_MOST_DPS = 8000
_NUDGE = mpf(2) ** -10


class SingularError(ArithmeticError):
    """The matrix is singular to working precision."""


def dot(a: Sequence[mpf], b: Sequence[mpf]) -> mpf:
    return sum((x * y for x, y in zip(a, b, strict=True)), mpf(0))


def norm(a: Sequence[mpf]) -> mpf:
    return mpmath.sqrt(dot(a, a))


def linear_solve(matrix: Matrix, right: Vector) -> Vector:
    """Solve a small square system by elimination with scaled partial pivoting; raises `SingularError`."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    _eliminate(rows)
    size = len(rows)
    solution = [mpf(0)] * size
    for i in reversed(range(size)):
        known = sum((rows[i][j] * solution[j] for j in range(i + 1, size)), mpf(0))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution


def _eliminate(rows: Matrix) -> int:
    """Bring square ``rows`` (with any further columns) to triangular form in place; return the sign of the swaps."""
    size, sign = len(rows), 1
    weights = [max(abs(x) for x in row[:size]) for row in rows]
    if not all(mpmath.isfinite(weight) and weight > 0 for weight in weights):
        raise SingularError("a row of the matrix vanishes or is not finite")
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]) / weights[k])
        if rows[pivot][i] == 0:
            raise SingularError("the matrix is singular")
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            weights[i], weights[pivot] = weights[pivot], weights[i]
            sign = -sign
        for row in rows[i + 1 :]:
            factor = row[i] / rows[i][i]
            if factor:
                for j in range(i, len(row)):
                    row[j] -= factor * rows[i][j]
    return sign


def determinant(matrix: Matrix) -> mpf:
    """The determinant of a small square matrix."""
    if len(matrix) == 1:
        return matrix[0][0]
    if len(matrix) == 2:
        return matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0]
    rows = [list(row) for row in matrix]
    try:
        product = mpf(_eliminate(rows))
    except SingularError:
        return mpf(0)
    for i, row in enumerate(rows):
        product *= row[i]
    return product


def kernel(matrix: Matrix) -> Vector:
    """The unit vector that an m x (m+1) matrix of full rank maps to zero, by its maximal minors; m is small."""
    columns = len(matrix) + 1
    minors = [determinant([[x for j, x in enumerate(row) if j != k] for row in matrix]) for k in range(columns)]
    vector = [minor if k % 2 == 0 else -minor for k, minor in enumerate(minors)]
    length = norm(vector)
    if length == 0 or not mpmath.isfinite(length):
        raise SingularError("the curve has no unique tangent")
    return [x / length for x in vector]


def negative_eigenvalues(matrix: Matrix) -> int:
    """How many eigenvalues of a symmetric matrix are negative, by the signs of its leading minors."""
    minors = [determinant([row[:k] for row in matrix[:k]]) for k in range(1, len(matrix) + 1)]
    if any(minor == 0 for minor in minors):
        return sum(value < 0 for value in eigen(matrix)[0])
    signs = [True, *(minor > 0 for minor in minors)]
    return sum(a != b for a, b in pairwise(signs))


def eigen(matrix: Matrix) -> tuple[Vector, list[Vector]]:
    """Eigenvalues, ascending, and unit eigenvectors of a small symmetric matrix, by Jacobi rotations."""
    size = len(matrix)
    a = [list(row) for row in matrix]
    vectors = [[mpf(i == j) for j in range(size)] for i in range(size)]
    for _ in range(30 + int(mpmath.log(mpmath.mp.prec, 2))):
        pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if a[i][j] != 0]
        big = max((abs(x) for row in a for x in row), default=mpf(0))
        if all(abs(a[i][j]) <= big * mpmath.eps**2 for i, j in pairs):
            break
        for i, j in pairs:
            _rotate(a, vectors, i, j)
    order = sorted(range(size), key=lambda k: a[k][k])
    return [a[k][k] for k in order], [[vectors[i][k] for i in range(size)] for k in order]


def _rotate(a: Matrix, vectors: Matrix, i: int, j: int) -> None:
    if a[i][j] == 0:
        return
    slope = (a[j][j] - a[i][i]) / (2 * a[i][j])
    tangent = (mpf(1) if slope >= 0 else mpf(-1)) / (abs(slope) + mpmath.sqrt(slope * slope + 1))
    cosine = 1 / mpmath.sqrt(tangent * tangent + 1)
    sine = tangent * cosine
    for k in range(len(a)):
        a[k][i], a[k][j] = cosine * a[k][i] - sine * a[k][j], sine * a[k][i] + cosine * a[k][j]
        vectors[k][i], vectors[k][j] = (
            cosine * vectors[k][i] - sine * vectors[k][j],
            sine * vectors[k][i] + cosine * vectors[k][j],
        )
    for k in range(len(a)):
        a[i][k], a[j][k] = cosine * a[i][k] - sine * a[j][k], sine * a[i][k] + cosine * a[j][k]


@dataclass(frozen=True)
class Solution:
    """A root with an error bound for each unknown; ``dps`` is the higher of the two working precisions compared."""

    values: tuple[mpf, ...]
    errors: tuple[mpf, ...]
    status: Status
    dps: int

    @property
    def found(self) -> bool:
        return self.status in (Status.OK, Status.DIGITS)


@dataclass(frozen=True)
class Run:
    """Newton's method at one precision: where it ended, the size of its last step per unknown, and why it ended."""

    values: Vector
    step: Vector
    status: Status


def refine(
    system: System, start: Sequence[mpf], digits: int, scales: Sequence[mpf], known: int = RESOLUTION
) -> Solution:
    """Polish ``start`` until two working precisions agree to ``digits`` digits in every unknown.

    ``scales`` give the size of each unknown in the problem; steps are measured against it where an unknown is near zero.
    The start is ``known`` to so many digits: no fewer are carried, for other roots may lie as near.
    Below ``least`` digits the system is known to be noise.
    The status is `DEGENERATE` where the steps shrink only linearly, `DIVERGED` where they do not shrink or the residual
    stays, `DIGITS` where the precision ladder ended before the digits were reached.
    """
    for factor in (1, 4, 16):  # where terms cancel, steps shrink only at a precision that resolves what is left
        solution = _refined(system, start, factor * (known + _GUARD), digits, scales)
        if solution.status is not Status.DIVERGED:
            break
    return solution


def _refined(system: System, start: Sequence[mpf], first: int, digits: int, scales: Sequence[mpf]) -> Solution:
    with mpmath.workdps(first):
        run = newton(system, list(start), scales)
    if run.status is not Status.OK:
        return _failed(run, scales, first)
    dps = max(digits + 12, first)
    coarse = _climb(system, run, first, dps, scales)
    while True:
        higher = dps + max(15, dps // 4)
        fine = _climb(system, coarse, dps, higher, scales)
        if fine.status is not Status.OK:
            return _failed(fine, scales, higher)
        solution = _compare(coarse, fine, digits, higher)
        if solution.status is Status.OK and not _returns(system, solution, scales):
            return _failed(replace(fine, status=Status.DIVERGED), scales, higher)
        if solution.status is Status.OK or higher > _MOST_DPS + 8 * digits:
            return solution
        dps, coarse = higher, fine


def _climb(system: System, run: Run, dps: int, target: int, scales: Sequence[mpf]) -> Run:
    """Double the precision from ``dps`` up to ``target``, Newton at each."""
    while dps < target and run.status is Status.OK:
        dps = min(2 * dps, target)
        with mpmath.workdps(dps):
            run = newton(system, run.values, scales)
    return run


def _compare(coarse: Run, fine: Run, digits: int, dps: int) -> Solution:
    with mpmath.workdps(dps):
        errors = [abs(a - b) + 2 * step for a, b, step in zip(fine.values, coarse.values, fine.step, strict=True)]
        wanted = mpf(10) ** (-digits - 2)
        agree = all(error <= abs(x) * wanted for x, error in zip(fine.values, errors, strict=True))
    return Solution(tuple(fine.values), tuple(errors), Status.OK if agree else Status.DIGITS, dps)


def _failed(run: Run, scales: Sequence[mpf], dps: int) -> Solution:
    """Where steps that shrink linearly ended, within a few of them; else nothing is known, however short the last step."""
    sizes = [max(abs(x), scale) for x, scale in zip(run.values, scales, strict=True)]
    errors = run.step if run.status is Status.DEGENERATE else sizes
    return Solution(tuple(run.values), tuple(errors), run.status, dps)


def _returns(system: System, solution: Solution, scales: Sequence[mpf]) -> bool:
    """Whether Newton's method comes back to a root from right beside it.

    Near one that is flat to all orders its steps are small at once, at any precision, and stay so.
    """
    with mpmath.workdps(solution.dps):
        shift = mpf(10) ** (-2 * solution.dps // 5)
        try:
            after, _ = _step(system, [x * (1 + shift) for x in solution.values])
        except ArithmeticError:
            return False
        triples = zip(after, solution.values, scales, strict=True)
        return all(abs(a - x) <= max(abs(x), scale) * shift / 8 for a, x, scale in triples)


def newton(system: System, start: Sequence[mpf], scales: Sequence[mpf], reach: Sequence[mpf] | None = None) -> Run:
    """Iterate at the current precision until the step is at the rounding level, or until it is clear that it never is.

    Steps far longer than ``reach``, which is ``scales`` if not given, end it.
    """
    longest = [10**6 * side for side in (scales if reach is None else reach)]
    sizes: list[mpf] = []
    x, step = [+value for value in start], [mpf(0)] * len(start)
    tight, loose = mpmath.eps * 2**6, mpmath.sqrt(mpmath.eps) / 2**10
    for _ in range(_STEPS):
        try:
            residual, jacobian = system(x)
            if all(value == 0 for value in residual) and determinant(jacobian) == 0:
                return Run(x, [mpf(0)] * len(x), Status.DEGENERATE)
            move = linear_solve(jacobian, residual)
        except ArithmeticError:
            return Run(x, step, Status.DIVERGED if not sizes or sizes[-1] > loose else Status.DEGENERATE)
        step = [abs(value) for value in move]
        relative = max(s / max(abs(v), scale) for s, v, scale in zip(step, x, scales, strict=True))
        x = [value - shift for value, shift in zip(x, move, strict=True)]
        sizes.append(relative)
        if not mpmath.isfinite(relative) or any(s > most for s, most in zip(step, longest, strict=True)):
            return Run(x, step, Status.DIVERGED)
        # Rounding noise: the step is small and no longer contracts as Newton's does far from rounding.
        if relative <= tight or (relative < loose and len(sizes) > 1 and sizes[-2] < 4 * relative):
            if not _residual_is_small(residual, jacobian, x, scales):
                return Run(x, step, Status.DIVERGED)
            try:
                return _settle(system, x, step, [scale * loose for scale in scales])
            except ArithmeticError:  # the Jacobian is singular at the root itself
                return Run(x, step, Status.DEGENERATE)
        if len(sizes) > 8 and all(b > a / 4 for a, b in zip(sizes[-6:-1], sizes[-5:], strict=True)):
            shrinking = all(b < a * mpf("0.9") for a, b in zip(sizes[-6:-1], sizes[-5:], strict=True))
            return Run(x, step, Status.DEGENERATE if shrinking and relative < mpf("0.1") else Status.DIVERGED)
    return Run(x, step, Status.DIVERGED)


def _settle(system: System, x: Vector, step: Vector, small: Sequence[mpf]) -> Run:
    """Tell unknowns that are tiny from unknowns that are zero up to rounding, and set the latter to zero.

    A tiny unknown is known to many digits all the same: moved by a thousandth, it is moved back by a thousandth.
    """
    for _ in range(4):
        tiny = [abs(value) < bound for value, bound in zip(x, small, strict=True)]
        if not any(t and s > abs(v) * _NUDGE**2 for t, s, v in zip(tiny, step, x, strict=True)):
            break
        x, move = _step(system, x)
        step = [abs(value) for value in move]
    if any(tiny):
        nudged = [v * (1 + _NUDGE) if t else v for t, v in zip(tiny, x, strict=True)]
        back = [shift - (n - v) for shift, n, v in zip(_step(system, nudged)[1], nudged, x, strict=True)]
        zero = [t and abs(b) > abs(v) * _NUDGE / 8 for t, b, v in zip(tiny, back, x, strict=True)]
        x = [mpf(0) if z else v for z, v in zip(zero, x, strict=True)]
        step = [mpf(0) if z else s for z, s in zip(zero, step, strict=True)]
    return Run(x, step, Status.OK)


def _step(system: System, x: Vector) -> tuple[Vector, Vector]:
    """The point after one Newton step from ``x``, and the move that was subtracted."""
    residual, jacobian = system(x)
    move = linear_solve(jacobian, residual)
    return [value - shift for value, shift in zip(x, move, strict=True)], move


def _residual_is_small(residual: Vector, jacobian: Matrix, x: Vector, scales: Sequence[mpf]) -> bool:
    """Whether each residual is small against the terms that its row of the Jacobian says it is made of."""
    tolerance = mpmath.sqrt(mpmath.eps)
    for value, row in zip(residual, jacobian, strict=True):
        size = sum((abs(a) * max(abs(b), scale) for a, b, scale in zip(row, x, scales, strict=True)), mpf(0))
        if abs(value) > tolerance * size:
            return False
    return True
