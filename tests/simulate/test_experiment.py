"""One experiment from its description: methods agree, runs go on in the same bits, and what cannot be is refused."""

from dataclasses import replace

import pytest
import torch
from sympy import Rational

from derive.action import SetupError
from numerics.store import Record, Store
from simulate import experiment, message_passing, models, table
from simulate.experiment import Summary, run, summaries
from simulate.models import setup_of
from simulate.plan import METHODS, planned
from simulate.run import BudgetError, CheckpointError, device

HEAD = {"L": "8", "V": "3", "P": "60"}
WARM = {**HEAD, "T": "1/20"}
STUDENT = {"alpha": "3", "d": "60"}


def summary(made, records):
    ((_, found),) = summaries(made, records)
    return found


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
        made = plan(theory, values, method, start)
        records = list(run(made, range(2)))
        assert all(record.status == "ok" for record in records)
        means[method] = summary(made, records)
    assert observables <= means["lbfgs"].keys()
    for name in observables:
        one = means["lbfgs"][name]
        assert one.standard_error > 0
        assert [means[method][name].mean for method in ("gd", "adam")] == pytest.approx([one.mean] * 2, rel=1e-3)


def test_descent_takes_a_rate_that_both_starts_allow():
    """From zero the copying minimum is stiffer: a rate from the start alone never settles there."""
    (record,) = run(plan(values={"L": "16", "V": "4", "P": "200"}, method="gd", start="zero", steps=1000), [0])
    assert record.status == "ok"
    assert float(record.values["a_G"]) > 0.2


def test_message_passing_ends_where_descent_does():
    warm = {**STUDENT, "sigma": "1", "lambda": "4/5", "alpha": "6"}
    ends = [("message-passing", {}), ("message-passing", {"share": 0.5}), ("lbfgs", {})]
    found = [
        next(run(plan("positional-semantic", warm, method, "semantic", **options), [0])) for method, options in ends
    ]
    assert [float(one.values["e"]) for one in found] == pytest.approx([float(found[0].values["e"])] * 3, rel=1e-6)


def test_message_passing_that_goes_round_in_circles_stops_and_says_what_helps(monkeypatch):
    made = plan("positional-semantic", {**STUDENT, "alpha": "1"}, "message-passing", "semantic", tolerance=1e-12)
    slope = message_passing.value_and_gradient
    monkeypatch.setattr(
        message_passing, "value_and_gradient", lambda *where: (slope(*where)[0], torch.ones_like(where[1]))
    )
    (record,) = run(made, [0])
    assert float(record.values["steps"]) == 100
    assert "it no longer falls: take a smaller --share, such as 0.5" in record.status


# --- any model of the theory ---


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"A": "[[3/5,2/5],[1/5,4/5]]"}, {"q_1", "q_2", "theta_1", "theta_2", "m_1", "m_2"}),
        ({"L": "3", "r": "2"}, {"q_3_2", "theta_3_2", "m_3", "q_1_1"}),
        ({"r_s": "2"}, {"q_2_2", "theta_2", "m_2"}),
    ],
)
def test_any_model_of_the_theory_is_trained(values, names):
    made = plan("positional-semantic", {**STUDENT, **values}, start="semantic")
    (record,) = run(made, [0])
    assert record.status == "ok"
    assert names | {"e", "norm", "eps_g", "eps_lin"} <= record.values.keys()


def test_the_matrix_a_is_the_one_that_is_given():
    """With omega = 1 the teacher is A, which a linear map learns exactly but for its ridge; the student of A_11 does not."""
    fixed = {"omega": "1", "alpha": "20", "d": "40", "lambda": "1/1000000"}
    (ours,) = run(plan("positional-semantic", {**fixed, "A": "[[3/5,2/5],[1/5,4/5]]"}, start="positional"), [0])
    assert float(ours.values["eps_lin"]) < 1e-8
    assert float(ours.values["eps_g"]) > 1e-5
    alike = plan("positional-semantic", {**STUDENT, "A_11": "7/10"}, start="positional")
    assert (
        alike.about
        == plan("positional-semantic", {**STUDENT, "A": "[[7/10,3/10],[3/10,7/10]]"}, start="positional").about
    )


def test_overlaps_do_not_depend_on_the_rotation_of_the_student():
    made = plan("positional-semantic", {**STUDENT, "L": "3", "r": "2"}, start="semantic")
    prepared = models._positional_semantic(made, 0)
    state = prepared.begin(made.phases)
    Q, R = state.reshape(-1, 2), torch.linalg.qr(torch.randn(2, 2, dtype=torch.float64, generator=torch.Generator()))[0]
    turned, straight = dict(prepared.observe((Q @ R).reshape(1, -1))), dict(prepared.observe(state))
    assert turned.pop("eps_g") == pytest.approx(straight.pop("eps_g"), rel=1e-4)  # its points turn with Q
    assert turned == pytest.approx(straight, rel=1e-9)
    one = models._positional_semantic(plan("positional-semantic", STUDENT, start="semantic"), 0)
    state = one.begin(("semantic",))
    assert one.observe(-state) == pytest.approx(dict(one.observe(state)))
    assert one.observe(-state)["theta_1"] > 0


def test_the_two_signs_of_a_linear_head_are_one_state():
    made = plan("copy-head/linear", HEAD, start="copy")
    prepared = models._copy_head(made, 0)
    state = prepared.begin(made.phases)
    assert prepared.observe(-state) == pytest.approx(dict(prepared.observe(state)))


# --- heads, restarts, sweeps ---


def test_a_factored_head_of_full_rank_with_w_in_the_state_reaches_the_loss_of_the_merged_one():
    """At the weakest ridge on scores, that of G and that of its factors do not matter, and W is the same at T = 0."""
    loose = {**HEAD, "gamma_g": "1/10000"}
    merged, joint = (next(run(plan(values=loose, **options), [0])) for options in ({}, {"joint": True}))
    assert float(joint.values["energy"]) == pytest.approx(float(merged.values["energy"]), rel=1e-3)
    (factored,) = run(plan(rank=2), [0])
    assert factored.status == "ok"
    assert factored.values != merged.values


def test_a_norm_that_rounding_does_not_allow_leaves_what_was_reached():
    (record,) = run(plan(tolerance=1e-300), [0])
    (whole,) = run(plan(), [0])
    assert "the gradient norm is" in record.status
    assert "or more" in record.status
    assert float(record.values["energy"]) == pytest.approx(float(whole.values["energy"]), rel=1e-9)


def test_exact_whole_numbers_are_dimensions_and_simulations_may_have_many_fields():
    made = plan("positional-semantic", {"alpha": "2", "d": "2e1", "r": "9"}, start="semantic")
    assert made.numbers["d"] == 20
    (record,) = run(made, [0])
    assert "q_2_9" in record.values


def test_the_device_is_the_one_that_was_found():
    assert plan(on="auto").on == str(device("auto")) != "auto"


def test_every_observable_is_explained():
    plans = [
        plan(restarts=2),
        plan(method="gd", steps=2),
        plan(values={"L": "16", "V": "4", "P": "100", "T": "1/10"}, method="mala", start=None, steps=100),
        plan("positional-semantic", STUDENT, start="semantic", restarts=2),
        plan("positional-semantic", {**STUDENT, "L": "3", "r": "2"}, "gd", "semantic", steps=2),
    ]
    for made in plans:
        names = summary(made, list(run(made, [0]))).keys()
        assert all(models.family_of(made.setup.theory).legend(names).values())


def test_several_starts_are_as_many_restarts():
    made = plan(start="zero,copy")
    assert made.phases == ("zero", "copy")
    (record,) = run(made, [0])
    ends = [float(next(run(plan(start=start), [0])).values["energy"]) for start in ("zero", "copy")]
    assert float(record.values["energy"]) == pytest.approx(min(ends), rel=1e-9)


def test_restarts_keep_the_lowest_and_say_how_many_are_above_it():
    made = plan("copy-head/linear", {"L": "8", "V": "3", "P": "40"}, start="zero", restarts=5)
    (record,) = run(made, [0])
    singles = []
    for row in range(5):
        prepared = models._copy_head(made, 0)
        start = prepared.begin(made.phases)[row : row + 1]
        singles.append(experiment.polish(prepared.one, start, 1e-5).energy)
    assert float(record.values["energy"]) == pytest.approx(min(singles), rel=1e-9)
    assert float(record.values["trapped"]) == sum(one > min(singles) + 1e-4 for one in singles) / 5 > 0
    assert float(record.values["excess"]) == pytest.approx(max(singles) - min(singles), rel=1e-6)
    (batched,) = run(plan("copy-head/linear", {"L": "8", "V": "3", "P": "40"}, "gd", "zero", restarts=3), [0])
    assert float(batched.values["trapped"]) <= 2 / 3


def test_a_sweep_up_and_down_finds_both_branches_between_the_spinodals(tmp_path):
    made = planned("copy-head/softmax", {"L": "32", "V": "8"}, ladder=(Rational(250), Rational(350), Rational(400)))
    store = Store.create(tmp_path, made.about)
    records = list(run(made, [0], store))
    found = {(place["P"], place["direction"]): one for place, one in summaries(made, records)}
    gap, energy = ({key: one[name].mean for key, one in found.items()} for name in ("a_G", "energy"))
    for P in ("250", "400"):
        assert gap[P, "up"] == pytest.approx(gap[P, "down"], abs=1e-5)
    assert gap["350", "up"] < 0.02 < 0.15 < gap["350", "down"]
    assert energy["350", "down"] < energy["350", "up"] - 1
    assert [one.values for one in run(made, [0], store)] == [one.values for one in records]


# --- chains ---


def test_chains_that_meet_have_the_law_of_one_phase_whatever_they_begin_in():
    """At P below all transitions: both starts fall into one minimum, and the diagnosis says that the chains have met."""
    warm = {"L": "6", "V": "3", "P": "10", "T": "1"}
    made = plan(values=warm, method="langevin", start=None, steps=3000)
    assert made.method == "mala"
    assert made.phases == ("zero", "copy", "zero", "copy")
    (record,) = run(made, [0])
    assert record.status == "ok"
    assert 0.3 < float(record.values["accepted"]) < 1
    assert not [name for name in record.values if name.startswith("in_")]
    found = summary(made, [record])
    assert found["s"].standard_error is None
    assert found["s"].mcse == pytest.approx(float(record.errors["s"]))
    assert found["s"].r_hat <= 1.01
    assert min(found["s"].ess_bulk, found["s"].ess_tail) >= 400
    (other,) = run(plan(values=warm, method="ula", start="copy", steps=2000, rate=0.03), [0])
    error = (found["s"].mcse ** 2 + float(other.errors["s"]) ** 2) ** 0.5
    assert abs(float(other.values["s"]) - found["s"].mean) < 4 * error


def test_chains_in_two_phases_never_meet_and_say_so():
    cold = {"L": "32", "V": "8", "P": "330", "T": "1/100"}
    made = plan(values=cold, method="mala", start=None, steps=60, chains=2)
    (record,) = run(made, [0])
    assert float(record.values["in_copy_from_zero"]) == 0
    assert float(record.values["in_copy_from_copy"]) == 1
    assert "chains have not met" in record.status
    assert "near a first-order transition chains do not cross (in_copy_from_zero = 0" in record.status


def test_a_chain_that_cannot_move_has_not_reached_anything():
    (record,) = run(plan(values=WARM, method="mala", steps=100, rate=1e9), [0])
    assert "take a smaller rate" in record.status


def test_mini_batches_have_w_in_the_state():
    made = plan(values=WARM, method="sgld", steps=100, batch=20)
    assert made.numbers["joint"] is True
    (record,) = run(made, [0])
    whole = next(run(plan(values=WARM, method="sgld", steps=100, batch=60), [0]))
    assert record.values["s"] != whole.values["s"]


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
    short = plan(method="gd", rate=0.05, steps=7)
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
        (lambda: plan(method="langevin"), "T = 0 has nothing to sample"),
        (lambda: plan(method="message-passing"), "no method .message-passing"),
        (lambda: plan("positional-semantic", {"d": "60"}, start="random"), "needs alpha"),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "x"}, start="random"), "d: "),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "7/2"}, start="random"), "whole number of dimensions"),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "0"}, start="random"), "must satisfy d >= 3"),
        (lambda: plan("positional-semantic", {"alpha": "1", "d": "3", "r": "2"}, start="random"), "satisfy d >= 4"),
        (lambda: plan("positional-semantic", {"alpha": "1", "r": "33"}, start="random"), "more than 64"),
        (lambda: plan("positional-semantic", STUDENT, start="copy"), "no start 'copy'"),
        (lambda: plan("copy-head/softmax-relaxed"), "no trained head"),
        (lambda: plan("positional-semantic", STUDENT, "mala", "semantic"), "no method 'mala' for positional-semantic"),
        (lambda: plan("positional-semantic", STUDENT, start="semantic", rank=2), "takes no rank"),
        (lambda: plan("positional-semantic", {**STUDENT, "A": "[[1]]"}, start="semantic"), "A is 1 x 1"),
        (lambda: plan(batch=5), "takes no batch"),
        (lambda: plan(rank=0), "rank = 0 must be at least 1"),
        (lambda: plan(restarts=0), "restarts = 0 must be at least 1"),
        (lambda: plan(chunk=0), "chunk = 0 must be at least 1"),
        (lambda: plan(tolerance=float("nan")), "must be positive and finite"),
        (lambda: plan(tolerance=1e300), "at most 0.01: a start would pass for a minimum"),
        (lambda: plan(method="gd", rate=0.0), "must be positive and finite"),
        (lambda: plan(values=WARM, method="mala", chains=1), "two or more"),
        (lambda: plan(values=WARM, method="sgld", batch=0), "batch = 0 must be at least 1"),
        (lambda: plan(values=WARM, method="sgld", batch=61), "must have from 1 to 60"),
        (lambda: plan(values=WARM, method="ula", steps=9), "fewer than 4 draws"),
        (lambda: plan(start="zero,copy", restarts=1), "names 2 starts; take --restarts 2 or more"),
        (
            lambda: plan("positional-semantic", STUDENT, "message-passing", "semantic,random"),
            "message-passing takes one",
        ),
        (lambda: plan(ladder=(Rational(1),)), "no P of its own"),
        (lambda: plan(values={"L": "8", "V": "3"}, ladder=(Rational(7, 2),)), "whole number"),
        (lambda: setup_of("classical/ising", {}), "no experiment"),
    ],
)
def test_bad_input_is_refused_before_anything_is_done(made, message):
    with pytest.raises(SetupError, match=message):
        made()


def test_what_needs_too_much_memory_is_refused_with_a_chunk_that_fits():
    with pytest.raises(BudgetError, match="GiB"):
        plan("positional-semantic", {"alpha": "100", "d": "20000"}, start="semantic")
    wide = {"L": "64", "V": "32", "P": "100000"}
    with pytest.raises(BudgetError, match=r"chunk=[0-9]+ fits"):
        plan(values=wide, chunk=100_000)
    with pytest.raises(BudgetError, match="take fewer or shorter sequences"):
        plan(values={**HEAD, "P": "1e30"})
    with pytest.raises(BudgetError, match="smaller or fewer states"):
        plan(rank=1_000_000)
    assert plan(values=wide, chunk=500).numbers["chunk"] == 500


def test_a_run_that_blows_up_is_a_record_and_the_others_go_on(monkeypatch):
    prepare, made = models._copy_head, plan(method="gd")

    def hostile(plan, seed):
        prepared = prepare(plan, seed)
        return replace(prepared, energy=lambda theta: prepared.energy(theta) / (seed - 1)) if seed == 1 else prepared

    monkeypatch.setitem(models._FAMILIES, "copy-head", replace(models._FAMILIES["copy-head"], prepare=hostile))
    records = list(run(made, range(3)))
    assert [record.status == "ok" for record in records] == [True, False, True]
    assert "seed 1: the energy of row 0 is not finite" in records[1].status
    assert summary(made, records)["s"].standard_error > 0
    (record,) = run(plan("positional-semantic", STUDENT, "gd", "semantic", rate=1e200), [0])
    assert "after step" in record.status


def test_the_description_tells_experiments_apart():
    made = plan()
    others = [plan(method="gd"), plan(restarts=5), plan(rank=3), plan(values={**HEAD, "P": "61"}), plan(start="zero")]
    assert all(other.about != made.about for other in others)
    assert len(METHODS) == len(set(METHODS))
    assert isinstance(next(iter(run(made, [0]))), Record)


def test_two_workers_find_the_same():
    one = plan(method="lbfgs")
    alone, spread = (list(run(one, range(2), workers=workers)) for workers in (1, 2))
    assert [record.values for record in alone] == [record.values for record in spread]


def test_means_have_two_digits_of_their_error():
    texts = {
        Summary(0.123456, 0.00321): "0.1235",
        Summary(-123456.7, 3210.0): "-123500",
        Summary(1.0, 1e-17): "1",
        Summary(0.123456789): "0.12345679",
        Summary(0.123456, None, mcse=0.01): "0.123",
    }
    for one, text in texts.items():
        assert table.as_text(plan(), [({}, {"energy": one})]).splitlines()[2].split()[1] == text
    assert table.as_text(plan(), [({}, {})]) == ""
