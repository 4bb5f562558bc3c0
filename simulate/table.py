"""What an experiment has found, as a table and as a JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from numerics import present
from simulate.experiment import Summary
from simulate.models import family_of
from simulate.plan import Plan

__all__ = ["as_json", "as_text", "legend"]

_DIGITS, _PLACES = 8, 12
"""Digits of a number without an error, and decimals beyond which an error is rounding."""
_COLUMNS = {
    "standard_error": ("standard error", 2),
    "mcse": ("mcse", 2),
    "r_hat": ("R-hat", 4),
    "ess_bulk": ("bulk ESS", 4),
    "ess_tail": ("tail ESS", 4),
}
"""The heading and the digits of each number beside the mean; those behind the first are of chains only."""
_ALWAYS = ("mean", "standard_error")

Found = Sequence[tuple[Mapping[str, str], Mapping[str, Summary]]]


def as_json(plan: Plan, found: Found) -> dict[str, Any]:
    """``observables`` by name, or with a ``sweep`` those of each of its steps."""
    steps = [{**place, "observables": {name: _numbers(one) for name, one in seen.items()}} for place, seen in found]
    return {"sweep": steps} if plan.ladder else steps[0]


def _numbers(one: Summary) -> dict[str, float | None]:
    return {name: x for name, x in vars(one).items() if x is not None or name in _ALWAYS}


def as_text(plan: Plan, found: Found) -> str:
    """One row for each observable, or for each step of a sweep; nothing where nothing was found."""
    if not any(seen for _, seen in found):
        return ""
    if plan.ladder:
        return _swept(plan, found)
    ((_, seen),) = found
    kept = [c for c in _COLUMNS if c in _ALWAYS or any(getattr(one, c) is not None for one in seen.values())]
    rows = [(name, _mean(one), *(_shown(getattr(one, c), _COLUMNS[c][1]) for c in kept)) for name, one in seen.items()]
    return present.table(("observable", "mean", *(_COLUMNS[c][0] for c in kept)), rows)


def legend(plan: Plan, found: Found) -> str:
    """What the observables of the table are, one on a line."""
    family = family_of(plan.setup.theory)
    names = dict.fromkeys(name for _, seen in found for name in seen if not plan.ladder or name in plan.headline)
    return "\n".join(f"{name}: {meaning}" for name, meaning in family.legend(names).items())


def _swept(plan: Plan, found: Found) -> str:
    """The main observables with their standard errors in brackets."""
    names = [name for name in plan.headline if any(name in seen for _, seen in found)]
    rows = [(*place.values(), *(_with_error(seen.get(name)) for name in names)) for place, seen in found]
    return present.table((plan.control, "direction", *names), rows)


def _with_error(one: Summary | None) -> str:
    if one is None:
        return ""
    return _mean(one) + ("" if one.standard_error is None else f" ({_shown(one.standard_error, 2)})")


def _mean(one: Summary) -> str:
    """To two digits of its error."""
    error = one.standard_error or one.mcse
    places = 1 - math.floor(math.log10(error)) if error else _PLACES + 1
    if places > _PLACES:
        return _shown(one.mean, _DIGITS)
    return f"{round(one.mean, places):.{max(places, 0)}f}"


def _shown(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}g}"
