"""The registry: every expression that a theory exports, and what it is checked by.

An expression is checked in its derivation, by an independent calculation (enumeration, integration, another route), and
most by claims too, which hold what it predicts against training, sampling or message passing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from derive.catalogue import THEORIES, Theory
from derive.names import instead
from simulate.crosscheck import linear, positional_semantic, posterior, softmax
from simulate.crosscheck.claims import Claim

__all__ = ["CLAIMS", "Entry", "chosen", "entries", "exported"]

CLAIMS: tuple[Claim, ...] = (*softmax.CLAIMS, *linear.CLAIMS, *posterior.CLAIMS, *positional_semantic.CLAIMS)


@dataclass(frozen=True)
class Entry:
    """An expression of a theory, the checks of its derivation (name and kind), and the claims that test it."""

    theory: str
    expression: str
    checks: tuple[tuple[str, str], ...]
    claims: tuple[str, ...]

    @property
    def checked(self) -> bool:
        return bool(self.checks or self.claims)


def entries(theory: Theory, claims: Sequence[Claim] = CLAIMS) -> list[Entry]:
    """Every expression of the theory; raises `LookupError` for a claim about an expression that it does not have."""
    derivation = theory.derivation()
    about = [claim for claim in claims if claim.theory == theory.name]
    for claim in about:
        for step in claim.steps:
            derivation.step(step)
    return [
        Entry(
            theory.name,
            step.name,
            tuple((check.name, check.evaluator) for check in step.checks),
            tuple(claim.name for claim in about if step.name in claim.steps),
        )
        for step in derivation.steps
    ]


def chosen(theories: Sequence[str], row: str | None = None, quick: bool = False) -> list[Claim]:
    """The claims about these theories (all, if there are none), or the one called ``row``, that there is something to do for.

    Raises `LookupError`.
    """
    about = [claim for claim in CLAIMS if (not theories or claim.theory in theories) and claim.chosen(quick)[0]]
    found = [claim for claim in about if row in (None, claim.name)]
    if not found:
        which = f"{'quick ' * quick}row{'' if row is None else f' {row!r}'}"
        names = [claim.name for claim in about]
        why = f"{instead(row or '', names, repr)} (--list names every row)" if names else "there is none at all"
        raise LookupError(f"there is no {which} here; {why}")
    return found


def exported(theories: Sequence[str] = ()) -> list[Entry]:
    """The expressions of these theories, or of all."""
    return [entry for theory in THEORIES if not theories or theory.name in theories for entry in entries(theory)]
