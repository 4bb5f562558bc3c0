"""Verdicts on paper: the table of a cross-check for people, its document for scripts, and the map of what is checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numerics.present import table
from simulate.crosscheck.claims import Claim, Line, Values
from simulate.crosscheck.registry import Entry
from simulate.verdict import MISSED, Outcome

__all__ = ["all_hold", "as_json", "budgets", "entry_json", "listed", "summary", "verdicts"]


def verdicts(lines: Iterable[Line]) -> str:
    """The comparisons, claim by claim; then why each tolerance is what it is, and what the theory says beside."""
    rows, notes, before = [], {}, ""
    reasons: dict[tuple[str, str], dict[str, None]] = {}  # the quantities of one claim that share one
    for line in lines:
        claim = f"{line.claim} ({line.theory})"
        rows.append(("" if claim == before else claim, line.case.partition(" ")[2], line.quantity, *_cells(line)))
        if line.verdict is not None:
            reasons.setdefault((line.claim, line.verdict.reason), {})[line.quantity] = None
        if line.beside:
            notes[line.claim, line.case.partition(" ")[2]] = line.beside
        before = claim
    headers = ("claim", "case", "quantity", "measured", "theory", "tolerance", "power", "verdict")
    because = [f"  {claim}, {', '.join(quantities)}: {reason}" for (claim, reason), quantities in reasons.items()]
    also = [f"  {claim}, {case}: {_listed(values)}" for (claim, case), values in notes.items()]
    blocks = [("\ntolerances, declared before the run:", because), ("\nthe theory says beside:", also)]
    return "\n".join((table(headers, rows), *(text for title, block in blocks if block for text in (title, *block))))


def _listed(values: Values) -> str:
    return ", ".join(f"{name} = {value:.2g}" for name, value in values.items())


def _cells(line: Line) -> tuple[str, ...]:
    verdict = line.verdict
    if verdict is None:
        return "", "", "", "", f"{line.outcome}: {line.broken}"
    measured = f"{verdict.measured.value:.5g} +- {verdict.measured.error:.1g}"
    numbers = (f"{number:.5g}" for number in (verdict.theory, verdict.tolerance, verdict.power))
    theory, tolerance, power = numbers
    tolerance = f"> {tolerance}" if verdict.rejects else tolerance
    return measured, theory, tolerance, power, str(verdict.outcome)


def summary(lines: Sequence[Line]) -> str:
    """How many comparisons end how, and the declared chances of error."""
    counts = {outcome: sum(line.outcome is outcome for line in lines) for outcome in Outcome}
    worst = max((line.verdict.false_alarm for line in lines if line.verdict is not None), default=0.0)
    return (
        ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        + f". Each would have caught a deviation of its power with probability {1 - MISSED:.0%}; one of just its"
        f" tolerance fails by chance at most with {worst:.0%}."
    )


def all_hold(lines: Iterable[Line]) -> bool:
    return all(line.outcome is Outcome.HOLDS for line in lines)


def as_json(line: Line) -> dict[str, Any]:
    """One comparison for a document: numbers are null where a measurement or an expectation broke down."""
    head = {"claim": line.claim, "problem": line.theory, "case": line.case, "quantity": line.quantity}
    verdict = line.verdict
    if verdict is None:
        nothing = dict.fromkeys(
            ("theory", "measured", "standard_error", "tolerance", "rejects", "power", "false_alarm", "misfit")
        )
        return {**head, **nothing, "reason": line.broken, "beside": {}, "verdict": line.outcome.value}
    return {
        **head,
        "theory": verdict.theory,
        "measured": verdict.measured.value,
        "standard_error": verdict.measured.error,
        "tolerance": verdict.tolerance,
        "rejects": verdict.rejects,
        "reason": verdict.reason,
        "power": verdict.power,
        "false_alarm": verdict.false_alarm,
        "misfit": verdict.measured.misfit,
        "beside": dict(line.beside),
        "verdict": verdict.outcome.value,
    }


def budgets(claims: Sequence[Claim], quick: bool) -> str:
    """What every row measures and what it costs."""
    rows = [
        (
            claim.name,
            claim.theory,
            claim.statement,
            f"{len(claim.chosen(quick)[0])} x {len(claim.chosen(quick)[1])}",
            f"{claim.budget(quick):.0f} s",
        )
        for claim in claims
    ]
    what = "budget: seconds of one core for the measurements alone; the theory that they are held against comes on top"
    return f"{table(('row', 'theory', 'claim', 'cases x seeds', 'budget'), rows)}\n\n{what}"


def listed(entries: Iterable[Entry]) -> str:
    """The map from every exported expression to its independent checks."""
    rows = []
    for entry in entries:
        checks = [f"{name} ({kind})" for name, kind in entry.checks] + [f"row: {claim}" for claim in entry.claims]
        rows += [
            (entry.theory, entry.expression, check) if place == 0 else ("", "", check)
            for place, check in enumerate(checks or ["NONE"])
        ]
    return table(("theory", "expression", "independent check"), rows)


def entry_json(entry: Entry) -> dict[str, Any]:
    checks = [{"name": name, "kind": kind} for name, kind in entry.checks]
    return {"theory": entry.theory, "expression": entry.expression, "checks": checks, "rows": list(entry.claims)}
