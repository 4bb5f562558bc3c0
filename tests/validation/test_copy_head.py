"""The copy head's thresholds against numbers computed elsewhere.

Provenance: an independent computation at 60 digits (closed forms of arXiv 2606.12058, coded by hand in another program,
roots polished with mpmath), and for the energies the values of the projected action tabulated beside networks trained
at L = 32, V = 8. A value is compared to all the digits that its source prints, half a unit of the last one.
"""

import re

import pytest
from mpmath import mp, mpf

from derive.catalogue import find
from derive.copy_head import softmax
from derive.copy_head.model import L, Model, gamma_w
from numerics.stationary import minima
from numerics.transitions import transitions


def solve(theory, digits, **values):
    action = find(theory).action()
    return transitions(action, action.setup(values), digits=digits)


def agrees(ours, printed):
    """Whether ``ours`` is within half a unit of the last printed digit, and a rounding unit more, of ``printed``."""
    places = len(re.sub(r"^-?\d*\.?", "", printed)) if "." in printed else 0
    with mp.workdps(80):
        return abs(mpf(str(ours)) - mpf(printed)) <= mpf("0.51") * mpf(10) ** -places


SOFTMAX = {
    "coexistence": "330.37823388844734505707239917666",
    "copy": "304.5638461756313353253533",
    "uniform": "392.1534194074142939676934",
}


@pytest.fixture(scope="module")
def softmax_32_8():
    return solve("copy-head/softmax", 35, L=32, V=8)


def test_softmax_thresholds(softmax_32_8):
    coexistence = softmax_32_8.of("coexistence")
    assert agrees(coexistence.value, SOFTMAX["coexistence"])
    assert coexistence.order == "first"
    low, high = coexistence.phases
    assert (low.name, high.name) == ("uniform", "copy")
    assert agrees(low.order_parameters["s"], "0.256437169723436192548537798272")
    assert agrees(high.order_parameters["s"], "2.07101032651939241595144382825")
    for phase in ("copy", "uniform"):
        assert agrees(softmax_32_8.of("spinodal", phase).value, SOFTMAX[phase])


def test_critical_end_point(softmax_32_8):
    end = softmax_32_8[-1]
    assert end.kind == "critical-end-point"
    assert agrees(end.value, "104.5549593141569053270946")
    assert agrees(end.at["L"], "13.74152524343017040154859")
    assert agrees(end.phases[0].order_parameters["s"], "0.9273202491992815537818839")


@pytest.mark.parametrize(
    ("temperature", "value"),
    [("0", "823.00965744981217533411420217"), ("1/100", "823.640189612522706141839547637486142")],
)
def test_softmax_at_64(temperature, value):
    assert agrees(solve("copy-head/softmax", 38, L=64, V=8, T=temperature).of("coexistence").value, value)


@pytest.mark.parametrize(("length", "symbols", "value"), [(256, 8, "62.0572918492785"), (24, 4, "13.6786239414122")])
def test_pooling(length, symbols, value):
    entry = solve("copy-head/linear", 20, L=length, V=symbols).of("instability")
    assert agrees(entry.value, value)
    assert entry.order == "second"


@pytest.mark.parametrize(("length", "ratio"), [(256, "1.22334"), (16384, "1.10327")])
def test_crossover(length, ratio):
    value = mpf(str(solve("copy-head/linear", 20, L=length, V=8).of("crossover").value))
    assert agrees(value / (mpf(length) ** mpf("1.5") * mp.sqrt(8)), ratio)


@pytest.mark.parametrize(
    ("length", "symbols", "value"),
    [
        (32, 8, "713.895"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in ((24, 4, "404.227"), (64, 8, "1910.51"), (256, 8, "14069.0"))
        ),
    ],
)
def test_anti_copy_spinodal(length, symbols, value):
    """The source is another one: the smallest P at which a simplex search in double precision, following the minimum down
    in P by steps of one part in a million, still ends at u c < 0.
    """
    assert agrees(solve("copy-head/linear", 15, L=length, V=symbols).of("spinodal", "anti-copy").value, value)


LINEAR_END = {"L": "715.8208945639917069011734", "P": "60636.73773457171703951562"}


@pytest.mark.parametrize("length", [256, 1024])
def test_linear_critical_end_point(length):
    """Our own value (no other source): within pooling, found from either side, confirmed by the classification below."""
    end = solve("copy-head/linear", 25, L=length, V=8).of("critical-end-point")
    assert (str(end.at["L"]), str(end.value)) == (LINEAR_END["L"], LINEAR_END["P"])


@pytest.mark.parametrize(("length", "kinds"), [("716", ["spinodal", "coexistence", "spinodal"]), ("715", [])])
def test_pooling_is_discontinuous_beyond_the_end_point_only(length, kinds):
    found = solve("copy-head/linear", 25, L=length, V=8)
    pooling = [t for t in found if t.kind in ("spinodal", "coexistence") and t.phases[0].name.startswith("pooling")]
    assert [t.kind for t in pooling] == kinds
    assert all(abs(t.value.value / mpf(LINEAR_END["P"]) - 1) < mpf("1e-2") for t in pooling)


@pytest.mark.parametrize(
    ("theory", "samples"), [("softmax", "1/1000"), ("softmax", "1e300"), ("linear", "1e12"), ("linear", "1e30")]
)
def test_minima_at_extreme_sample_numbers(theory, samples):
    action = find(f"copy-head/{theory}").action()
    found = minima(action, action.setup({"L": 32, "V": 8, "P": samples}))
    assert found.status.name == "OK"
    assert found[0].stability == "stable"


@pytest.mark.parametrize(
    ("samples", "name", "energy", "attention", "loss"),
    [
        (250, "uniform", "-17.050", ".00454", ".8486"),
        (330, "copy", "-23.183", ".1777", ".3362"),
        (330, "uniform", "-23.278", ".00902", ".8389"),
        (420, "copy", "-56.463", ".2323", ".2106"),
    ],
)
def test_minima_of_the_projected_action(samples, name, energy, attention, loss):
    action = find("copy-head/softmax").action()
    found = minima(action, action.setup({"L": 32, "V": 8, "P": samples}), digits=12)
    (point,) = (p for p in found if p.kind == "minimum" and p.name == name)
    assert agrees(point.action, energy)
    assert agrees(point.observables["a_G"], attention)
    assert agrees(point.observables["loss"], loss)


@pytest.mark.parametrize(
    ("model", "equivalent"),
    [
        (Model(loss_factor=1 / L), {"gamma_w": "1/2", "gamma_g": "1/2"}),
        (Model(shift=2), {}),
        pytest.param(Model(weight_decay=2 * gamma_w), {"gamma_w": 2}, marks=pytest.mark.slow),
    ],
    ids=["loss 1/L", "shift 2", "gamma_w doubled"],
)
def test_thresholds_follow_the_model(model, equivalent):
    changed = softmax.action(model)
    ours = transitions(changed, changed.setup({"L": 32, "V": 8}), digits=25).of("coexistence")
    published = solve("copy-head/softmax", 25, L=32, V=8, **equivalent).of("coexistence")
    assert ours.value.text == published.value.text
    for mine, theirs in zip(ours.phases, published.phases, strict=True):
        assert mine.order_parameters["s"].text == theirs.order_parameters["s"].text


@pytest.mark.parametrize("length", ["13.7415253", "13.7415252734301704015485906571", "13.7416"])
def test_coexistence_is_not_lost_beside_the_critical_end_point(length):
    """Between two spinodals of an S-shaped branch there is a coexistence, solved or flagged, never left out."""
    found = solve("copy-head/softmax", 20, L=length, V=8)
    low, middle, high = (
        float(found.of(*key).value) for key in (("spinodal", "copy"), ("coexistence",), ("spinodal", "uniform"))
    )
    assert low <= middle <= high
    assert found.of("coexistence").status is found.status
