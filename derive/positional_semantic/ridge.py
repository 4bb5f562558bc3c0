r"""Ridge regression, which the theory becomes with a quadratic loss, solved by its deterministic equivalent.

.. math:: g(z; Y) = \kappa \sum_l |z_l - W Y_l - b_l|^2 \;\Rightarrow\; e = \min_Q \Bigl\{ \tfrac{\lambda}{2d} |Q|^2
          + \tfrac12 \sum_l \hat V_l \bigl[ \tfrac1d |\Sigma_l^{1/2} (Q - Q^* W^T)|^2 + |p_l^T Q/\sqrt d - b_l|^2 \bigr] \Bigr\}

The widths solve V_l = sum_k w_k lam_lk R_k with R_k = 1/(lambda + sum_l lam_lk Vhat_l) and Vhat_l = 2 kappa alpha/(1 +
2 kappa V_l), the equation of Marchenko and Pastur; the rest is linear algebra. No replica is in sight, which makes it the
test of the whole chain.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import mpmath
from sympy import Expr, Rational, S, Symbol

from derive.derivation import Derivation
from derive.positional_semantic.instances import Values, Vectors, number, parameters, rational, vectors
from derive.positional_semantic.model import Matrix, Model, alpha
from derive.positional_semantic.overlaps import conjugates, fields, overlaps

__all__ = ["Ridge", "quadratic_loss", "solved", "target", "with_loss"]

_Row = list[mpmath.mpf]
_Matrices = list[mpmath.matrix]


def quadratic_loss(model: Model) -> Expr:
    """The stand-in for the loss; it is symmetric under the exchange of two tokens."""
    W, b = target(model)
    student = fields("z", model.length, model.student_rank)
    teacher = fields("Y", model.length, model.teacher_rank)
    return model.loss_factor * sum((entry**2 for entry in student - teacher * W.T - b), S.Zero)


def target(model: Model) -> tuple[Matrix, Matrix]:
    """W (r_s x r_t) and the rows b_l, which sum to zero."""
    draw = random.Random(0)
    W = Matrix(model.student_rank, model.teacher_rank, lambda *_: rational(draw))
    b = Matrix(1, model.student_rank, lambda *_: rational(draw))
    return W, Matrix.vstack(*((model.length - 1 - 2 * token) * b for token in range(model.length)))


def with_loss(derivation: Derivation, loss: Expr) -> Derivation:
    """The same derivation for samples whose loss is ``loss``."""
    return derivation.altered("sufficient loss", lambda _: loss)


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on ``space`` at the precision in force; lists run over the tokens or over the eigenspaces."""

    model: Model
    given: Values
    """The parameters and alpha."""

    def _number(self, value: Expr) -> mpmath.mpf:
        return number(S(value).xreplace(self.given))

    @cached_property
    def space(self) -> Vectors:
        return vectors(self.model, self.given)

    @cached_property
    def target(self) -> mpmath.matrix:
        return mpmath.matrix(target(self.model)[0].applyfunc(number).tolist())

    @cached_property
    def shifts(self) -> mpmath.matrix:
        return mpmath.matrix(target(self.model)[1].applyfunc(number).tolist())

    @cached_property
    def decay(self) -> mpmath.mpf:
        return self._number(self.model.decay)

    @cached_property
    def weights(self) -> _Row:
        return [self._number(space.weight) for space in self.model.spaces]

    @cached_property
    def eigenvalues(self) -> list[_Row]:
        return [[self._number(lam) for lam in space.eigenvalues] for space in self.model.spaces]

    # --- the resolvent ---

    def _pull(self, V: _Row) -> _Row:
        """Vhat_l."""
        strength = 2 * self._number(self.model.loss_factor)
        return [self._number(alpha) * strength / (1 + strength * width) for width in V]

    def _resolvents(self, Vhat: _Row) -> _Row:
        """R_k."""
        loads = (mpmath.fsum(lam * pull for lam, pull in zip(lams, Vhat, strict=True)) for lams in self.eigenvalues)
        return [1 / (self.decay + load) for load in loads]

    @cached_property
    def V(self) -> _Row:
        """By iteration of a monotone map, started above its fixed point."""
        Vhat, last = [mpmath.mpf(0)] * self.model.length, None
        while True:
            R = self._resolvents(Vhat)
            rows = list(zip(self.weights, self.eigenvalues, R, strict=True))
            V = [mpmath.fsum(w * lams[k] * r for w, lams, r in rows) for k in range(self.model.length)]
            if last and max(abs(a - b) for a, b in zip(V, last, strict=True)) < mpmath.mpf(10) ** (3 - mpmath.mp.dps):
                return V
            Vhat, last = self._pull(V), V

    @cached_property
    def Vhat(self) -> _Row:
        return self._pull(self.V)

    @cached_property
    def R(self) -> _Row:
        return self._resolvents(self.Vhat)

    # --- the mean of Q, and its overlaps ---

    @cached_property
    def mean(self) -> mpmath.matrix:
        """d x r_s: the minimiser of the deterministic equivalent."""
        space, d = self.space, self.space.dimension
        left, right = self.decay * mpmath.eye(d), mpmath.matrix(d, self.target.rows)
        for k, pull in enumerate(self.Vhat):
            row = space.positions[k, :]
            left += pull * (space.covariance(k) + row.T * row)
            right += pull * space.covariance(k) * space.teacher * self.target.T
            right += pull * mpmath.sqrt(d) * row.T * self.shifts[k, :]
        return mpmath.inverse(left) * right

    @cached_property
    def m(self) -> _Matrices:
        root = mpmath.sqrt(self.space.dimension)
        return [self.space.positions[k, :] * self.mean / root for k in range(self.model.length)]

    @cached_property
    def theta(self) -> _Matrices:
        return self._overlaps(self.mean, self.space.teacher)

    def _overlaps(self, left: mpmath.matrix, right: mpmath.matrix) -> _Matrices:
        d = self.space.dimension
        return [left.T * self.space.covariance(k) * right / d for k in range(self.model.length)]

    @cached_property
    def energy(self) -> mpmath.mpf:
        """The training loss per dimension."""
        gap = self.mean - self.space.teacher * self.target.T
        total = self.decay * mpmath.fsum(entry**2 for entry in self.mean) / self.space.dimension
        for k, spread in enumerate(self._overlaps(gap, gap)):
            offset = self.m[k] - self.shifts[k, :]
            square = mpmath.fsum(spread[a, a] for a in range(spread.rows)) + mpmath.fsum(x**2 for x in offset)
            total += self.Vhat[k] * square
        return total / 2

    # --- the noise of Q, from the residuals of the samples ---

    @cached_property
    def _bias(self) -> _Matrices:
        """E[(c - W Y - b)(c - W Y - b)^T] without q."""
        rho = self._overlaps(self.space.teacher, self.space.teacher)
        found = []
        for k, theta in enumerate(self.theta):
            cross, offset = theta * self.target.T, self.m[k].T - self.shifts[k, :].T
            found.append(self.target * rho[k] * self.target.T - cross - cross.T + offset * offset.T)
        return found

    @cached_property
    def _strength(self) -> _Row:
        """qhat_l over the mean square of the residual: Vhat_l^2/alpha."""
        return [pull**2 / self._number(alpha) for pull in self.Vhat]

    @cached_property
    def q(self) -> _Matrices:
        """q_l = mean part + sum_k w_k lam_lk R_k^2 sum_l' lam_l'k qhat_l', linear in q through qhat."""
        L, s = self.model.length, self.target.rows
        signal, spread = self._overlaps(self.mean, self.mean), mpmath.matrix(L, L)
        for i, j in product(range(L), repeat=2):
            rows = zip(self.weights, self.eigenvalues, self.R, strict=True)
            spread[i, j] = mpmath.fsum(w * lams[i] * lams[j] * r**2 for w, lams, r in rows) * self._strength[j]
        q = [mpmath.matrix(s, s) for _ in range(L)]
        for place in product(range(s), repeat=2):
            bias = mpmath.matrix([entry[place] for entry in self._bias])
            right = mpmath.matrix([entry[place] for entry in signal]) + spread * bias
            for k, entry in enumerate(mpmath.lu_solve(mpmath.eye(L) - spread, right)):
                q[k][place] = entry
        return q

    @cached_property
    def qhat(self) -> _Matrices:
        return [strength * (q + bias) for strength, q, bias in zip(self._strength, self.q, self._bias, strict=True)]

    @cached_property
    def norm(self) -> mpmath.mpf:
        """|Q|^2/d."""
        noise = [mpmath.fsum(qhat[a, a] for a in range(qhat.rows)) for qhat in self.qhat]
        total = mpmath.fsum(entry**2 for entry in self.mean) / self.space.dimension
        for w, lams, r in zip(self.weights, self.eigenvalues, self.R, strict=True):
            total += w * r**2 * mpmath.fsum(lam * trace for lam, trace in zip(lams, noise, strict=True))
        return total

    @cached_property
    def values(self) -> Values:
        """Parameters, overlaps and conjugates as SymPy numbers."""
        found, one = dict(self.given), mpmath.eye(self.target.rows)
        for k, (token, hat) in enumerate(zip(overlaps(self.model), conjugates(self.model), strict=True)):
            for names, numbers in (
                (token.q, self.q[k]),
                (token.V, self.V[k] * one),
                (token.m, self.m[k]),
                (token.theta, self.theta[k]),
                (hat.q, self.qhat[k]),
                (hat.V, self.Vhat[k] * one),
                (hat.m, self.Vhat[k] * (self.shifts[k, :] - self.m[k])),
                (hat.theta, self.Vhat[k] * self.target),
            ):
                found |= {name: S(entry) for name, entry in zip(names, numbers, strict=True)}
        return found

    @property
    def symmetric(self) -> Values:
        """The same, and those of the first token under the names of the reduced potential."""
        named = {str(name): value for name, value in self.values.items()}
        return {**self.values, **{Symbol(name, real=True): named[f"{name}_1"] for name in ("q", "V", "m", "theta")}}


def solved(model: Model, seed: int, control: Rational = Rational(3, 2)) -> Ridge:
    """Ridge regression at random parameters and alpha = ``control``."""
    return Ridge(model, {**parameters(model, seed), alpha: control})
