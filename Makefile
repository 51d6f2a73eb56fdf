# Everything happens in a virtual environment in .venv, which the targets make themselves.
# A stamp in it says what is installed, so that nothing is installed twice until pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the libraries that benchmarks compare with have an environment of their own
PEERS := .venv-bench
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --root-user-action=ignore
STAMP := $(VENV)/stamp
OUT := examples/out
# what depends on the machine, and laws of whole programs
WIDTHS := tests/core/kernels tests/core/schedule tests/jit tests/ir tests/nnkit/test_random_programs.py tests/nnkit/test_whole_programs.py \
  tests/nnkit/test_gradients_of_programs.py tests/nnkit/test_elementwise.py tests/nnkit/test_reductions.py tests/nnkit/test_sorting.py
MISTAKE := build/mistake.py
# the tests start many processes, each of which would compile all Python files
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: run test tests test-widths mypy pyright check fmt bench bench-all irdiff fuzz clean help

# a line of examples/digits.py ends with `# mistake: ...`: what to write instead to make one
run: $(STAMP)-run  ## train a typed classifier on handwritten digits, after mypy has checked it
	@echo "== mypy --strict examples/digits.py"
	@$(BIN)/mypy --strict examples/digits.py
	@echo "== the same with a rank mistake"
	@mkdir -p $(dir $(MISTAKE))
	@sed -E 's/^( *).*# mistake: (.*)$$/\1\2/' examples/digits.py > $(MISTAKE)
	@diff examples/digits.py $(MISTAKE) && { echo "no line was changed" >&2; exit 1; } || true
	@MYPYPATH=examples $(BIN)/mypy --strict $(MISTAKE) && { echo "mypy missed it" >&2; exit 1; } || true
	@echo "== python examples/digits.py"
	@$(BIN)/python examples/digits.py

test: $(STAMP)-test  ## every check: format, lint, both type checkers, all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory --jobs=2 pyright tests

# pyright takes three times as long as mypy: the first tests run beside it, so that no core is idle
tests: mypy
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --maxfail=50 $(if $(MINUTES),--minutes=$(MINUTES))

mypy: $(STAMP)-test
	$(BIN)/mypy
	$(BIN)/mypy examples stubs/generate.py benchmarks
	$(BIN)/mypy examples/models/*.py

pyright: $(STAMP)-test
	$(BIN)/pyright --pythonpath $(BIN)/python

check: $(STAMP)-test  ## the quick loop: as test, without the slow tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --maxfail=50 -m "not slow"

fmt: $(STAMP)-test  ## format the code and mend what the linter can, write the stubs and the pages of ops, functions and passes anew
	$(BIN)/python stubs/generate.py
	$(BIN)/python docs/generate_ops.py
	$(BIN)/python docs/generate_functions.py
	$(BIN)/python docs/generate_passes.py
	$(BIN)/python docs/generate_schedule.py
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(PEERS)/stamp  ## compare with JAX and PyTorch, some five minutes; writes benchmarks/results.md and results.svg
	$(PEERS)/bin/python -m benchmarks --output benchmarks/results.md

bench-all: $(PEERS)/stamp  ## the same with the rows that take long, some twenty minutes
	$(PEERS)/bin/python -m benchmarks --all --output benchmarks/results.md

test-widths: $(STAMP)-test  ## the tests of code for every width of vectors, at every level of optimisation, on one and two threads (half an hour)
	@set -e; run() { echo "== $$*"; env $$1 $(BIN)/pytest -q --no-header -n 2 --dist loadfile -m "not slow" $$2 $(WIDTHS); }; \
	if [ "$$(uname -m)" = x86_64 ]; then cpus="x86-64 x86-64-v3 x86-64-v4"; else cpus=generic; fi; \
	for cpu in $$cpus; do for threads in 1 2; do run "NNKIT_CPU=$$cpu NNKIT_NUM_THREADS=$$threads" --level=2; done; done; \
	for level in 0 1 3; do run NNKIT_NUM_THREADS=2 --level=$$level; done

irdiff: $(STAMP)-test  ## compare the LLVM code of all examples and tests with that of another commit: make irdiff BASE=main
	$(BIN)/python -m benchmarks.irdiff $(or $(BASE),HEAD)

fuzz: $(STAMP)-test  ## 10,000 texts with mistakes, kernels between guard pages, 10,000 programs of the language, and the other property tests with many more random programs
	$(BIN)/pytest -q --hypothesis-profile=fuzz tests/fuzz
	$(BIN)/pytest -q --hypothesis-profile=fuzz -m "not slow" tests --ignore=tests/fuzz

clean:  ## remove the environment, caches and everything built
	rm -rf $(VENV) $(PEERS) $(OUT) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/:/' | \
	  while IFS=: read -r name text; do printf 'make %-11s%s\n' "$$name" "$$text"; done

$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("NNKit needs Python 3.11 or later, but $(PYTHON) is %d.%d; make PYTHON=python3.11 ... picks another" % sys.version_info[:2])'
	@$(PYTHON) -m venv --clear $(VENV) || { echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(STAMP)-run: $(STAMP)-venv pyproject.toml
	@echo "== installing into $(VENV)"
	@$(PIP) --editable '.[examples,types]'
	@touch $@

$(STAMP)-test: $(STAMP)-venv pyproject.toml
	@echo "== installing into $(VENV)"
	@$(PIP) --editable '.[test]'
	@touch $@

$(PEERS)/stamp: pyproject.toml
	@echo "== installing JAX and PyTorch into $(PEERS)"
	@$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/$(PIP:$(BIN)/%=bin/%) --editable '.[bench]'
	@touch $@
