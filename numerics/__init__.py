"""Expressions to numbers: landscapes, branches and transitions of an effective action.

``from numerics import transitions, minima`` imports a solver only when its name is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any

__all__ = ["Branch", "Number", "Point", "Points", "Status", "Transition", "Transitions", "minima", "transitions"]

_HOMES = MappingProxyType(
    {
        "minima": "numerics.stationary",
        "transitions": "numerics.transitions",
        "Branch": "numerics.continuation",
        **dict.fromkeys(("Number", "Point", "Points", "Status", "Transition", "Transitions"), "numerics.points"),
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'numerics' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
