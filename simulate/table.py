"""What an experiment has found, as a table and as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numerics import present
from simulate.experiment import Summary
from simulate.plan import Plan

__all__ = ["as_json", "as_text"]

_COLUMNS = {
    "mean": ("mean", 8),
    "standard_error": ("standard error", 2),
    "mcse": ("mcse", 2),
    "r_hat": ("R-hat", 4),
    "ess_bulk": ("bulk ESS", 4),
    "ess_tail": ("tail ESS", 4),
}
"""The heading and the digits of each number; those behind the first two are of chains only."""
_ALWAYS = ("mean", "standard_error")

Found = Sequence[tuple[Mapping[str, str], Mapping[str, Summary]]]


def as_json(plan: Plan, found: Found) -> dict[str, Any]:
    """``observables`` by name, or with a ``sweep`` those of each of its steps."""
    steps = [{**place, "observables": {name: _numbers(one) for name, one in seen.items()}} for place, seen in found]
    return {"sweep": steps} if plan.ladder else steps[0]


def _numbers(one: Summary) -> dict[str, float | None]:
    return {name: x for name, x in vars(one).items() if x is not None or name in _ALWAYS}


def as_text(plan: Plan, found: Found) -> str:
    """One row for each observable, or for each step of a sweep."""
    if plan.ladder:
        return _swept(plan, found)
    ((_, seen),) = found
    kept = [c for c in _COLUMNS if c in _ALWAYS or any(getattr(one, c) is not None for one in seen.values())]
    rows = [(name, *(_shown(getattr(one, c), _COLUMNS[c][1]) for c in kept)) for name, one in seen.items()]
    return present.table(("observable", *(_COLUMNS[c][0] for c in kept)), rows)


def _swept(plan: Plan, found: Found) -> str:
    """The main observables with their standard errors in brackets."""
    names = [name for name in plan.headline if any(name in seen for _, seen in found)]
    rows = [(*place.values(), *(_with_error(seen.get(name)) for name in names)) for place, seen in found]
    return present.table((plan.control, "direction", *names), rows)


def _with_error(one: Summary | None) -> str:
    if one is None:
        return ""
    return _shown(one.mean, 6) + ("" if one.standard_error is None else f" ({_shown(one.standard_error, 1)})")


def _shown(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}g}"
