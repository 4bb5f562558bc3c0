"""The documentation: notebooks run, what the site lists is there, the citation is one."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import spinodal

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted(DOCS.glob("tutorials/*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch):
    """Its code cells in one namespace, as a session would run them; what they claim they assert."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert any("assert" in source for source in code)
    assert all(not cell.get("outputs") for cell in cells)
    session: dict[str, object] = {}
    for number, source in enumerate(code):
        exec(compile(source, f"{notebook.name}, cell {number}", "exec"), session)
    assert not list(tmp_path.iterdir())


def test_there_are_four():
    assert [path.stem for path in NOTEBOOKS] == ["crosscheck", "derivation", "digits", "own-theory"]


@pytest.mark.parametrize("name", re.findall(r"automodule:: (\S+)", (DOCS / "functions.md").read_text(encoding="utf-8")))
def test_a_module_on_the_site_is_there(name):
    module = import_module(name)
    assert module.__doc__
    assert all(hasattr(module, member) for member in module.__all__)


def test_what_the_site_lists_is_there():
    listed = re.findall(r"^([\w/-]+)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) >= 7
    for name in listed:
        assert any((DOCS / f"{name}{suffix}").is_file() for suffix in (".md", ".ipynb")), name


def test_the_citation():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == spinodal.__version__
    assert {"message", "title", "authors", "license"} <= cited.keys()
    assert cited["license"] in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [one["identifiers"][0]["value"] for one in cited["references"]] == ["arXiv:2606.12058", "arXiv:2402.03902"]
