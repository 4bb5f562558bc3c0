"""The floors of the house: derive < numerics < simulate < figures < spinodal, and what each floor may see."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("derive", "numerics", "simulate", "figures")
LINT = Path(sys.executable).with_name("lint-imports")


def contract(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--no-cache"], cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(folder)}
    )


def test_the_floors_hold():
    outcome = contract(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "0 broken" in outcome.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("derive/exact.py", "import numerics"),
        ("derive/exact.py", "import numpy"),
        ("numerics/__init__.py", "import simulate"),
        ("numerics/__init__.py", "import derive.copy_head.model"),
        ("simulate/__init__.py", "import figures"),
        ("simulate/langevin.py", "import numerics"),
        ("figures/__init__.py", "import spinodal"),
    ],
)
def test_an_upward_import_breaks_the_contract(tmp_path, module, line):
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / module).open("a") as stream:
        stream.write(f"\n{line}\n")
    outcome = contract(tmp_path)
    assert outcome.returncode == 1
    assert "1 broken" in outcome.stdout


def test_derivations_import_only_sympy_mpmath_and_a_typesetter():
    graph = grimp.build_graph("derive", include_external_packages=True, cache_dir=None)
    imported = {
        name.partition(".")[0]
        for module in graph.modules
        if module.split(".")[0] == "derive"
        for name in graph.find_modules_directly_imported_by(module)
    }
    assert imported - sys.stdlib_module_names - {"derive"} == {"sympy", "mpmath", "docutils"}
    assert graph.find_modules_that_directly_import("docutils") == {"derive.prose"}
