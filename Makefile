# Every target sets up what it needs: on a fresh machine `make run` and `make test` are enough.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
CPP = $(shell find bench src tests -name "*.hpp" -o -name "*.cpp")

.DEFAULT_GOAL := help
.PHONY: help setup run test quick soak coverage check check-native format bench

QUICK := tests/rules tests/paper tests/oracle tests/loops
SEEDS ?= 20

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: $(READY) ## create .venv and install viewlet with its tools (again only when pyproject.toml changed)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "viewlet needs Python 3.10 or newer; name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) has no venv module: install it (Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: setup ## the order book on Spark: views live in the terminal, checked at the end (RUN="--master spark://…" elsewhere)
	$(BIN)/viewlet run --engine spark --cells 4 --verify $(RUN)

test: check ## everything that must hold: make check, then all tests
	$(BIN)/pytest -n 2 --dist loadgroup --durations 15

quick: setup ## the signal while working: rules, the paper's examples, the referee, loop nests (a minute of CPU, no JVM, no C++)
	$(BIN)/pytest -q $(QUICK)

soak: setup ## deeper than make test: the random families with SEEDS seeds each (20; hours)
	$(BIN)/pytest -n 2 --soak $(SEEDS) tests/laws tests/engines tests/durable -k random
	$(BIN)/pytest -n 2 --soak $(SEEDS) tests/engines/test_conformance.py tests/engines/test_extremes.py tests/engines/test_bulk.py
	$(BIN)/pytest -n 2 --dist loadgroup --soak 2 tests/spark tests/faults

coverage: setup ## which lines of each package make quick runs (a quarter more CPU than make quick)
	$(BIN)/python -m tests.coverage $(QUICK)

check: setup ## lint, format, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy
	$(BIN)/lint-imports

check-native: setup ## the C++ runtime's own tests, plain and under sanitizers
	$(BIN)/pytest -q tests/native/test_runtime.py

format: setup ## let ruff and clang-format rewrite what they can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: setup ## the paper's experiments, the peers and Spark, every answer checked: a report in bench-results/ (20 minutes)
	$(BIN)/viewlet bench all
