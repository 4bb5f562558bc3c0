"""Figures: one module per figure, each with ``picture()``, and the style sheet they share.

`FIGURES` is where a figure is found by name; its module is imported only when the figure is drawn.
"""

FIGURES = {"softmax-landscape": "figures.softmax_landscape"}
FORMATS = ("png", "pdf", "svg")
