"""Scans over grids: exact axes, one record a point, and going on where it was stopped."""

import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from sympy import Rational

from derive.action import SetupError
from derive.catalogue import find
from numerics import batch, evolution_transitions
from numerics.points import CostError
from numerics.scan import Tally, about, blocks, grid, parse_axis, scan, solved, solved_together
from numerics.stationary import minima
from numerics.store import Store, StoreError
from numerics.transitions import transitions

ROOT = Path(__file__).parents[2]


def test_axes_are_exact():
    assert parse_axis("P=1/3:1:3").values == (Rational(1, 3), Rational(2, 3), 1)
    assert parse_axis("P=5:5:1").values == (5,)
    log = parse_axis("L=1:100:3:log").values
    assert (log[0], log[2]) == (1, 100)
    assert log[1] == 10
    names = [tuple(point.values()) for point in grid([parse_axis("a=1:2:2"), parse_axis("b=3:4:2")])]
    assert names == [(1, 3), (1, 4), (2, 3), (2, 4)]


@pytest.mark.parametrize(
    "text",
    [
        "P",
        "P=1:2",
        "P=2:1:3",
        "P=1:2:0",
        "P=1:2:2.5",
        "P=1:1:2",
        "P=1:2:3:lin",
        "P=0:2:3:log",
        "P=exit():2:3",
        "=1:2:3",
    ],
)
def test_bad_axes_are_refused(text):
    with pytest.raises(SetupError):
        parse_axis(text)


def test_a_grid_too_large_is_refused_before_its_values_are_made():
    axes = [parse_axis(f"{name}=1:2:1000000") for name in "ab"]
    with pytest.raises(SetupError, match="has 1000000000000 points"):
        grid(axes)
    assert not any("values" in vars(axis) for axis in axes)


def test_a_large_grid_makes_its_points_as_they_are_asked_for(monkeypatch):
    made = []
    monkeypatch.setattr("numerics.scan._between", lambda *of: made.append(of))
    points = grid([parse_axis("a=1:2:1000:log"), parse_axis("b=1:2:1000")])
    assert next(points)["b"] == 1
    assert next(points)["b"] == Rational(1000, 999)
    assert len(made) == 2


def softmax(axis):
    action = find("copy-head/softmax").action()
    line = parse_axis(axis)
    setups = [action.setup({"L": 32, "V": 8, **point}) for point in grid([line])]
    return action, setups, about("copy-head/softmax", action, setups[0], [line], 15)


def test_each_point_is_solved_once(tmp_path):
    action, setups, purpose = softmax("P=300:340:3")
    store = Store.create(tmp_path, purpose)
    first = scan(action, setups[:2], minima, store, 15)
    again = scan(action, setups, minima, store, 15)
    assert (first.solved, first.there, again.solved, again.there, again.amiss) == (2, 0, 1, 2, 0)
    record = list(store.records("point"))[1]
    assert record.inputs == {"L": "32", "V": "8", "gamma_w": "1", "gamma_g": "1", "T": "0", "P": "320"}
    expected = minima(action, setups[1])[0]
    assert record.values[f"0.{expected.name}.s"] == expected.order_parameters["s"].text
    assert record.errors[f"0.{expected.name}.s"] == expected.order_parameters["s"].bound
    assert len(record.made_with["expression"]) == 64


def heads(count):
    action, axes = find("copy-head/softmax").action(), (parse_axis("L=32:40:7"), parse_axis("V=7:8:2"))
    return action, [action.setup(point) for point in islice(grid(axes), count)]


def test_transitions_that_arrays_find_are_the_records_of_one_setup_by_itself(tmp_path, monkeypatch):
    by_itself, alone = batch._alone, []
    monkeypatch.setattr(batch, "_alone", lambda *about: alone.append(about[1]) or by_itself(*about))
    action, setups = heads(14)
    store = Store.create(tmp_path, {})
    assert scan(action, setups, transitions, store, 10) == Tally(14, 0, 0)
    by_arrays = [place for place, setup in enumerate(setups) if setup not in alone]
    records = list(store.records())
    for place in by_arrays[:: len(by_arrays) // 2]:
        assert replace(records[place], seconds=0) == replace(solved(action, setups[place], transitions, 10), seconds=0)


def test_a_setup_that_fails_among_others_is_a_record_and_they_are_solved(tmp_path, monkeypatch):
    action, setups = heads(2)

    def sometimes(action, setup, digits):
        if setup == setups[0]:
            raise ArithmeticError("lost")
        return transitions(action, setup, digits=digits)

    monkeypatch.setattr(batch, "transitions", sometimes)
    records = solved_together(action, setups, sometimes, 10)
    assert [record.status for record in records] == ["failed: lost", "ok"]


@pytest.mark.parametrize(
    "theory, solve, digits, most",
    [
        ("copy-head/softmax", transitions, 12, 2500),
        ("copy-head/softmax", transitions, 13, 1),
        ("copy-head/softmax", minima, 12, 1),
        ("copy-head/linear", transitions, 12, 1),
        ("positional-semantic", evolution_transitions.transitions, 5, 1),
    ],
)
def test_what_arrays_cannot_find_is_solved_one_by_one(theory, solve, digits, most):
    some = list(blocks(find(theory).problem(), solve, digits, range(2501)))
    assert max(map(len, some)) == most
    assert [place for block in some for place in block] == list(range(2501))


def test_another_grid_is_refused(tmp_path):
    Store.create(tmp_path, softmax("P=300:340:3")[2])
    with pytest.raises(StoreError, match="axes"):
        Store.create(tmp_path, softmax("P=300:340:4")[2])


@pytest.mark.parametrize("error, why", [(ArithmeticError("lost"), "lost"), (MemoryError(), "MemoryError")])
def test_a_failure_is_a_record_and_the_scan_goes_on(tmp_path, error, why):
    action, setups, purpose = softmax("P=300:340:3")

    def sometimes(action, setup, digits):
        if setup.control == 320:
            raise error
        return minima(action, setup, digits)

    store = Store.create(tmp_path, purpose)
    assert scan(action, setups, sometimes, store, 15).amiss == 1
    assert [record.status for record in store.records()] == ["ok", f"failed: {why}", "ok"]
    assert scan(action, setups, minima, store, 15) == Tally(0, 3, 1)
    assert scan(action, setups, minima, store, 15, retry=True) == Tally(1, 2, 0)


def test_what_no_rule_can_hold_is_no_failure_of_a_point(tmp_path):
    action, setups, purpose = softmax("P=300:340:3")

    def dear(*_, **__):
        raise CostError("too many nodes")

    store = Store.create(tmp_path, purpose)
    with pytest.raises(CostError, match="too many nodes"):
        scan(action, setups, dear, store, 15)
    assert store.count() == {}


def test_a_record_that_came_in_between_is_not_counted_as_solved(tmp_path):
    action, setups, purpose = softmax("P=300:340:3")
    store = Store.create(tmp_path, purpose)

    def overtaken(action, setup, digits):
        scan(action, [setup], minima, store, digits)
        return minima(action, setup, digits)

    assert scan(action, setups, overtaken, store, 15) == Tally(0, 3, 0)


def test_a_killed_scan_goes_on(tmp_path):
    command = [sys.executable, "-m", "spinodal", "scan", "copy-head/softmax", "L=32", "V=8", "--over", "P=200:400:400"]
    command += ["--out", str(tmp_path / "store"), "--quiet"]
    running = subprocess.Popen(command, cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.2)
        if (tmp_path / "store" / "records.sqlite").is_file() and sum(
            Store.open(tmp_path / "store").count().values()
        ) > 1:
            break
    running.kill()
    assert running.wait() != 0
    store = Store.open(tmp_path / "store")
    kept = list(store.records())
    assert 1 < len(kept) < 400
    action, setups, _ = softmax("P=200:400:400")
    tally = scan(action, setups[: len(kept) + 2], minima, store, 15)
    assert (tally.there, tally.solved) == (len(kept), 2)
    assert list(store.records())[: len(kept)] == kept
