r"""One experiment from its description: a theory's setup trained or sampled for some seeds, and what is observed.

.. math:: \hat O = \frac{1}{S} \sum_{s=1}^{S} O(\theta_s), \qquad
          \theta_s = \mathrm{argmin}_k E_s(\theta_k) \;\text{ or }\; O(\theta_s) \to \langle O \rangle_s
          \text{ over chains } k

Every seed is one data set. Its rows are restarts, of which the lowest counts, or chains, which begin in every phase.
Every seed is a record of a store as soon as it is done; a run that goes step by step leaves a checkpoint beside it, so
that one that is stopped goes on in the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from derive.copy_head.model import T
from numerics.processes import worked
from numerics.store import Record, Store
from simulate.langevin import Diagnosis, Langevin, Metropolis, StochasticLangevin, diagnose, occupation
from simulate.models import SAMPLERS, Prepared, Values, family_of
from simulate.optimise import Adam, GradientDescent, UnfinishedError, hysteresis, polish, settled
from simulate.plan import BURN, THIN, Plan, at
from simulate.run import BudgetError, Method, Noise, Tensors, drive, stiffness, threads
from simulate.verdict import estimate

__all__ = ["Summary", "run", "summaries"]

_RATES = {"gd": 0.5, "ula": 0.2, "sgld": 0.05, "mala": 2.0}
"""In units of one over the largest curvature at the starts of descent or the minima of chains; of the law of an unadjusted
chain the stiffest variance is off by half of it. With Metropolis' test also of dimension^(-1/3): most moves are accepted."""
_HORIZON = 0.25
"""The share of the steps after which a decreasing step falls off."""
_PHASE = 1e-4
"""The gradient norm at which chains begin."""
_SAME_MINIMUM, _SAME_PHASE = 1e-6, 1e-2
"""Energies, relative, and order parameters that differ by less are of one minimum and of one phase."""
_APART = 0.5
"""Shares of the draws that differ by more are of chains that stay where they began."""
_ROUNDING = 1e-12
_MET, _ENOUGH = 1.01, 400
"""The largest R-hat and the smallest effective size of chains that agree (Vehtari et al. 2021)."""


@dataclass(frozen=True)
class _Found:
    """What is observed at the end of a run, with the errors of sampling, and how it ended."""

    values: Values = field(default_factory=dict)
    errors: Values = field(default_factory=dict)
    status: str = "ok"


def run(
    plan: Plan, seeds: Sequence[int], store: Store | None = None, quiet: bool = True, workers: int = 1
) -> Iterator[Record]:
    """The records of all seeds, each on one thread of one of the ``workers``, those that ``store`` holds looked up.

    The status says if a descent did not arrive, if chains have not met or if a run broke down: the other seeds go on.
    Raises `CheckpointError` for a checkpoint of something else, and `SolverError` where a worker is killed.
    """
    there = {seed: _held(plan, seed, store) for seed in seeds}
    left = [seed for seed, records in there.items() if not records]
    folder = None if store is None else store.folder
    made = worked(partial(_made, plan, folder, quiet or workers > 1), left, workers)
    for records in there.values():
        if not records:
            records = next(made)
            if store is not None:
                store.append(records)
        yield from records


_KIND = "run"


def _inputs(plan: Plan, seed: int) -> list[dict[str, str]]:
    """What tells the records of one seed from all others."""
    return [{**plan.about, "seed": str(seed), **place} for place in plan.places]


def _held(plan: Plan, seed: int, store: Store | None) -> list[Record]:
    """All records of a seed; none where one is missing."""
    found = [None if store is None else store.get(_KIND, each) for each in _inputs(plan, seed)]
    return [record for record in found if record is not None] if all(found) else []


def _made(plan: Plan, folder: Path | None, quiet: bool, seed: int) -> list[Record]:
    begin = time.perf_counter()
    with threads(1):
        found = _done(plan, seed, None if folder is None else folder / f"seed-{seed}.pt", quiet)
    made_with = {"torch": torch.__version__, "threads": "1"}
    seconds = (time.perf_counter() - begin) / len(found)
    return [
        Record(_KIND, inputs, _texts(one.values), _texts(one.errors), one.status, "", made_with, seconds)
        for inputs, one in zip(_inputs(plan, seed), found, strict=True)
    ]


def _texts(values: Values) -> dict[str, str]:
    return {name: repr(value) for name, value in values.items()}


def _done(plan: Plan, seed: int, checkpoint: Path | None, quiet: bool) -> list[_Found]:
    """What is found at every place of the plan."""
    try:
        if plan.ladder:
            return _swept(plan, seed)
        prepared = family_of(plan.setup.theory).prepare(plan, seed)
        if plan.method == "lbfgs":
            return [_polished(plan, prepared)]
        driven = _sampled if plan.method in SAMPLERS else _descended
        return [driven(plan, prepared, checkpoint, quiet)]
    except torch.OutOfMemoryError:
        raise BudgetError(f"{plan.on} has no memory left; give a smaller chunk, or fewer rows") from None
    except ArithmeticError as error:
        return [_Found(status=f"seed {seed}: {error}")] * len(plan.places)


# --- training ---


def _polished(plan: Plan, prepared: Prepared) -> _Found:
    """The lowest of the minima that L-BFGS reaches; where it reaches none, of the states where it stopped."""
    minima, missed = [], []
    for start in torch.split(prepared.begin(plan.phases), 1):
        try:
            minima.append(polish(prepared.one, start, plan.numbers["tolerance"]))
        except UnfinishedError as error:
            missed.append(error)
    ends = minima or [error.end for error in missed if error.end is not None]
    best = min(ends, key=lambda end: end.energy)
    status = f"{len(missed)} of {len(plan.phases)} starts: {missed[0]}" if missed else "ok"
    return _Found({**prepared.observe(best.theta), **_filtered([one.energy for one in ends])}, status=status)


def _descended(plan: Plan, prepared: Prepared, checkpoint: Path | None, quiet: bool) -> _Found:
    """The lowest of the rows after all of them have settled."""
    until, start = settled(plan.numbers["tolerance"]), prepared.begin(plan.phases)
    curvature = math.nan
    if plan.method == "gd" and plan.numbers["rate"] is None:
        every = family_of(plan.setup.theory).starts
        curvature = max(_stiffest(prepared, prepared.begin([phase] * len(start))[:1]) for phase in every)
    method, passing = _method(plan, prepared, curvature), prepared.passing
    ended = drive(
        method,
        start,
        plan.numbers["steps"],
        until=until if passing is None else lambda now: until(now) or passing.stalled(now),
        about=_kept(plan, prepared),
        checkpoint=checkpoint,
        quiet=quiet,
    )
    energies, norm = ended.now["energy"], float(ended.now["gradient"].norm(dim=-1).max())
    best = int(energies.argmin())
    values = {**prepared.observe(ended.now["theta"][best : best + 1]), **_filtered(energies.tolist())}
    found = {**values, "gradient_norm": norm, "steps": float(ended.count)}
    if until(ended.now):
        return _Found(found)
    short = f"the gradient norm is {norm:.2g} after {ended.count} steps"
    if passing is None:
        return _Found(found, status=f"{short}; take more")
    way = "it no longer falls: take" if passing.stalled(ended.now) else "take more, or"
    return _Found(found, status=f"{short}; {way} a smaller --share, such as {passing.share / 2:g}, or a larger lambda")


def _filtered(energies: Sequence[float]) -> Values:
    """Which share of the restarts is ``trapped`` above the lowest minimum, and how high the highest is above it."""
    if len(energies) == 1:
        return {}
    lowest = min(energies)
    above = [energy - lowest > _SAME_MINIMUM * max(1.0, abs(lowest)) for energy in energies]
    return {"trapped": sum(above) / len(above), "excess": max(energies) - lowest}


def _swept(plan: Plan, seed: int) -> list[_Found]:
    """The minima on the way up and on the way down, each begun where the last ended."""
    rungs = [family_of(plan.setup.theory).prepare(at(plan, control), seed) for control in plan.ladder]
    start, noise = rungs[0].begin(plan.phases), Noise.of([seed], "sweep")
    ways = hysteresis([rung.one for rung in rungs], start, noise, tolerance=plan.numbers["tolerance"])
    return [_Found(rung.observe(end.theta)) for way in ways for rung, end in zip(rungs, way, strict=True)]


# --- sampling ---


def _sampled(plan: Plan, prepared: Prepared, checkpoint: Path | None, quiet: bool) -> _Found:
    """Means over chains that begin at the minima of their phases, and whether they have met."""
    assert prepared.each is not None
    steps, begun = plan.numbers["steps"], prepared.begin(plan.phases)
    rows = {phase: plan.phases.index(phase) for phase in plan.starts}
    minima = {phase: polish(prepared.one, begun[row : row + 1], _PHASE).theta for phase, row in rows.items()}
    start = torch.cat([minima[phase] for phase in plan.phases])
    places = prepared.each({"theta": start, "energy": prepared.energy(start)})["a_G"]
    curvature = max(_stiffest(prepared, minimum) for minimum in minima.values())
    # From the depth of a minimum, where most directions gain energy, Metropolis' test lets few moves go.
    start = start + math.sqrt(_temperature(plan) / curvature) * prepared.noise.normal(start)
    method = _method(plan, prepared, curvature)
    ended = drive(
        method,
        start,
        steps,
        observe=prepared.each,
        burn=int(BURN * steps),
        thin=THIN,
        about=_kept(plan, prepared),
        checkpoint=checkpoint,
        quiet=quiet,
    )
    means = {name: float(draws.mean()) for name, draws in ended.draws.items()}
    means |= _occupied(plan.phases, {phase: float(places[row]) for phase, row in rows.items()}, ended.draws["a_G"])
    if "accepted" in ended.now:
        means["accepted"] = float(ended.now["accepted"].mean()) / ended.count
    return _diagnosed(ended.draws, means)


def _diagnosed(draws: Tensors, means: Values) -> _Found:
    """The ``means`` with R-hat, effective sizes and errors of the ``draws`` of each observable that varies."""
    try:
        seen = {name: diagnose(each) for name, each in draws.items() if _varies(each)}
    except ValueError as error:
        return _Found(means, status=f"{error}; take a smaller rate")
    values = dict(means)
    for name, one in seen.items():
        values |= {f"{name}.r_hat": one.r_hat, f"{name}.ess_bulk": one.bulk, f"{name}.ess_tail": one.tail}
    return _Found(values, {name: one.error for name, one in seen.items()}, _met(seen, means))


def _varies(draws: Tensor) -> bool:
    """By more than rounding: the mass of a softmax does not."""
    return float(draws.max() - draws.min()) > _ROUNDING * float(draws.abs().max())


def _occupied(begun: Sequence[str], places: Values, draws: Tensor) -> Values:
    """The share of the draws in the phase of largest a_G, for each phase that chains begin in; none where those are one.

    ``places`` are the a_G of the minima: a draw belongs to the nearer one.
    """
    low, high = min(places.values()), max(places.values())
    if high - low < _SAME_PHASE:
        return {}
    top = max(places, key=lambda phase: places[phase])
    return {f"in_{top}_from_{phase}": x for phase, x in occupation(draws, begun, (low + high) / 2).items()}


def _met(seen: Mapping[str, Diagnosis], means: Values) -> str:
    """Whether chains that were ``seen`` agree, and if not, whether they stay in the phases that they began in."""
    if not seen:
        return "no chain moves; take a smaller rate"
    worst = max(seen, key=lambda name: seen[name].r_hat)
    fewest = min(min(one.bulk, one.tail) for one in seen.values())
    if seen[worst].r_hat <= _MET and fewest >= _ENOUGH:
        return "ok"
    status = (
        f"the chains have not met: R-hat is {seen[worst].r_hat:.3g} of {worst} (at most {_MET}), the least effective"
        f" size {fewest:.3g} (at least {_ENOUGH})"
    )
    shares = {name: share for name, share in means.items() if name.startswith("in_")}
    if shares and max(shares.values()) - min(shares.values()) > _APART:
        text = ", ".join(f"{name} = {share:.3g}" for name, share in shares.items())
        return f"{status}; near a first-order transition chains do not cross ({text}): begin in one phase to sample it"
    return f"{status}; take more steps or chains"


def _stiffest(prepared: Prepared, state: Tensor) -> float:
    """The size of the largest curvature, which at a saddle may be negative."""
    return abs(float(stiffness(prepared.one, state)))


def _temperature(plan: Plan) -> float:
    return float(plan.setup.values[T])


def _method(plan: Plan, prepared: Prepared, curvature: float) -> Method:
    """The method with the rate that is asked for, or one that the largest ``curvature`` allows."""
    if prepared.passing is not None:
        return prepared.passing
    rate = plan.numbers["rate"]
    if rate is None:
        rate = _RATES[plan.method] / curvature
        if plan.method == "mala":
            rate *= prepared.dimension ** (-1 / 3)
    if plan.method == "adam":
        return Adam(prepared.energy, rate)
    if plan.method == "gd":
        return GradientDescent(prepared.energy, rate)
    temperature = _temperature(plan)
    if prepared.estimate is not None:
        horizon = _HORIZON * plan.numbers["steps"]
        return StochasticLangevin(prepared.estimate, temperature, rate, prepared.noise, horizon)
    kind = Metropolis if plan.method == "mala" else Langevin
    return kind(prepared.energy, temperature, rate, prepared.noise)


def _kept(plan: Plan, prepared: Prepared) -> Mapping[str, str]:
    """What a checkpoint is made for."""
    return {"start": ", ".join(plan.starts), "batch": str(plan.numbers.get("batch")), **prepared.about}


# --- over the seeds ---


@dataclass(frozen=True)
class Summary:
    """An observable's mean over the seeds and its standard error, which a single seed does not have.

    Of chains also the part of it from sampling, the largest R-hat and the smallest effective sizes.
    """

    mean: float
    standard_error: float | None = None
    mcse: float | None = None
    r_hat: float | None = None
    ess_bulk: float | None = None
    ess_tail: float | None = None


def summaries(plan: Plan, records: Sequence[Record]) -> list[tuple[Mapping[str, str], dict[str, Summary]]]:
    """At every place of the plan, a summary of each observable; nothing of seeds that broke down."""
    return [(place, _summary([one for one in records if place.items() <= one.inputs.items()])) for place in plan.places]


def _summary(records: Sequence[Record]) -> dict[str, Summary]:
    found: dict[str, Summary] = {}
    for name in sorted({name for record in records for name in record.values if "." not in name}):
        samples = _column(records, name)
        errors = [float(record.errors[name]) for record in records if name in record.errors]
        found[name] = Summary(
            sum(samples) / len(samples),
            estimate(samples).error if len(samples) > 1 else None,
            math.hypot(*errors) / len(errors) if errors else None,
            max(_column(records, f"{name}.r_hat"), default=None),
            min(_column(records, f"{name}.ess_bulk"), default=None),
            min(_column(records, f"{name}.ess_tail"), default=None),
        )
    return found


def _column(records: Sequence[Record], name: str) -> list[float]:
    return [float(record.values[name]) for record in records if name in record.values]
