"""Actions of the copy head as somebody would write them in NumPy, value, gradient and Hessian, to race the emitted ones."""

import numpy as np


def softmax(s, P, L, V, gamma_w, gamma_g, T):
    """F, F' and F'' of the softmax head at arrays of gaps and numbers of sequences."""
    e = np.exp(s)
    total = L + e - 1
    a = np.expm1(s) / total
    first = L * e / total**2
    second = first * (L - 1 - e) / total
    q, u = (L - 1) * a**2 + 1, (L - 1) * a + 1
    dq, du = 2 * (L - 1) * a, L - 1
    D, dD, ddD = L * gamma_w + P * q / V, P * dq / V, 2 * P * (L - 1) / V
    c = P**2 / (2 * L * V**2)
    g = T * V / 2 * np.log1p(P * q / (L * V * gamma_w)) - c * u**2 / D
    dg = T * V / 2 * dD / D - c * (2 * u * du / D - u**2 * dD / D**2)
    ddg = T * V / 2 * (ddD / D - (dD / D) ** 2) - c * (
        2 * du**2 / D - 4 * u * du * dD / D**2 - u**2 * ddD / D**2 + 2 * u**2 * dD**2 / D**3
    )
    uniform = T * V / 2 * np.log1p(P / (V * gamma_w)) - L * P**2 / (2 * V**2 * (L * P / V + L * gamma_w))
    return (
        uniform + gamma_g * s**2 * (L - 1) / 2 + (V - 1) * g,
        gamma_g * (L - 1) * s + (V - 1) * dg * first,
        gamma_g * (L - 1) + (V - 1) * (ddg * first**2 + dg * second),
    )
