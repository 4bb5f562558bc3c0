r"""Positional and semantic learning: one head of tied low-rank dot-product attention and a teacher of the same kind.

.. math:: \mathcal{L}(Q) = \sum_{\mu=1}^n \frac{\kappa}{d} |y^\mu - f(x^\mu)|^2 + \frac{\lambda}{2} |Q|^2,
          \qquad f(x) = S(Z Z^T) (x + p), \quad y = [(1-\omega)\, S(Y Y^T) + \omega A]\, x

with kappa = 1/2, S the row-softmax, Z = (x + p) Q/sqrt d and Y = x Q*/sqrt d. The L tokens are independent,
x_l ~ N(0, Sigma_l) in R^d with commuting covariances; |p_l| is of order one, |Q*|^2 of order d. The limit is n, d to
infinity at alpha = n/d. Source: arXiv 2402.03902, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, Rational, S, Symbol, exp
from sympy.matrices import ImmutableDenseMatrix as Matrix

from derive.action import Parameter

__all__ = [
    "CONTROL",
    "DEFAULT",
    "Eigenspace",
    "Matrix",
    "Model",
    "alpha",
    "equal_target",
    "isotropic",
    "lambda_",
    "omega",
    "sigma",
]

alpha = Symbol("alpha", positive=True)
omega = Symbol("omega", nonnegative=True)
sigma = Symbol("sigma", positive=True)
lambda_ = Symbol("lambda", positive=True)

CONTROL = Parameter(alpha, "number of training samples per dimension")
_KNOWN = {
    omega: Parameter(omega, "share of the fixed matrix A in the teacher", Rational(3, 10), strict=False, upper=S.One),
    sigma: Parameter(sigma, "standard deviation of the tokens", Rational(1, 2)),
    lambda_: Parameter(lambda_, "ridge", Rational(1, 100)),
}


def row_softmax(scores: Matrix) -> Matrix:
    """Each row as exp(s_b)/sum_c exp(s_c), written with differences of scores only."""

    def entry(a: int, b: int) -> Expr:
        return 1 / sum((exp(scores[a, c] - scores[a, b]) for c in range(scores.cols)), S.Zero)

    return Matrix(scores.rows, scores.cols, entry)


@dataclass(frozen=True)
class Eigenspace:
    """A common eigenspace of the token covariances: its share of the dimensions and what lies in it.

    ``eigenvalues`` holds one for each token, ``positions`` the Gram matrix p_l . p_l' (L x L), ``teacher``
    Q*^T Q*/d (r_t x r_t) and ``cross`` p_l^T Q*/sqrt d (L x r_t), all of the components in this space.
    """

    weight: Expr
    eigenvalues: tuple[Expr, ...]
    positions: Matrix
    teacher: Matrix
    cross: Matrix


def closing(length: int, row: int) -> int:
    """The column whose entry is what the others leave of the row sum: the last one off the diagonal."""
    return length - 1 if row != length - 1 else length - 2


def target_matrix(length: int) -> Matrix:
    """A with symbols for its entries, rows summing to one."""

    def entry(a: int, b: int) -> Expr:
        free = [column for column in range(length) if column != closing(length, a)]
        names = {column: Symbol(f"A_{a + 1}{column + 1}", nonnegative=True) for column in free}
        return names.get(b, 1 - sum(names.values(), S.Zero))

    return Matrix(length, length, entry)


def equal_target(length: int) -> Matrix:
    """A with one symbol on its diagonal and the rest of each row spread evenly: all tokens are alike."""
    own = Symbol("A_11", nonnegative=True)
    return Matrix(length, length, lambda a, b: own if a == b else (1 - own) / (length - 1))


@dataclass(frozen=True)
class Model:
    """What defines the model; change it here and every later expression follows.

    ``length`` L, ``student_rank`` r_s and ``teacher_rank`` r_t are the sizes; ``loss_factor`` multiplies |y - f|^2/d,
    ``decay`` is twice the factor of |Q|^2, ``mixing`` the share of ``target`` = A in the teacher, ``attention`` maps
    the scores Z Z^T to the attention matrix. Rows of ``attention`` and ``target`` sum to one. Raises `ValueError` where
    the sizes do not fit or a row of A does not sum to one.
    """

    length: int
    student_rank: int
    teacher_rank: int
    target: Matrix
    spaces: tuple[Eigenspace, ...]
    loss_factor: Expr = Rational(1, 2)
    decay: Expr = lambda_
    mixing: Expr = omega
    attention: Callable[[Matrix], Matrix] = row_softmax

    def __post_init__(self) -> None:
        L, r = self.length, self.teacher_rank
        if L < 2 or self.student_rank < 1 or r < 1:
            raise ValueError("attention needs at least two tokens and ranks of at least one")
        if self.target.shape != (L, L):
            raise ValueError(f"A is {self.target.rows} x {self.target.cols}; for {L} tokens it must be {L} x {L}")
        for a in range(L):
            total = sum(self.target.row(a), S.Zero).expand()
            if total != 1:
                raise ValueError(f"row {a + 1} of A sums to {total}, not to 1")
        for space in self.spaces:
            shapes = (space.positions.shape, space.teacher.shape, space.cross.shape)
            if len(space.eigenvalues) != L or shapes != ((L, L), (r, r), (L, r)):
                raise ValueError(f"an eigenspace does not fit {L} tokens and a teacher of rank {r}: {shapes}")
        if sum((space.weight for space in self.spaces), S.Zero).expand() != 1:
            raise ValueError("the weights of the eigenspaces do not sum to 1")

    @property
    def token_variances(self) -> tuple[Expr, ...]:
        """tr Sigma_l/d."""
        return tuple(
            sum((space.weight * space.eigenvalues[token] for space in self.spaces), S.Zero)
            for token in range(self.length)
        )

    @property
    def teacher_variances(self) -> tuple[Matrix, ...]:
        """rho_l = Q*^T Sigma_l Q*/d."""
        size = self.teacher_rank
        return tuple(
            sum((space.eigenvalues[token] * space.teacher for space in self.spaces), Matrix.zeros(size, size))
            for token in range(self.length)
        )

    def teacher_attention(self, fields: Matrix) -> Matrix:
        """T(Y) = (1 - omega) S(Y Y^T) + omega A."""
        return (1 - self.mixing) * self.attention(fields * fields.T) + self.mixing * self.target

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The symbols of the model as parameters, A with the default 3/5 on its diagonal and the rest spread evenly."""
        held = {self.decay, self.mixing, self.loss_factor, *self.target, *self.token_variances}
        held |= {entry for rho in self.teacher_variances for entry in rho}
        for space in self.spaces:
            held |= {*space.positions, *space.teacher, *space.cross, *space.eigenvalues, space.weight}
        symbols = set().union(*(entry.free_symbols for entry in held))
        known = [parameter for symbol, parameter in _KNOWN.items() if symbol in symbols]
        rest = sorted(symbols - _KNOWN.keys(), key=lambda symbol: str(symbol.name))
        return (*known, *(self._further(symbol) for symbol in rest))

    def _further(self, symbol: Symbol) -> Parameter:
        for a in range(self.length):
            for b in range(self.length):
                if self.target[a, b] == symbol:
                    default = Rational(3, 5) if a == b else Rational(2, 5) / (self.length - 1)
                    return Parameter(symbol, f"entry {a + 1}, {b + 1} of A", default, strict=False, upper=S.One)
        return Parameter(symbol, "further parameter of the model")


def isotropic(length: int = 2, student_rank: int = 1, teacher_rank: int = 1) -> Model:
    """All tokens with covariance sigma^2 1; unit position vectors that sum to zero; Q*^T Q* = d 1, orthogonal to them."""
    simplex = (length * Matrix.eye(length) - Matrix.ones(length, length)) / (length - 1)
    space = Eigenspace(
        weight=S.One,
        eigenvalues=(sigma**2,) * length,
        positions=simplex,
        teacher=Matrix.eye(teacher_rank),
        cross=Matrix.zeros(length, teacher_rank),
    )
    return Model(length, student_rank, teacher_rank, target_matrix(length), (space,))


DEFAULT = isotropic()
