"""Figures: one module per figure, each with its ``PLOT``, and what they share.

`FIGURES` is where a figure is found by name; its module is imported only when the figure is drawn.
"""

_COPY_HEAD = (
    "softmax-landscape",
    "linear-landscape",
    "order-parameters",
    "losses",
    "scaling",
    "copy-phases",
    "attention",
    "coverage",
    "susceptibilities",
    "entries",
)
_POSITIONAL_SEMANTIC = (
    "training-loss",
    "semantic-phases",
    "test-error",
    "overlaps",
    "replicon",
    "solutions",
    "published",
)
_WORKBENCH = ("diagram", "bifurcation", "branches")

FIGURES = {
    name: f"figures.{room}.{name.replace('-', '_')}"
    for room, names in (
        ("copy_head", _COPY_HEAD),
        ("positional_semantic", _POSITIONAL_SEMANTIC),
        ("workbench", _WORKBENCH),
    )
    for name in names
}
FORMATS = ("png", "pdf", "svg")
