"""Expressions as one graph: structurally equal sub-expressions are one node, and every walk is a loop.

SymPy trees repeat themselves (a gradient holds the action's pieces many times) and nest deeply. Hash-consing the tree
replaces common-sub-expression elimination, and costs time linear in its size; the loop never meets the recursion limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Basic

__all__ = ["Graph"]


class Graph:
    """The distinct nodes below ``roots``, children before parents; nodes of an ``opaque`` type count as leaves."""

    def __init__(self, roots: Sequence[Basic], opaque: tuple[type[Basic], ...] = ()) -> None:
        self.nodes: list[Basic] = []
        self.children: list[tuple[int, ...]] = []
        self._opaque = opaque
        self._index: dict[int, int] = {}  # id of every object met, to its node
        self._known: dict[tuple[object, tuple[int, ...]], int] = {}
        self._alive: list[Basic] = []  # an id is only meaningful while its object lives
        self.roots = [self._enter(root) for root in roots]

    def _enter(self, root: Basic) -> int:
        stack = [root]
        while stack:
            node = stack[-1]
            if id(node) in self._index:
                stack.pop()
                continue
            arguments = () if isinstance(node, self._opaque) else node.args
            missing = [argument for argument in arguments if id(argument) not in self._index]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            children = tuple(self._index[id(argument)] for argument in arguments)
            index = self._known.setdefault((node.func if children else node, children), len(self.nodes))
            if index == len(self.nodes):
                self.nodes.append(node)
                self.children.append(children)
            self._index[id(node)] = index
            self._alive.append(node)
        return self._index[id(root)]

    def find(self, node: Basic) -> int | None:
        """The index of ``node`` if this very object was met."""
        return self._index.get(id(node))

    def references(self) -> list[int]:
        """How many parents, or outputs, use each node."""
        count = [0] * len(self.nodes)
        for index in [child for children in self.children for child in children] + self.roots:
            count[index] += 1
        return count

    def path(self, index: int) -> str:
        """Where the node sits, from its output down: ``expression[0] > Add[1] > Mul[0]`` (only the last six steps)."""
        above = {child: (up, place) for up, below in enumerate(self.children) for place, child in enumerate(below)}
        steps: list[str] = []
        while index not in self.roots:
            index, place = above[index]
            steps.append(f"{self.nodes[index].func.__name__}[{place}]")
        start = f"expression[{self.roots.index(index)}]" + (" > ..." if len(steps) > 6 else "")
        return " > ".join([start, *reversed(steps[:6])])
