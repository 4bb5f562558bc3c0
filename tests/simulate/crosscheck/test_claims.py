"""The machinery: measurements that go on where they were, groups that are extrapolated, and failures that are said."""

import json
from dataclasses import replace

import pytest

from derive.action import SetupError
from derive.catalogue import find
from numerics.store import Store
from simulate.crosscheck import table
from simulate.crosscheck.claims import Case, left, lines, measure, tasks
from simulate.verdict import Outcome
from tests.simulate.crosscheck.invented import CLAIM, EXTRAPOLATED, broken, infinite, nothing

THEORY = find("copy-head/softmax")


@pytest.fixture
def store(tmp_path):
    return Store.create(tmp_path / "records", {"made": "here"})


def found(claim, store, quick=True):
    measure(tasks([claim], quick), store)
    return list(lines(claim, THEORY, store, quick))


def test_a_claim_that_holds(store):
    (line,) = found(CLAIM, store)
    assert line.outcome is Outcome.HOLDS
    assert line.case == "copy-head/softmax L=32 V=8 d=1000"
    assert line.verdict.measured.value == pytest.approx(1.01, abs=0.03)


def test_sizes_are_compared_one_by_one_or_extrapolated(store):
    each = found(CLAIM, store, quick=False)
    assert [line.verdict.measured.value for line in each] == pytest.approx([1.1, 1.05], abs=0.03)
    (line,) = found(EXTRAPOLATED, store)
    assert line.verdict.measured.value == pytest.approx(1.0, abs=0.05)
    assert line.case.endswith("d=100,200")


def test_measurements_are_shared_and_go_on_where_they_were(store):
    todo = tasks([CLAIM, EXTRAPOLATED], quick=False)
    assert len(todo) == 12  # the two claims ask for the same
    done = []
    measure(todo[:5], store, progress=done.append)
    assert left(todo, store) == todo[5:]
    measure(todo, store, progress=done.append)
    assert done == todo
    whole = Store.create(store.folder / "whole", {})
    measure(todo, whole)
    assert [r.values for r in whole.records()] == [r.values for r in store.records()]


def test_two_workers_measure_the_same(store, tmp_path):
    todo, other = tasks([CLAIM], quick=False), Store.create(tmp_path / "other", {})
    measure(todo, store)
    measure(todo, other, workers=2)
    assert [r.values for r in other.records()] == [r.values for r in store.records()]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (replace(CLAIM, measure=broken), "seed 0 broke down"),
        (replace(CLAIM, expect=nothing), "no such phase"),
        (replace(CLAIM, measure=infinite), "not finite"),
    ],
)
def test_what_breaks_down_fails_and_says_why(store, claim, reason):
    (line,) = found(claim, store)
    assert line.outcome is Outcome.FAILS
    assert reason in line.broken
    assert reason in table.verdicts([line])
    assert table.as_json(line)["verdict"] == "FAILS"


def deficient(theory, at):
    return {"x": (1.0, 0.0), "deficit": (0.25, 0.0)}


def test_what_the_theory_says_beside_is_reported_and_not_compared(store):
    (line,) = found(replace(CLAIM, expect=deficient, beside=("deficit",)), store)
    assert line.quantity == "x"
    assert "deficit = 0.25" in table.verdicts([line])
    assert table.as_json(line)["beside"] == {"deficit": 0.25}


def test_the_table_and_the_document(store):
    every = [*found(CLAIM, store), *found(EXTRAPOLATED, store)]
    text = table.verdicts(every)
    assert "1.0" in text
    assert "a test" in text
    assert "2 holds" in table.summary(every)
    documents = json.loads(json.dumps([table.as_json(line) for line in every]))
    assert all(document["verdict"] == "holds" for document in documents)
    assert {"claim", "theory", "measured", "standard_error", "tolerance", "reason", "power"} <= documents[0].keys()


def test_tolerances_name_the_quantities_that_they_are_for(store):
    (line,) = found(CLAIM, store)
    two = [replace(line, quantity=quantity) for quantity in ("a_1", "a_2")]
    assert "  invented, a_1, a_2: a test" in table.verdicts(two).splitlines()
    other = replace(line.verdict, reason="another")
    text = table.verdicts([two[0], replace(two[1], verdict=other)])
    assert {"  invented, a_1: a test", "  invented, a_2: another"} <= {*text.splitlines()}


def test_the_setup_of_a_case_is_that_of_its_model():
    setup = Case("copy-head/linear", {"L": "4", "V": "3", "P": "5"}).setup
    assert setup.as_text()["gamma_w"] == "1"
    with pytest.raises(SetupError, match="no parameter"):
        _ = Case("positional-semantic", {"L": "4"}).setup
