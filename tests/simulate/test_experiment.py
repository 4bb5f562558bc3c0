"""One experiment from its description: methods agree, runs go on in the same bits, and what cannot be is refused."""

from dataclasses import replace

import pytest
import torch

from derive.action import SetupError
from numerics.store import Record, Store
from simulate.experiment import METHODS, Plan, planned, run, summary
from simulate.run import BudgetError, CheckpointError, DivergedError

HEAD = {"L": "8", "V": "3", "P": "60"}
STUDENT = {"alpha": "3", "d": "60"}


def plan(theory="copy-head/softmax", values=HEAD, method="lbfgs", start="copy", **options):
    return planned(theory, values, method, start, **options)


@pytest.mark.parametrize(
    ("theory", "values", "start", "observables"),
    [
        ("copy-head/softmax", HEAD, "copy", {"energy", "a_G", "s", "loss"}),
        ("positional-semantic", STUDENT, "semantic", {"q_1", "theta_2", "m_1", "e", "eps_g"}),
    ],
)
def test_descent_adam_and_lbfgs_end_in_one_minimum(theory, values, start, observables):
    means = {}
    for method in ("lbfgs", "gd", "adam"):
        records = list(run(plan(theory, values, method, start), range(2)))
        assert all(record.status == "ok" for record in records)
        means[method] = summary(records)
    assert observables <= means["lbfgs"].keys()
    for name in observables:
        value, error = means["lbfgs"][name]
        assert error > 0
        assert [means[method][name][0] for method in ("gd", "adam")] == pytest.approx([value] * 2, rel=1e-3)


def test_a_chain_and_message_passing():
    (chain,) = run(plan(values={**HEAD, "T": "0.05"}, method="langevin", steps=200), [0])
    assert 0.3 < float(chain.values["accepted"]) < 1
    assert summary([chain])["s"][1] is None
    warm = {**STUDENT, "sigma": "1", "lambda": "4/5", "alpha": "6"}
    (passed,) = run(plan("positional-semantic", warm, "message-passing", "semantic"), [0])
    (descended,) = run(plan("positional-semantic", warm, "lbfgs", "semantic"), [0])
    assert float(passed.values["e"]) == pytest.approx(float(descended.values["e"]), rel=1e-6)


def test_a_store_is_gone_on_with(tmp_path):
    store, made = Store.create(tmp_path, plan().about), plan()
    first = list(run(made, range(2), store))
    again = list(run(made, range(3), store))
    assert [record.values for record in again[:2]] == [record.values for record in first]
    assert len(list(store.records())) == 3


def test_a_run_that_is_stopped_ends_in_the_same_bits(tmp_path, monkeypatch):
    made = plan(method="gd", rate=0.05)
    (whole,) = run(made, [0])
    store = Store.create(tmp_path, made.about)
    save, written = torch.save, []

    def interrupted(*arguments):
        save(*arguments)
        written.append(1)

    monkeypatch.setattr(torch, "save", interrupted)
    short = Plan(made.setup, "gd", "copy", rate=0.05, steps=7)
    (early,) = run(short, [0], Store(store.folder))  # leaves a checkpoint after seven steps
    assert early.status.startswith("the gradient norm is")
    assert written
    (resumed,) = run(made, [0], store)
    assert resumed.values == whole.values


def test_a_checkpoint_of_another_setup_is_refused(tmp_path):
    made = plan(method="gd")
    store = Store.create(tmp_path, {})
    list(run(made, [0], store))
    other = plan(values={**HEAD, "P": "61"}, method="gd")
    with pytest.raises(CheckpointError, match="belongs to a run with"):
        list(run(other, [0], store))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: plan(values={**HEAD, "P": "60.5"}), "whole number"),
        (lambda: plan(values={**HEAD, "P": "1/2"}), "whole number"),
        (lambda: plan(values={"L": "8", "V": "3"}), "needs P"),
        (lambda: plan(method="sgd"), "no method 'sgd'"),
        (lambda: plan(start="semantic"), "no start 'semantic'.*zero, copy"),
        (lambda: plan(on="tpu"), "the devices are cpu"),
        (lambda: plan(method="langevin"), "at T = 0 there is nothing to sample"),
        (lambda: plan(method="message-passing"), "no message passing"),
        (lambda: plan("positional-semantic", {"d": "60"}, start="random"), "needs alpha"),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "x"}, start="random"), "whole number of dimensions"),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "2"}, start="random"), "needs a whole number"),
        (lambda: plan("positional-semantic", STUDENT, start="copy"), "no start 'copy'"),
        (lambda: plan("copy-head/softmax-relaxed"), "no trained head"),
    ],
)
def test_bad_input(made, message):
    with pytest.raises(ValueError, match=message):
        list(run(made(), [0]))


def test_what_has_no_experiment_needs_too_much_or_blows_up():
    with pytest.raises(SetupError, match="no experiment"):
        planned("classical/ising", {})
    with pytest.raises(BudgetError, match="GiB"):
        list(run(plan("positional-semantic", {"alpha": "100", "d": "20000"}, start="semantic"), [0]))
    with pytest.raises(DivergedError, match="after step"):
        list(run(plan("positional-semantic", STUDENT, "gd", "semantic", rate=1e200), [0]))


def test_the_description_tells_experiments_apart():
    made = plan()
    others = [replace(made, method="gd"), replace(made, steps=5), plan(values={**HEAD, "P": "61"})]
    assert all(other.about != made.about for other in others)
    assert len(METHODS) == len(set(METHODS))
    assert isinstance(next(iter(run(made, [0]))), Record)
