"""The map from expressions to checks, and what the rows of the cross-check cost."""

from dataclasses import replace

import pytest

from derive.catalogue import THEORIES, find
from simulate.crosscheck import heads, softmax, table
from simulate.crosscheck.claims import tasks
from simulate.crosscheck.registry import CLAIMS, Entry, chosen, entries
from tests.simulate.crosscheck.invented import CLAIM


@pytest.mark.parametrize("theory", THEORIES, ids=lambda theory: theory.name)
def test_every_exported_expression_has_an_independent_check(theory):
    unchecked = [entry.expression for entry in entries(theory) if not entry.checked]
    assert not unchecked


@pytest.mark.parametrize("theory", THEORIES, ids=lambda theory: theory.name)
def test_what_the_solvers_receive_is_a_checked_expression_with_a_row(theory):
    """The action or potential, from which updates and all else follow."""
    derivation, value = theory.derivation(), theory.problem().value
    tested = [entry.expression for entry in entries(theory) if entry.checks and entry.claims]
    assert any(derivation.value(expression) == value for expression in tested)


def test_an_expression_without_a_check_is_seen():
    assert not Entry("a theory", "an expression", (), ()).checked
    assert "NONE" in table.listed([Entry("a theory", "an expression", (), ())])


def test_a_row_about_an_expression_that_is_not_there_is_refused():
    with pytest.raises(KeyError, match="no step 'another action'"):
        entries(find("copy-head/softmax"), [replace(CLAIM, steps=("another action",))])


def test_rows_have_names_of_their_own_and_something_to_measure():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.cases
        assert min(claim.seeds, claim.quick_seeds) >= 2
        assert all(claim.bars(case) for case in (*claim.cases, *claim.quick))
        assert {case.experiment.partition("/")[0] for case in claim.cases} == {claim.theory.partition("/")[0]}


def test_bars_near_the_transition_are_for_cases_near_it():
    """The wider tolerance is for what lies within 20 % of the derived transition only."""
    at = heads.case("softmax", L=32, V=8)
    ((transition, _),) = softmax.coexistence(find("copy-head/softmax"), at).values()
    for name, near in (("softmax branches", False), ("softmax branches near the transition", True)):
        (claim,) = chosen([], name)
        assert {abs(int(case.parameters["P"]) / transition - 1) < 0.2 for case in claim.cases} == {near}


def test_every_theory_has_a_quick_row():
    assert {claim.theory for claim in CLAIMS if claim.quick} == {theory.name for theory in THEORIES}


def test_the_budgets():
    """Quick under three minutes and in full under a hundred, on two cores, with as much again for the theory."""

    def seconds(quick):  # what claims share is measured once
        each = {tuple(task.inputs.values()): claim.seconds for claim in CLAIMS for task in tasks([claim], quick)}
        return sum(each.values())

    assert seconds(quick=True) < 180
    assert seconds(quick=False) < 6000
    assert "150 s" in table.budgets([replace(CLAIM, seconds=50.0)], quick=True)


def test_rows_are_chosen_by_theory_and_name():
    assert {claim.theory for claim in chosen(["copy-head/linear"])} == {"copy-head/linear"}
    assert [claim.name for claim in chosen([], "message passing")] == ["message passing"]
    assert all(claim.quick for claim in chosen([], quick=True))
    with pytest.raises(LookupError, match="here; did you mean 'linear minimum' or 'linear "):
        chosen(["copy-head/linear"], "linear minimun")
    with pytest.raises(LookupError, match=r"here; did you mean 'softmax branches' or .*--list names every row"):
        chosen([], "softmax brnches")
    with pytest.raises(LookupError, match="there is no quick row here; there is none at all"):
        chosen(["a theory"], quick=True)
    with pytest.raises(LookupError, match="no quick row"):
        chosen([], "random starts", quick=True)
