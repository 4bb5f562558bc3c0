"""The picture of the softmax action: what is drawn, and that it reaches the disk whole or not at all."""

import csv
from pathlib import Path

import numpy as np
import pytest

from figures import FORMATS
from figures.softmax_landscape import GAPS, picture

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def drawn():
    return picture()


@pytest.fixture(scope="module")
def curves(drawn):
    """F(s) - F(s_uniform) over the gaps, for P below, at and above P*."""
    rows = np.array(drawn.rows)
    return {control: rows[rows[:, 0] == control, 3] for control in sorted(set(rows[:, 0]))}


def test_the_deeper_minimum_changes_at_the_transition(curves):
    below, at, above = (curve[GAPS > 1.5].min() for curve in curves.values())
    assert below > 1
    assert at == pytest.approx(0, abs=1e-3)
    assert above < -1


def test_both_minima_are_there_in_every_curve(curves):
    for curve in curves.values():
        falls = np.sign(np.diff(curve))
        assert [int(step) for step in falls[np.flatnonzero(np.diff(falls, prepend=0))]] == [-1, 1, -1, 1]


def test_what_is_marked_lies_on_the_curves(drawn, curves):
    lines = drawn.figure.axes[0].get_lines()
    marks = [line.get_xydata()[0] for line in lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert len(marks) == 9
    for gap, level in marks:
        assert min(abs(np.interp(gap, GAPS, curve) - level) for curve in curves.values()) < 1e-3


def test_the_picture_in_the_readme_shows_these_numbers(drawn):
    with (DOCS / "softmax-landscape.csv").open() as stream:
        header, *rows = csv.reader(stream)
    assert header == list(drawn.header)
    np.testing.assert_allclose(np.array(rows, dtype=float), np.array(drawn.rows), rtol=1e-9, atol=1e-9)
    assert (DOCS / "softmax-landscape.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("form", FORMATS)
def test_saved_twice_is_the_same_file(drawn, form, tmp_path):
    first, second = (drawn.save(tmp_path / name, form) for name in ("one", "two"))
    assert [path.name for path in first] == [f"softmax-landscape.{form}", "softmax-landscape.csv"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_failure_leaves_what_was_there(drawn, tmp_path, monkeypatch):
    target = tmp_path / "softmax-landscape.png"
    target.write_text("kept")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(drawn.figure, "savefig", fail)
    with pytest.raises(OSError, match="No space"):
        drawn.save(tmp_path, "png")
    assert [path.name for path in tmp_path.iterdir()] == ["softmax-landscape.png"]
    assert target.read_text() == "kept"
