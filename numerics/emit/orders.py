r"""Derivatives to be emitted beside a value.

.. math:: f_k \to \partial_i f_k \to \partial_i \partial_j f_k

They come unexpanded (`numerics.jets`); sums and products of sums and products are merged here, so that `rewrite` sees
the terms that cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from sympy import Basic, Expr, Function, Symbol

from numerics.emit.graph import Graph

__all__ = ["orders"]


def orders(outputs: Sequence[Expr], arguments: Sequence[Symbol], highest: int) -> Iterator[list[Basic]]:
    """All derivatives of each of ``outputs`` in all ``arguments``, then all of these, up to the order ``highest``."""
    from numerics.jets import derivatives  # which emits, too

    for order in range(1, highest + 1):
        wanted = tuple(tuple(sorted(index)) for index in product(range(len(arguments)), repeat=order))
        yield _merged([slope for output in outputs for slope in derivatives(output, tuple(arguments), wanted)])


def _merged(expressions: Sequence[Basic]) -> list[Basic]:
    graph = Graph(expressions)
    images: list[Basic] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        old, new = [graph.nodes[child] for child in children], [images[child] for child in children]
        if isinstance(node, Function) or not children:
            same = all(ours is theirs for ours, theirs in zip(old, new, strict=True))
            images.append(node if same else node.func(*new, evaluate=False))
        else:
            images.append(node.func(*new))
    return [images[root] for root in graph.roots]
