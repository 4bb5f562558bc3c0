"""The points of experiments in a figure: trained and sampled models, for some seeds, without sight of a theory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulate import experiment
from simulate.crosscheck import registry
from simulate.crosscheck.claims import Case, Claim
from simulate.experiment import Summary
from simulate.plan import planned
from simulate.verdict import Estimate, estimate

__all__ = ["between", "compared", "measured"]


def measured(
    theory: str,
    values: Mapping[str, str],
    seeds: Sequence[int],
    say: Callable[[str], None],
    **how: Any,
) -> dict[str, Summary]:
    """Means and standard errors over ``seeds`` of what ``spinodal simulate`` observes."""
    plan = planned(theory, values, **how)
    say(f"{theory}: {plan.text}")
    ((_, found),) = experiment.summaries(plan, list(experiment.run(plan, seeds)))
    return found


def between(
    theory: str,
    values: Mapping[str, str],
    seeds: Sequence[int],
    say: Callable[[str], None],
    observable: str,
    starts: tuple[str, str],
    **how: Any,
) -> Estimate:
    """How much larger an observable is from the first start than from the second, on the same data of every seed.

    The data are most of what varies from seed to seed: in the difference that falls out.
    """
    ends = []
    for start in starts:
        plan = planned(theory, values, start=start, **how)
        say(f"{theory}: {plan.text}")
        ends.append([float(record.values[observable]) for record in experiment.run(plan, seeds)])
    return estimate([one - other for one, other in zip(*ends, strict=True)])


def compared(
    row: str, seeds: Sequence[int], say: Callable[[str], None], most: int | None = None
) -> list[tuple[Claim, Case, dict[str, Estimate]]]:
    """What a row of the cross-check measures in each of its cases (the first ``most``), for ``seeds``."""
    (claim,) = registry.chosen((), row)
    found = []
    for case in claim.cases[:most]:
        say(f"{row}: {case.text}")
        seen = [claim.measure(case, seed) for seed in seeds]
        found.append((claim, case, {name: estimate([one[name] for one in seen]) for name in seen[0]}))
    return found
