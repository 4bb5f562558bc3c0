"""Theory files that tests change: an action, and a potential."""

import re

ACTION = "m^2/2 - T*log(2*cosh(m/T))"
MAGNET = """
[theory]
name = "magnet"
summary = "a magnet"
action = "m^2/2 - T*log(2*cosh(m/T))"
window = ["1/2", 2]
[control.T]
meaning = "temperature"
[order_parameters.m]
meaning = "magnetisation"
lower = -1
upper = 1
"""
GLASS = """
[theory]
name = "glass"
summary = "a glass"
potential = "r/2 - r*q/2 + (q^2 - 1)/(4*T^2) - E[log(2*cosh(x)), x: N(1/T, r)]"
window = ["1/2", 2]
[control.T]
meaning = "temperature"
[overlaps.q]
meaning = "overlap"
conjugate = "r"
"""


def potential(formula):
    """The glass with another one."""
    return re.sub(r"(?m)^potential = .*$", lambda _: f'potential = "{formula}"', GLASS)
