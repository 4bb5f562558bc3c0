"""The cross-check with errors planted in it: what agrees must stop agreeing."""

import math
from dataclasses import replace

import pytest
from sympy import Rational

from derive.catalogue import Theory, find
from derive.copy_head import linear, softmax
from derive.copy_head.model import DEFAULT
from numerics.store import Store
from simulate.crosscheck import heads, posterior
from simulate.crosscheck.claims import lines, measure, tasks
from simulate.crosscheck.registry import chosen
from simulate.run import Noise
from simulate.verdict import Bar, Outcome

FACTOR = Rational(21, 20)


class Raised(Theory):
    """A theory whose action is 5 % too large."""

    def action(self):
        action = super().action()
        return replace(action, value=FACTOR * action.value)


class Mistaken(Theory):
    """A theory of a model whose data term is 5 % too large, which moves its minima and transitions, too."""

    def action(self):
        build = softmax.action if self.name == "copy-head/softmax" else linear.action
        return build(replace(DEFAULT, loss_factor=FACTOR * DEFAULT.loss_factor))


def outcomes(claim, tmp_path, *kinds):
    """The outcomes of the quick row for the theory as it is and for the mutants, measured once."""
    store, theory = Store.create(tmp_path, {}), find(claim.theory)
    measure(tasks([claim], quick=True), store)
    for kind in (Theory, *kinds):
        mutant = kind(*(getattr(theory, name) for name in theory.__dataclass_fields__))
        yield {line.quantity: line.outcome for line in lines(claim, mutant, store, quick=True)}


def row(name, **changes):
    (claim,) = chosen([], name)
    return replace(claim, **changes)


def test_an_action_off_by_five_per_cent(tmp_path):
    claim = row("softmax branches", quick=(heads.case("softmax", {"start": "zero"}, L=32, V=8, P=250),))
    right, raised, mistaken = outcomes(claim, tmp_path, Raised, Mistaken)
    assert set(right.values()) == {Outcome.HOLDS}
    assert raised["energy"] is mistaken["energy"] is Outcome.FAILS


@pytest.mark.parametrize("kind", [Raised, Mistaken])
def test_a_linear_action_off_by_five_per_cent(tmp_path, kind):
    claim = row("linear minimum", quick=(heads.case("linear", L=24, V=4, P=80),))
    right, wrong = outcomes(claim, tmp_path, kind)
    assert set(right.values()) == {Outcome.HOLDS}
    assert wrong["energy"] is Outcome.FAILS


@pytest.mark.slow
def test_an_onset_off_by_five_per_cent(tmp_path):
    """The kinetic part and the data term balance at P_pool, which goes as one over the factor of the data."""
    right, wrong = outcomes(row("linear onset"), tmp_path, Mistaken)
    assert right["P"] is Outcome.HOLDS
    assert wrong["P"] is Outcome.FAILS


def test_noise_that_lacks_a_factor(tmp_path, monkeypatch):
    """sqrt(eta T) where the sampler needs sqrt(2 eta T): entries of the attention spread too little."""
    monkeypatch.setattr(posterior, "_BURN", 100)  # the chains begin near the minimum
    case = heads.case("softmax", {"start": "copy", "steps": 100}, L=24, V=6, P=400, T="0.05")
    expected = posterior.fluctuating(find("copy-head/softmax"), case)
    claim = row("softmax entries", quick=(case,), quick_seeds=2, expect=lambda theory, at: expected)
    (right,) = outcomes(claim, tmp_path / "right")
    normal = Noise.normal
    monkeypatch.setattr(Noise, "normal", lambda self, like: normal(self, like) / math.sqrt(2))
    (wrong,) = outcomes(claim, tmp_path / "wrong")
    for entries in ("copied", "other"):
        assert (right[entries], wrong[entries]) == (Outcome.HOLDS, Outcome.FAILS), entries


@pytest.mark.slow
def test_noise_of_mini_batches_that_lacks_a_factor(tmp_path, monkeypatch):
    """The same in a short run with W in the state, which has not forgotten that it began at the minimum."""
    how = {"start": "copy", "steps": 800, "batch": 50, "rate": "0.1"}
    case = heads.case("softmax", how, L=8, V=3, P=100, T="0.05")
    bars = {"warmth": Bar(0.2, "a short run")}
    claim = row("softmax posterior from mini-batches", quick=(case,), quick_seeds=3, bars=lambda at: bars)
    (right,) = outcomes(claim, tmp_path / "right")
    normal = Noise.normal
    monkeypatch.setattr(Noise, "normal", lambda self, like: normal(self, like) / math.sqrt(2))
    (wrong,) = outcomes(claim, tmp_path / "wrong")
    assert (right["warmth"], wrong["warmth"]) == (Outcome.HOLDS, Outcome.FAILS)


def test_the_sampler_is_the_one_of_the_simulators():
    assert posterior.Metropolis.__module__ == "simulate.langevin"
