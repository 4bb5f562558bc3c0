r"""The check of a certificate, independent of whoever wrote it.

.. math:: N(Y) \subset Y

The action is the theory's, not the file's; the boxes are starts for nothing, but what has to contain a root. Derivatives
come from Taylor arithmetic on the tree of the expression and roots are proven by the interval Newton operator: neither a
formula that was differentiated or emitted nor the operator of the proof has a part in it. What a theorem claims, and the
branch and prune by which it is complete, is code that both share, on python-flint; what `arithmetic` sees of it is not.

Bits and versions are what the proof took; nothing rests on them. The verification takes its own, and says where versions
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
from flint import ctx
from mpmath import mpf

from derive.action import EffectiveAction, SetupError
from derive.averages import GaussianAverage
from derive.exact import ExactnessError
from numerics.certify.arithmetic import seen_again
from numerics.certify.certificate import VERSIONS, Certificate, CertificateError, certificate, document, labels
from numerics.certify.claims import KINDS, LEVELS
from numerics.certify.intervals import ProofError, power_of_ten
from numerics.certify.methods import VERIFICATION
from numerics.certify.phases import NAMED, refuse_phases
from numerics.certify.theorem import POINTS, SOLUTION, Proven, Stage, Theorem, established, precision
from numerics.landscape import Landscape, hessian
from numerics.newton import negative_eigenvalues
from numerics.phases import names
from numerics.points import Kind

__all__ = ["Verdict", "as_json", "as_text", "confirmed", "other_versions", "verified"]

_NAMING = 60
"""Digits at which points are told apart to be named."""


@dataclass(frozen=True)
class Verdict:
    """Whether a theorem was proven again, and if not, why."""

    proven: Proven
    refused: str | None
    seen: str | None = None
    """What other arithmetic saw of it."""


def verified(
    found: Certificate, action: EffectiveAction, progress: Callable[[str], None] | None = None
) -> Iterator[Verdict]:
    """Each theorem of a certificate, proven again or not. Names of phases beside a transition are labels.

    Raises `CertificateError` where the certificate is not about ``action``, its setup is none of it, or it claims nothing.
    """
    if not found.theorems:
        raise CertificateError("the certificate holds no theorem: nothing is proven in it")
    landscape = _landscape(found, action)
    if found.sealed is not None and document(found, action)["seal"] != found.sealed:
        raise CertificateError("the document is not written as a certificate is: a name or a number stands for another")
    for each in found.theorems:
        if progress is not None:
            progress(f"verifying {each.theorem.kind}")
        yield _verdict(found, landscape, each)


def confirmed(landscape: Landscape, proven: Proven, digits: int) -> Proven:
    """What whoever writes a certificate may put there; raises `ProofError` where it would be refused."""
    verdict = _verdict(certificate(landscape, [proven], digits), landscape, proven)
    if verdict.refused is not None:
        raise ProofError(f"the verification refuses it: {verdict.refused}")
    return proven


def _verdict(found: Certificate, landscape: Landscape, each: Proven) -> Verdict:
    action, seen = landscape.action, None
    try:
        _refuse_shape(each, action, found.digits)
        _refuse_names(each.theorem, landscape)
        with ctx.workprec(precision([each.theorem.box])):
            refuse_phases(Stage(landscape, each.theorem, VERIFICATION.derivatives(landscape)))
        again = established(landscape, each.theorem, VERIFICATION).sentences
        refused = None if again == each.sentences else f"what is proven is: {'; '.join(again)}"
        seen = seen_again(found, each, list(map(str, action.variables)), action.control.name)
    except ProofError as error:
        refused = str(error)
    return Verdict(each, refused, seen)


def _landscape(found: Certificate, action: EffectiveAction) -> Landscape:
    try:
        landscape = Landscape(action, action.setup(found.setup))
    except (SetupError, ExactnessError) as error:
        raise CertificateError(f"the setup is none of {action.name}: {error}") from None
    again = certificate(landscape, found.theorems, found.digits)
    if again.sha256 != found.sha256 or again.expression != found.expression:
        raise CertificateError(f"the certificate is about another action than that of {action.name}")
    if again.setup != found.setup or again.assumptions != found.assumptions:
        raise CertificateError("the setup or the assumptions are not those of the theorems")
    if any(each.theorem.kind == POINTS for each in found.theorems) != (landscape.setup.control is not None):
        raise CertificateError(f"a value of {action.control.name} goes with stationary points, and only with them")
    return landscape


def _refuse_shape(proven: Proven, action: EffectiveAction, digits: int) -> None:
    theorem, n = proven.theorem, len(action.variables)
    levels = [observable.name for observable in action.observables if observable.crossover is not None]
    known = len(theorem.box) == len(labels(action, theorem)) and all(len(box) == n for box in theorem.others)
    if not known or (theorem.kind in LEVELS and theorem.via not in levels):
        raise ProofError(f"the boxes are not those of the kind {theorem.kind}")
    if theorem.via is not None and theorem.kind not in (*LEVELS, "instability"):
        raise ProofError(f"a {theorem.kind} takes place by itself, not via {theorem.via}")
    if theorem.kind == POINTS and len(theorem.names) != len(theorem.others):
        raise ProofError("there is not one name for each point")
    if not 0 <= theorem.column < (n if theorem.kind in KINDS and KINDS[theorem.kind].soft else 1):
        raise ProofError(f"there is no column {theorem.column}")
    if any(interval.radius > power_of_ten(-digits) for interval in theorem.box):
        raise ProofError(f"a radius is larger than {digits} digits allow")


def _refuse_names(theorem: Theorem, landscape: Landscape) -> None:
    """Raises `ProofError` where stationary points are not named as the theory names them; the wall may be one of the minima."""
    if landscape.action.value.has(GaussianAverage):
        if set(theorem.names) != {SOLUTION}:
            raise ProofError(f"a stationary point of a potential is named {SOLUTION}")
        return
    if theorem.kind != POINTS:
        return
    with mpmath.workdps(_NAMING):
        control, n = landscape.control(), landscape.n
        points = [tuple(mpf(str(side.middle)) for side in box) for box in theorem.others]
        negative = [negative_eigenvalues(hessian(landscape.slopes(x, control), n)) for x in points]
        kinds = [Kind.MINIMUM if k == 0 else Kind.MAXIMUM if k == n else Kind.SADDLE for k in negative]
        wall = landscape.wall(control)
        walls = [] if wall is None or (wall,) in points else [(wall,)]
        again = names(landscape, control, [*points, *walls], [*kinds, *(Kind.MINIMUM for _ in walls)])
    if tuple(again[: len(points)]) != theorem.names:
        raise ProofError(f"the points are named {', '.join(again[: len(points)])}")


def as_json(verdict: Verdict) -> dict[str, Any]:
    """One theorem and its verdict for a document."""
    theorem = verdict.proven.theorem
    return {
        "kind": theorem.kind,
        "names": list(theorem.names),
        "verified": verdict.refused is None,
        "reason": verdict.refused,
        "proven": list(verdict.proven.sentences),
        "seen": verdict.seen,
    }


def other_versions(found: Certificate) -> dict[str, str]:
    """The libraries that were others when the certificate was written, with their versions then."""
    return {name: written for name, written in found.versions.items() if VERSIONS.get(name) != written}


def as_text(found: Certificate, action: EffectiveAction, verdicts: Sequence[Verdict]) -> str:
    """Every theorem in words: what it is about, where the boxes are, what is proven, what is assumed."""
    setup = ", ".join(f"{name} = {value}" for name, value in found.setup.items())
    lines = [f"{found.theory}: {setup}", f"F = {found.expression}", f"sha256 of the expression: {found.sha256}"]
    lines += [
        f"written with {name} {then}, verified with {VERSIONS.get(name)}"
        for name, then in other_versions(found).items()
    ]
    for verdict in verdicts:
        theorem = verdict.proven.theorem
        state = "proven again" if verdict.refused is None else f"REFUSED: {verdict.refused}"
        called = "" if theorem.kind in (*NAMED, POINTS) else "called "  # which nothing is proven about
        lines += ["", f"{theorem.kind} ({called}{', '.join(theorem.names)}): {state}"]
        lines += [f"  {name} = {side}" for name, side in zip(labels(action, theorem), theorem.box, strict=False)]
        for box in theorem.others:
            places = zip(action.variables, box, strict=False)
            lines.append(f"  another point: {', '.join(f'{variable} = {side}' for variable, side in places)}")
        told = [*verdict.proven.sentences, *([verdict.seen] if verdict.seen else [])]
        lines += [f"  {sentence}" for sentence in told if verdict.refused is None]
    given = f" (step {', '.join(map(repr, found.grounds))} of the derivation)" if found.grounds else ""
    return "\n".join([*lines, *(f"\nassumed: {each}{given}" for each in found.assumptions)])
