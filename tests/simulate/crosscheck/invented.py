"""Claims whose measurements cost nothing: normal numbers about a known mean, for the machinery of the cross-check."""

import random
from dataclasses import replace

from simulate.crosscheck.claims import Case, Claim
from simulate.verdict import Bar

BAR = Bar(0.1, "a test")


def tossed(at, seed):
    """A number about 1 + 10/d."""
    d = float(at.how["d"])
    return {"x": 1 + 10 / d + random.Random(f"{at.text} {seed}").gauss(0, 0.01)}


def broken(at, seed):
    raise ArithmeticError(f"seed {seed} broke down")


def infinite(at, seed):
    return {"x": float("inf")}


def one(theory, at):
    return {"x": (1.0, 0.0)}


def nothing(theory, at):
    raise LookupError("there is no such phase")


def at(d):
    return Case("copy-head/softmax", {"L": "32", "V": "8"}, {"d": str(d)})


CLAIM = Claim(
    name="invented",
    theory="copy-head/softmax",
    statement="one",
    steps=("softmax action",),
    cases=(at(100), at(200)),
    quick=(at(1000),),
    seeds=6,
    measure=tossed,
    expect=one,
    bars=lambda case: {"x": BAR},
    seconds=1.0,
)
EXTRAPOLATED = replace(CLAIM, name="extrapolated", size="d", quick=CLAIM.cases, quick_seeds=6)
