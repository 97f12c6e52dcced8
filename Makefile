# Two commands to begin with: `make plans`, `make test`. Everything here is a line over servec.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: plans check test conformance rehearse bless lint types wheel clean

plans: $(VENV)/.runtime            ## compile specs/ into golden/
	$(BIN)/servec build

check: $(VENV)/.runtime            ## hold golden/ against specs/; write nothing
	$(BIN)/servec check

test: $(VENV)/.dev                 ## run the tests
	$(BIN)/python -m pytest -n auto

conformance: $(VENV)/.dev          ## ask the parsers of released engines; needs a network
	$(BIN)/python -m tests.conformance

rehearse: $(VENV)/.dev             ## start what is compiled: servec's own server, and vLLM on the CPU
	$(BIN)/python -m tests.rehearse

bless: $(VENV)/.dev                ## rewrite the expected output of cases, and golden/
	$(BIN)/python -m pytest -n auto --bless
	$(BIN)/servec build

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy --strict

wheel: $(VENV)/.runtime            ## build the wheel into dist/
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The environment: exact versions from requirements.lock, servec itself from this folder.
$(VENV)/.runtime: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(BIN)/pip install --quiet --constraint requirements.lock --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(BIN)/pip install --quiet --constraint requirements.lock --editable '.[dev]'
	@touch $@
