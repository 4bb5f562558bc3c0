"""Branches: folds are passed, pitchforks are found, closed curves close, tiny structures are not stepped over."""

from fractions import Fraction

import mpmath
import pytest
from mpmath import mpf

from derive.catalogue import find
from numerics.branches import survey
from numerics.continuation import Curve, Ended, Event, Sight, corrected, start, trace
from numerics.landscape import Landscape
from tests.numerics import zoo


@Curve
def circle(y):
    return Sight([y[0] ** 2 + y[1] ** 2 - 1], [[2 * y[0], 2 * y[1]]])


def cubic(p, digits=22):
    """The curve x^3 - p x = q in the plane of x and q: folds at x = -+ sqrt(p/3)."""
    return Curve(lambda y: Sight([y[0] ** 3 - p * y[0] - y[1]], [[3 * y[0] ** 2 - p, mpf(-1)]]), digits)


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(25):
        yield


def test_a_closed_curve_closes():
    branch = trace(circle, start(circle, (mpf(1), mpf(0))), [])
    assert branch.ended == (Ended.CLOSED,)
    assert all(abs(x**2 + y**2 - 1) < mpf("1e-18") for x, y in (node.position for node in branch.nodes))
    assert min(node.position[0] for node in branch.nodes) < -0.95


@pytest.mark.parametrize(("p", "digits"), [("1", 22), ("1e-4", 22), ("1e-9", 22), ("1e-16", 22), ("1e-50", 75)])
def test_folds_are_located_however_close_they_lie(p, digits):
    with mpmath.workdps(digits + 3):
        folds = sorted(located_folds(cubic(mpf(p), digits), mpf(p)))
    expected = mpmath.sqrt(mpf(p) / 3)
    assert len(folds) == 2
    # Located well enough to start Newton on the defining system.
    assert all(abs(abs(x) - expected) < expected / 1000 for x in folds)


def located_folds(curve, p):
    events = [Event("fold", lambda node: node.tangent[1], dips=True), Event("end", lambda node: node.position[0] - 2)]
    first = start(curve, (mpf(-2), mpf(-2) ** 3 + 2 * p), (mpf(1), mpf(0)))
    branch = trace(curve, first, events, [frozenset({"end"})])
    return [node.position[0] for node in branch.nodes if "fold" in node.events]


def test_no_fold_where_there_is_none():
    curve = cubic(mpf("-1e-6"))
    events = [Event("fold", lambda node: node.tangent[1], dips=True), Event("end", lambda node: node.position[0] - 2)]
    branch = trace(
        curve, start(curve, (mpf(-2), mpf(-8) - mpf("2e-6")), (mpf(1), mpf(0))), events, [frozenset({"end"})]
    )
    assert branch.ended == (Ended.HALT,)
    assert not any("fold" in node.events for node in branch.nodes)


def test_corrector_refuses_a_step_off_the_curve():
    assert corrected(circle, start(circle, (mpf(1), mpf(0))), mpf(3)) is None


def atlas(action, **values):
    landscape = Landscape(action, action.setup(values))
    return survey(landscape, *landscape.window())


def segments(found):
    """(index, low, high) of every segment in the window, the controls rounded."""
    control = found.chart.control
    return sorted(
        (s.index, float(mpmath.nstr(control(s.low), 4)), float(mpmath.nstr(control(s.high), 4))) for s in found.segments
    )


def test_pitchfork_from_both_sides():
    assert segments(atlas(zoo.pitchfork())) == [(0, 0.01, 1.0), (0, 1.0, 10.0), (1, 0.01, 1.0)]
    assert segments(atlas(zoo.curie_weiss())) == [(0, 0.01, 1.0), (0, 1.0, 10.0), (1, 1.0, 10.0)]


def test_fold_of_the_sixth_order_landau_action():
    assert segments(atlas(zoo.landau_six())) == [(0, 0.01, 0.25), (0, 0.01, 10.0), (1, 0.01, 0.25)]


def test_a_branch_that_is_connected_to_nothing_is_found():
    found = atlas(zoo.isolated_well())
    assert found.complete
    assert (0, 2.0, 3.0) in segments(found)
    assert (1, 2.0, 3.0) in segments(found)


def test_subcritical_branch_is_one_branch_with_its_fold():
    assert segments(atlas(zoo.shifted_landau_six())) == [
        (0, 0.01, 1.25),
        (0, 1.0, 10.0),
        (1, 0.01, 1.0),
        (1, 1.0, 1.25),
    ]


@pytest.mark.parametrize("at", ("0.3", "1.7", "2.4"))
def test_segments_give_the_point_at_any_control(at):
    found = atlas(zoo.curie_weiss())
    t = found.chart.coordinate(mpf(at))
    for segment in found.segments:
        if segment.covers(t):
            (x,), control = found.chart.point(segment.at(t).position)
            assert abs(x - mpmath.tanh(control * x)) < mpf("1e-18")
            assert abs(control - mpf(at)) < mpf("1e-12")


@pytest.mark.parametrize("reach", ("0.3", "0.5"))
def test_a_point_between_two_close_folds_lies_at_its_control(reach):
    """However far from there the node is from which it is approached."""
    action = find("copy-head/softmax").action()
    length = Fraction("13.741525243430170401548590657080711677898777708010") + Fraction("1e-12")
    landscape = Landscape(action, action.setup({"L": length, "V": 8}))
    found = survey(landscape, *landscape.window(), digits=39)
    with mpmath.workdps(found.dps):
        low, high = sorted(joint.node.position[-1] for joint in found.joints)
        t = low + mpf(reach) * (high - low)
        nodes = [segment.at(t) for segment in found.segments]
        assert len(nodes) == 3
        assert all(abs(node.position[-1] - t) < (high - low) / 1000 for node in nodes)
