r"""What the symbols of positional and semantic learning mean and how they scale; parameters are described where declared.

.. math:: d, n \to \infty, \qquad \alpha = n/d

A name with ``()`` is that of a function. Indices count tokens and, beyond rank one, directions.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GLOSSARY"]

_ONE = "of order one"

GLOSSARY: Mapping[str, tuple[str, str]] = {
    # fields and the loss of a sample
    "(c, Y)": ("student and teacher fields of a new sample, all tokens", _ONE),
    "c": ("student field of a token before its sample is learned, (x + p) Q/sqrt d", _ONE),
    "Y": ("teacher field of a token, x Q*/sqrt d", _ONE),
    "Z": ("student fields at which the loss of a sample is taken", _ONE),
    "z": ("student field of a token, over which the proximal map minimises", _ONE),
    "E()": ("average over samples", ""),
    "Cov()": ("covariance over samples", ""),
    "g()": ("loss of a sample per dimension, kappa |y - f|^2/d, as a function of its fields", _ONE),
    "A": ("entry of the fixed matrix A of the teacher", "rows sum to one"),
    "rho": ("variance of the teacher fields, Q*^T Sigma Q*/d", _ONE),
    # overlaps and conjugates
    "q": ("overlap of two copies of the student, Q^T Sigma Q/d; without replicas its own", _ONE),
    "V": ("width: beta (r - q), how far the fields of a learned sample can move", _ONE),
    "m": ("overlap with the positions, Q^T p/sqrt d", _ONE),
    "theta": ("overlap with the teacher, Q^T Sigma Q*/d", _ONE),
    "r": ("overlap of a copy with itself, q + V/beta", _ONE),
    "qhat": ("conjugate of the overlap of two copies, which pairs with V", "beta^2, then of order alpha"),
    "Vhat": ("(rhat + qhat)/beta, which pairs with q", "of order alpha"),
    "mhat": ("conjugate of m", "beta, then of order alpha"),
    "thetahat": ("conjugate of theta", "beta, then of order alpha"),
    "rhat": ("conjugate of the overlap of a copy with itself", "beta^2"),
    # replicas
    "n": ("number of copies", "to zero"),
    "beta": ("inverse temperature", "to infinity"),
    "P()": ("prior of n copies per dimension: ln of its Gaussian integral", _ONE),
    "C()": ("pairing of the overlaps of n copies with their conjugates", _ONE),
    "D": ("precision of a weight of the student in an eigenspace of the covariances", "beta"),
    "B": ("variance of the random field on a weight, from the samples", "beta^2"),
    "H": ("squared mean of the field on a weight, along positions and teacher", "beta^2"),
    "\\partial_n P|_0": ("slope of the prior at n = 0", _ONE),
    "e^{-\\beta \\sum_a g(Z_a; Y)}": ("Boltzmann weight of a sample for all copies", _ONE),
    "\\ln \\langle e^{-\\beta g(Z; Y)} \\rangle": (
        "free energy of a sample, with the mean over the noise of a copy",
        "beta",
    ),
    "M": ("Moreau envelope of the loss: its least value with the cost of moving the fields", _ONE),
    "e": ("replica-symmetric potential: training loss per dimension", _ONE),
    "e()": ("part of the potential; of d: the training loss at finite dimension", _ONE),
    # observables
    "|Q|^2/d": ("squared norm of the student", _ONE),
    "mse()": ("test error per dimension, of overlaps", _ONE),
    "\\mathrm{mse}": ("test error per dimension", _ONE),
    "\\mathrm{mse}_\\mathrm{lin}": ("test error of the best mixing of tokens by position alone", _ONE),
    "d": ("dimension of the tokens", "to infinity"),
    "|y - f|^2": ("squared error on a new sample", "of order d"),
    # stability
    "Delta": ("variance of the noise between the fields of two copies", "small"),
    "\\Delta'": ("that noise after one more round", "that of Delta"),
    "\\Delta^*": ("noise that reproduces itself", "zero where no proximal map jumps"),
    "a": ("what smooth response makes of the noise: its factor in one round", "below one where copies agree"),
    "K": ("weight of the jumps of the proximal map", "zero where it does not jump"),
    "q^{-1} A(q)": ("matrix of the smooth response in units of q", _ONE),
    "q^{-1} B(q)": ("matrix of the jumps in units of q", _ONE),
    # limits
    "V_0": ("width without samples", "sigma^2/lambda"),
}
"""Overlaps and conjugates carry the index of their token in the general potential."""
