"""Every figure as a picture: it is not blank, and every text in it lies inside the canvas and on no other text."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from figures import FIGURES


@pytest.fixture
def rendered(drawn, monkeypatch):
    """The pixels of a figure and the boxes of all texts in it that are drawn, by what they say."""

    def render(name):
        boxes = {}
        plain = Text.draw

        def draw(text, renderer, *args, **kwargs):
            if text.get_visible() and text.get_text().strip():
                boxes[id(text)] = text.get_text(), text.get_window_extent(renderer)
            return plain(text, renderer, *args, **kwargs)

        monkeypatch.setattr(Text, "draw", draw)
        canvas = FigureCanvasAgg(drawn(name)[2])
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3], list(boxes.values())

    return render


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_can_be_read(rendered, name):
    pixels, boxes = rendered(name)
    height, width, _ = pixels.shape
    inked = np.mean((pixels < 245).any(-1))
    assert 0.01 < inked < 0.9
    assert len(boxes) > 8
    for text, box in boxes:
        assert box.x0 > -1, text
        assert box.y0 > -1, text
        assert box.x1 < width + 1, text
        assert box.y1 < height + 1, text
    for (one, first), (other, second) in combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        along = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, along) < 2, (one, other)


@pytest.mark.parametrize("name", FIGURES)
def test_every_axis_has_a_label_or_stands_beside_one(drawn, name):
    for axes in drawn(name)[2].axes:
        if axes.get_label() != "<colorbar>":
            beside = [other for other in drawn(name)[2].axes if other.get_subplotspec() is not None]
            assert axes.get_xlabel() or any(other.get_xlabel() for other in beside)
            assert axes.get_ylabel() or any(other.get_ylabel() for other in beside)


@pytest.mark.parametrize("name", FIGURES)
def test_curves_differ_in_grey(drawn, name):
    """Lines of one panel that say what they are differ in more than their colour."""
    for axes in drawn(name)[2].axes:
        looks = {}
        for line in axes.get_lines():
            label = line.get_label()
            if not label.startswith("_"):
                grey = round(float(np.dot(_rgb(line.get_color()), (0.299, 0.587, 0.114))), 2)
                look = (
                    line.get_linestyle(),
                    line.get_marker(),
                    line.get_markerfacecolor(),
                    round(line.get_linewidth(), 1),
                    grey,
                )
                assert looks.setdefault(look, label) == label


def _rgb(colour):
    from matplotlib.colors import to_rgb

    return to_rgb(colour)
