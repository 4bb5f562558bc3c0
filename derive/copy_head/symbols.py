r"""What the symbols of the copy head mean and how they scale; the parameters are described where they are declared.

.. math:: P \gg 1, \qquad \text{sizes as } L \to \infty \text{ at fixed } V

A name with ``()`` is that of a function. Sizes are those at a transition, where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GLOSSARY"]

GLOSSARY: Mapping[str, tuple[str, str]] = {
    # model and posterior
    "E()": ("energy: T times minus the log posterior", "of order P"),
    "G": (
        "key-query matrix: the score of b for a is v_a^T G v_b with v_a = (x_a, e_a), token and position",
        "(V + L) x (V + L)",
    ),
    "W": ("value matrix, which reads the attended token", "V x V, entries of order one"),
    "Phi": ("features A X of all sequences, one below the other", "P L x V"),
    "Y": ("targets Pi X of all sequences, one below the other", "P L x V, entries 0 and 1"),
    "\\langle W \\rangle": ("posterior mean of W at given attention", "V x V"),
    "\\mathrm{Cov}\\,W": ("posterior covariance of a column of W at given attention", "V x V"),
    "C": ("Gram matrix Phi^T Phi of the features", "V x V, of order P L"),
    "B": ("overlap Phi^T Y of features and targets", "V x V, of order P L"),
    "S()": ("action of the scores, over T", "of order P/T"),
    "\\mathrm{E}[X^{T} M X]": ("average over the tokens of a form in their one-hot matrix X", "V x V"),
    "M": ("any matrix between positions", "L x L"),
    "1": ("matrix of ones", ""),
    # symmetry and the two heads
    "dim()": ("dimension of what is invariant", "a whole number"),
    "R_1": ("|G|^2 that a uniform score of one costs", "V^2"),
    "A": ("mean attention matrix", "L x L"),
    "A()": ("attention on the copied key", "between 1/L and one"),
    "Pi": ("cyclic shift by one position, (Pi X)_a = x_(a - 1)", "L x L, a permutation"),
    "u": ("uniform pooling: row sum of the mean attention", "P u^2 of order L^(2/3) at the crossover"),
    "c": ("copying: copy entry of the mean attention minus the others", "at most of order one"),
    "c_1": ("uniform coefficient in A = c_1 11^T/L + c_G Pi", "that of u"),
    "c_G": ("copy coefficient in A = c_1 11^T/L + c_G Pi", "that of c"),
    "D()": ("data term of the action: what the value matrix gains, and its entropy", "of order P"),
    "F()": ("effective action, of which the minima are the phases", "of order P"),
    "s": ("gap between the copied score and the others in a row", "ln sqrt(L) at the transition"),
    "R()": ("|G|^2 that a score gap costs", "of order L"),
    "a()": ("copied entry of the softmax minus another one", "between zero and one"),
    "s_\\max": ("bound on the gap at a stationary point", "of order ln L"),
    "\\max|u|": ("bound on |u| at a stationary point", ""),
    "\\max|c|": ("bound on |c| at a stationary point", ""),
    "P_\\mathrm{low}": ("lower end of the search range of P", ""),
    "P_\\mathrm{high}": ("upper end of the search range of P", ""),
    # observables
    "r": ("share of the copy pattern in |A|^2", "between zero and one"),
    "w_0": ("readout of the constant mode", "of order one"),
    "w": ("readout of a token mode", "of order one"),
    "ell()": ("mean squared error per position on new sequences", "of order one"),
    "ell_0": ("loss without attention", "one"),
    "ell_uniform": ("loss of uniform attention with ideal readout", "of order one"),
    "ell_copy": ("loss of copying attention with ideal readout", "zero"),
    "ell_constant": ("loss of the best guess that knows nothing", "of order one"),
    "ell_unigram": ("loss of the best guess from the counts of the sequence", "of order one"),
    "ell_bigram": ("loss of the best guess from the copied token", "zero"),
    "Delta()": ("drop of the loss between two states", "of order one"),
    "s_1": ("gap of the first of two states", "that of s"),
    "s_2": ("gap of the second of two states", "that of s"),
    # the pooling transition
    "H": ("Hessian of the linear action in (u, c) at zero attention", "2 x 2"),
    "P_{pool}": ("P at which zero attention loses stability", "V^2"),
    "rho": ("c/u along the direction that loses stability", "of order 1/L^3"),
    "t": ("amplitude along that direction: u = t, c = rho t", "small beyond the transition"),
    "q_1": ("shrinking factor of the constant mode, 1/(1 + ...), at a point of a ray", "between zero and one"),
    "q_2": ("shrinking factor of a token mode at a point of a ray", "between zero and one"),
    "beta": ("critical exponent of the order parameter", "one half"),
    "gamma": ("critical exponent of the susceptibility", "one"),
    # the same-token coordinate
    "h": ("same-token coordinate: extra score of keys that carry the query's token", "of order 1/L"),
    "g_h": ("slope of the population action along h on the plane", "of order P"),
    "H_hh": ("curvature of the population action along h on the plane", "of order P L"),
    "h^*()": ("value of h at which the action, to second order, is lowest", "that of h"),
    "F_\\mathrm{rel}()": ("action at the relaxed h", "that of F"),
    "phi()": ("same-token pairs of one attention row, averaged", "between 1/V and one"),
    "psi()": ("target hits of one attention row, averaged", "between 1/V and one"),
    # finite temperature
    "D_s": ("curvature of the data term along the gap of one row", "P/L in the copy phase"),
    "D_b": ("curvature along two of the other keys of one row", "P/L^2 in the copy phase"),
    "D_t": ("curvature along one token of one row", "P in the copy phase"),
    "D_w": ("curvature along the token mode that all rows share", "P/L in the copy phase"),
    "F_1()": ("half the log determinant of the Hessian transverse to the gap", "of order L, up to logarithms"),
    "F_\\mathrm{fl}()": ("action with the fluctuations of all other scores integrated out", "that of F"),
    "ds()": ("first-order shift of a stationary point with T", "that of s"),
    "dT": ("first-order change of the temperature", "small"),
    "tau_c": ("variance of the copied score", "of order T"),
    "tau_o": ("variance of another score", "of order T"),
    "\\lambda_\\mathrm{copy}": ("mean and variance of the logit of the copied entry", "of order ln L and T"),
    "\\lambda_\\mathrm{other}": ("mean and variance of the logit of another entry", "of order ln L and T"),
    "p_\\mathrm{copy}()": ("density of the copied attention entry", ""),
    "p_\\mathrm{other}()": ("density of another attention entry", ""),
    "x": ("value of an attention entry", "between zero and one"),
    "M()": ("mean, variance and skewness of an entry", "of order one, T and sqrt(T)"),
    "copy": ("the copied entry", ""),
    "other": ("another entry", ""),
    # long sequences
    "varpi": ("samples per position, P/L", "ln^2 L at the transition"),
    "X": ("e^(2 s)/L, the weight of the copied key against all others, squared", "of order ln L"),
    "X_0": ("X at gamma_w = 0", "of order ln L"),
    "ell": ("ln sqrt(L)", "the large parameter"),
    "P^{*}": ("P at which uniform attention and copying are equally deep", "L ln^2 L"),
    "P_{x}": ("P at which the linear head turns from pooling to copying", "L^(3/2)"),
    "L_{=}": ("length from which on the softmax head needs fewer samples", "set by gamma_g/gamma_w and V"),
    # signs
    "R_k": ("|G|^2 of a uniform score in which k symbols count negatively", "V^2, like R_1"),
    "k": ("symbols that count negatively", "0 to V"),
    "F_k()": ("linear action with k symbols that count negatively", "that of F"),
}
