r"""Copy head: one attention head that has to output, at every position, the token before it.

.. math:: p(G, W) \propto \exp\Bigl\{-\frac1T\Bigl[\kappa \sum_{\mu a} |y_{\mu a} - f_{\mu a}|^2
          + \frac{\gamma_w}{2} |W|^2 + \frac{\gamma_g}{2} |G|^2\Bigr]\Bigr\}, \qquad \kappa = \frac1{2L}

Tokens are independent and uniform over V symbols; row a of the one-hot matrix X, L x V, is x_a. The target is y_a = x_(a-1)
(cyclic; the shift of one is a field of `Model`). The score of position b for position a is S_ab = v_a^T G v_b, where
v_a = (x_a, e_a) in R^(V + L) holds token and position and G is the key-query matrix; the output is f = A X W with the value
matrix W, V x V, and the attention is A = S/L (linear) or the row-softmax of S. There are P sequences; sums over mu count
them, sums over a positions. Source: arXiv 2606.12058, the model section.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, MatrixSymbol, Rational, S, Symbol

from derive.action import Parameter

__all__ = [
    "CONTROL",
    "DEFAULT",
    "FEATURES",
    "PARAMETERS",
    "SCORES",
    "SHIFT",
    "TARGETS",
    "VALUES",
    "L",
    "Model",
    "P",
    "T",
    "V",
    "c",
    "c_1",
    "c_G",
    "gamma_g",
    "gamma_w",
    "h",
    "s",
    "u",
]

L = Symbol("L", positive=True)
V = Symbol("V", positive=True)
P = Symbol("P", positive=True)
gamma_w = Symbol("gamma_w", positive=True)
gamma_g = Symbol("gamma_g", positive=True)
T = Symbol("T", nonnegative=True)

u = Symbol("u", real=True)
c = Symbol("c", real=True)
c_1 = Symbol("c_1", real=True)
c_G = Symbol("c_G", real=True)
s = Symbol("s", nonnegative=True)
h = Symbol("h", real=True)

TARGETS = MatrixSymbol("Y", P * L, V)
FEATURES = MatrixSymbol("Phi", P * L, V)
VALUES = MatrixSymbol("W", V, V)
SCORES = MatrixSymbol("G", V + L, V + L)
SHIFT = MatrixSymbol("Pi", L, L)
"""The cyclic shift by ``Model.shift`` positions: Y = Pi X."""

CONTROL = Parameter(P, "number of training sequences")
PARAMETERS = (
    Parameter(L, "sequence length", lower=S(2), strict=False),
    Parameter(V, "vocabulary size", lower=S(2), strict=False),
    Parameter(gamma_w, "ridge of the value matrix", default=S.One),
    Parameter(gamma_g, "ridge of the key-query matrix", default=S.One),
    Parameter(T, "temperature", default=S.Zero, strict=False),
)


@dataclass(frozen=True)
class Model:
    """What defines the model; change it here and every later expression, threshold and loss follows.

    ``loss_factor`` multiplies the sum of squared errors, ``weight_decay`` and ``score_decay`` are twice the factors of
    ``|W|^2`` and ``|G|^2``, ``shift`` is the distance to the token that is copied (not a multiple of L).
    """

    loss_factor: Expr = Rational(1, 2) / L
    weight_decay: Expr = gamma_w
    score_decay: Expr = gamma_g
    shift: int = 1


DEFAULT = Model()
