# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

# Fixed threads: the last bits of a result must not depend on the machine's core count.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export MKL_NUM_THREADS = 1

.PHONY: demo test test-all bench gpu-check lint docs install clean

# Two lanes for two cores: the checked derivation, and meanwhile the transitions and the picture.
demo: install
	@mkdir -p demo
	@{ $(BIN)/spinodal transitions copy-head/linear L=256 V=8 --digits 30 && echo && \
	   $(BIN)/spinodal transitions copy-head/softmax L=32 V=8 --digits 30 && echo && \
	   $(BIN)/spinodal figure softmax-landscape --out demo; } > demo/transitions.txt 2>&1 & numbers=$$!; \
	$(BIN)/spinodal derive copy-head/softmax --check --quick; checks=$$?; \
	wait $$numbers; found=$$?; echo; cat demo/transitions.txt; exit $$((checks | found))

test: install
	$(PYTEST) -n 2 -m "not slow"

test-all: install
	$(PYTEST) -n 2

bench: install
	$(PYTEST) -o addopts="--import-mode=importlib" -o python_files="bench_*.py" -o python_functions="bench_*" tests/bench

gpu-check: install
	$(BIN)/python -m tests.bench.devices

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The pages of all theories are computed, and the notebooks run: some minutes.
docs: install
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs build/docs

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	@echo "Setting up $(VENV), about a minute"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf demo build *.egg-info .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis .benchmarks
