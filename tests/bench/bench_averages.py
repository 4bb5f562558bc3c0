"""Benchmarks of the averages of state evolution, `make bench`: by digits, by branch, and against a smooth product rule."""

import numpy as np
import pytest

from numerics.averages import Ensemble, GaussHermite, QuasiMonteCarlo, Split, Substitution, jumps
from numerics.averages.proximal import competing, minimise
from tests.numerics import fields

POSITIONAL, LATE = np.array(fields.POSITIONAL), np.array(fields.LATE)


@pytest.fixture(scope="module")
def ensemble():
    return Ensemble.compile(fields.attention(), fields.OVERLAPS)


def deviation(ensemble, values, sums):
    """The largest deviation from a finer rule, relative to the averages of the absolute value."""
    fine = Split(0.6, 20, 6.5).sums(ensemble, values)
    return float((np.abs(sums.values - fine.values)[fine.scales > 0] / fine.scales[fine.scales > 0]).max())


@pytest.mark.parametrize(("digits", "rule"), [(4, Split()), (5, Split().refined()), (6, Split(0.65, 18, 6.0))])
def bench_positional(benchmark, ensemble, digits, rule):
    sums = benchmark(rule.sums, ensemble, POSITIONAL)
    assert deviation(ensemble, POSITIONAL, sums) < 10.0**-digits


@pytest.mark.parametrize(
    ("digits", "rule"),
    [(4, Split()), (6, Split(0.65, 18, 6.0)), (6, Substitution(64, 0.4))],
)
def bench_semantic(benchmark, ensemble, digits, rule):
    sums = benchmark(rule.sums, ensemble, LATE)
    assert deviation(ensemble, LATE, sums) < 10.0**-digits


def bench_with_errors(benchmark, ensemble):
    estimate = benchmark(Split(), ensemble, POSITIONAL)
    assert (estimate.errors[[0, 1, 3, 4]] > 0).all()


@pytest.mark.parametrize("rule", [GaussHermite(12), QuasiMonteCarlo(11)])
def bench_smooth_rules(benchmark, ensemble, rule):
    """For comparison: these do not get beyond two or three digits here."""
    assert deviation(ensemble, POSITIONAL, benchmark(rule.sums, ensemble, POSITIONAL)) > 1e-4


def bench_jumps(benchmark, ensemble):
    assert benchmark(jumps, ensemble, POSITIONAL, Split()).values[0] == pytest.approx(0.0182, rel=0.02)


def bench_proximal_map(benchmark, ensemble):
    """10,000 global minimisations."""
    noise = np.random.default_rng(0).standard_normal((4, 10_000))
    x = ensemble.mean(POSITIONAL)[:, None] + np.linalg.cholesky(ensemble.covariance(POSITIONAL)) @ noise
    center, loss = ensemble.center(x, POSITIONAL), ensemble.loss(x, POSITIONAL)
    images = competing(ensemble, POSITIONAL).images(center)
    found = benchmark(minimise, loss, center, np.linalg.inv(ensemble.width(POSITIONAL)), images)
    assert (found.sheet > 0).any()
