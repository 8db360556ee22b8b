# What each target needs it sets up in .venv by itself; the second time it is quick.
# `make demo` takes the runtime dependencies only, the others add the developer's tools.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# What is never imported need not be compiled: Python does it for the rest, once.
INST   := $(PIP) install -q --no-compile
BASE   := $(VENV)/.base.stamp
DEV    := $(VENV)/.dev.stamp
ALL    := $(VENV)/.all.stamp

# The developer's environment can run the demo as well: no second installation.
RUNTIME := $(if $(wildcard $(DEV)),$(DEV),$(BASE))

.DEFAULT_GOAL := help
.PHONY: help demo page test test-all check format docs golden takes bench bench-check prove sabotage mutate battery \
	lowest release-check everything clean
.SUFFIXES:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Without compiled files every worker and every program that a test starts would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## print this list
	@echo "make TARGET, where TARGET is"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

demo: $(RUNTIME) ## replay one take of each provider, offline, and show the calls in one table
	@echo "==> replaying one take of each provider"
	@$(BIN)/python -m streamnorm.cli demo recordings
	@echo "see it in the browser: make page"

page: $(DEV) ## open the page: watch a stream, cut it anywhere, compare providers, chat
	@$(BIN)/python -m streamnorm.cli serve --open

test: $(DEV) ## run the quick tests: every law, on samples; ARGS='tests/core -k mint' runs some
	@echo "==> running the quick tests (about four minutes on two cores)"
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup -m "not parts" $(ARGS)

test-all: everything ## run all tests, exhaustively, also against the clients of others
	@echo "==> running all tests (about twenty minutes; STREAMNORM_CORPUS=DIR adds recorded streams)"
	@# one worker more than cores: some tests wait for programs, browsers and databases
	@STREAMNORM_TESTS=all $(BIN)/python -m pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) \
		--dist loadgroup $(ARGS)

check: $(DEV) ## check format, lint and types (ruff, mypy --strict, pyright)
	@echo "==> checking the format (ruff format --check)"
	@$(BIN)/ruff format --check .
	@echo "==> linting (ruff check)"
	@$(BIN)/ruff check .
	@echo "==> checking types (mypy --strict)"
	@$(BIN)/mypy --strict streamnorm
	@if command -v node >/dev/null; then \
		echo "==> checking the user snippets (pyright)"; \
		PYRIGHT_PYTHON_GLOBAL_NODE=1 PYRIGHT_PYTHON_IGNORE_WARNINGS=1 \
			$(BIN)/pyright --pythonpath $(BIN)/python tests/house/typing_api.py; \
	else \
		echo "left out: pyright on tests/house/typing_api.py; add it by installing node"; \
	fi

format: $(DEV) ## rewrite the files the way check wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(DEV) ## write the documents that are made from tables
	@$(BIN)/python -m tools.documents $(ARGS)

takes: $(DEV) ## write the takes in recordings/ that are made by tables, then their golden events
	@$(BIN)/python -m tools.takes
	@$(BIN)/python -m tools.golden

golden: $(DEV) ## write the golden events beside each take, and the golden requests; read what changed
	@echo "==> writing golden events and requests"
	@$(BIN)/python -m tools.golden $(ARGS)
	@$(BIN)/python -m tools.golden_requests $(ARGS)

bench: $(DEV) ## measure live streams, the pipe and the rest, against others; write the figures down
	@echo "==> measuring (about ten minutes; nothing else should run; ARGS=--quick for less)"
	@$(BIN)/python bench/run.py $(ARGS)
	@$(BIN)/python -m tools.performance

bench-check: $(DEV) ## name what became slower than in bench/results.json by more than a tenth
	@echo "==> measuring (a few minutes; what looks slower is measured again)"
	@$(BIN)/python -m bench.check $(ARGS)

prove: $(DEV) ## look for a promise that does not hold: damage, cuts, fuzz, kills, a soak; half an hour
	@$(INST) atheris 2>/dev/null || echo "left out: atheris, which does not install here; Hypothesis stands in"
	@echo "==> looking for a promise that does not hold (ARGS='--minutes 5', '--only soak', '--mutants N')"
	@nice -n 5 $(BIN)/python -m tests.prove.run $(ARGS)
	@$(BIN)/python -m tools.promises

sabotage: $(DEV) ## take the protection of each promise away: a test of it must turn red
	@echo "==> taking protections away (about ten minutes; ARGS='B4 H2' for some)"
	@$(BIN)/python -m tests.sabotage.run $(ARGS)
	@$(BIN)/python -m tools.promises

mutate: $(DEV) ## remove the guards of the code one by one: a test must notice each
	@echo "==> removing guards (an hour or two; it goes on where it was stopped; ARGS='--file core/calls.py')"
	@$(BIN)/python -m tools.mutate $(ARGS)

battery: $(DEV) ## show odd and cut streams to us, SDKs and frameworks: who tells a wrong call in silence
	@echo "==> reading odd and cut streams (minutes; the first time peers are installed; ARGS='--cuts 10')"
	@$(BIN)/python -m bench.battery.run $(ARGS)
	@$(BIN)/python -m tools.promises

lowest: $(DEV) ## run the quick tests with the lowest versions that pyproject.toml allows
	@echo "==> installing the lowest versions, then the quick tests"
	@$(BIN)/python -m tools.lowest $(ARGS)

release-check: $(DEV) ## build, install on every Python, each extra, licences, lowest versions, tests there
	@$(BIN)/python -m tools.release $(ARGS)

everything: $(ALL) ## install the clients of others that tests can read streams with

clean: ## remove the environments, caches and build results
	@echo "==> removing the environments, caches and build results"
	@rm -rf $(VENV) .venv-bench .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@echo "==> setting up $(VENV) (first time only)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "streamnorm needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml | $(BIN)/python
	@echo "==> installing streamnorm and what it needs to run"
	@$(INST) -e .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	@echo "==> installing streamnorm and the developer's tools"
	@$(INST) -e '.[dev]'
	@touch $@ $(BASE)

$(ALL): pyproject.toml | $(DEV)
	@echo "==> installing the clients of others"
	@$(INST) -e '.[dev,sdks]'
	@# its types are compared with our tables; the pins of its server parts exclude the others
	@$(INST) --no-deps azure-ai-agentserver-responses azure-ai-agentserver-core
	@touch $@
