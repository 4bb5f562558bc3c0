"""The documentation site: the README and the guides, a page of every theory as its report shows it, notebooks, functions."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import spinodal
from derive.catalogue import THEORIES, classical
from derive.prose import mathml

project = "Spinodal"
author = copyright = "The Spinodal developers"
version = release = spinodal.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"page_width": "80rem", "body_max_width": "62rem"}
html_math_renderer = "mathml"
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
suppress_warnings = ["myst.xref_missing", "mystnb.unknown_mime_type"]

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "theories"
SETUPS = {"copy-head/linear": "L=256 V=8", "copy-head/softmax": "L=32 V=8", "copy-head/softmax-relaxed": "L=32 V=8"}
"""Where a theory has no default parameters."""


def pages(app: Any) -> None:
    """A page of every theory, from its report; in processes of their own, as Sphinx changes what docutils does."""
    PAGES.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as workers:
        list(workers.map(page, (theory.name for theory in (*THEORIES, *classical()))))


def page(theory: str) -> None:
    name = theory.replace("/", "-")
    file = PAGES / f"{name}.html"
    words = shlex.split(SETUPS.get(theory, ""))
    command = [sys.executable, "-m", "spinodal", "report", theory, *words, "--out", str(file), "--quick", "--quiet"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if outcome.returncode not in (0, 3):  # 3: a page that says what was not reached
        raise RuntimeError(f"{theory}: {outcome.stderr}")
    text = file.read_text(encoding="utf-8")
    style, inside = (re.search(f"<{tag}>(.*)</{tag}>", text, re.DOTALL) for tag in ("style", "body"))
    assert style is not None
    assert inside is not None
    rules = "\n".join(line for line in style[1].splitlines() if not line.startswith("body"))
    without_title = inside[1].partition("</h1>")[2]
    file.write_text(f"<style>{rules}</style>{without_title}", encoding="utf-8")
    title = f"{theory}\n{'=' * len(theory)}\n"
    (PAGES / f"{name}.rst").write_text(f"{title}\n.. raw:: html\n   :file: {name}.html\n", encoding="utf-8")


def formula(display: bool) -> Any:
    """How Sphinx writes a formula: as MathML, which needs no script."""

    def visit(self: Any, node: Any) -> None:
        from docutils.nodes import SkipNode

        self.body.append(mathml(node.astext(), display))
        raise SkipNode

    return visit, None


def setup(app: Any) -> None:
    app.connect("builder-inited", pages)
    app.add_html_math_renderer("mathml", formula(False), formula(True))
