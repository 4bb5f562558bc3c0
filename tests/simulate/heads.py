"""Small copy heads and an explicit evaluation of them, entry by entry, that shares nothing with `simulate`."""

import numpy as np

from derive.action import validated
from derive.copy_head.model import CONTROL, PARAMETERS
from simulate.copy_head import CopyHead, Replica, task


def setup(attention="softmax", **values):
    return validated(f"copy-head/{attention}", PARAMETERS, CONTROL, values)


def head(attention="softmax", L=3, V=2, P=4, seeds=(0,), chains=1, T="0", chunk=None, rank=None, joint=False, **values):
    problem = task(setup(attention, L=L, V=V, T=T, **values), rank=rank, joint=joint)
    return CopyHead(problem, tuple(Replica(seed, P, k) for seed in seeds for k in range(chains)), chunk=chunk)


def explicit_attention(attention, L, V, G, tokens):
    """A of one sequence from vectors of length V + L."""
    embedded = np.zeros((L, V + L))
    for a, token in enumerate(tokens):
        embedded[a, token] = embedded[a, V + a] = 1
    scores = embedded @ G @ embedded.T
    if attention == "linear":
        return scores / L
    growth = np.exp(scores)
    return growth / growth.sum(axis=1, keepdims=True)


def explicit_features(attention, L, V, G, tokens, shift=1):
    """A X and Y of one sequence."""
    X, Y = np.zeros((L, V)), np.zeros((L, V))
    for a in range(L):
        X[a, tokens[a]] = Y[a, tokens[(a - shift) % L]] = 1
    return explicit_attention(attention, L, V, G, tokens) @ X, Y
