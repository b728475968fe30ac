# Every target sets up .venv/ by itself when it is missing or older than the files that define it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEED ?= 0
RUN_DIR ?= runs/quickstart

.PHONY: quickstart test lint format clean

quickstart: $(STAMP)
	$(BIN)/davinci quickstart --run-dir $(RUN_DIR) --seed $(SEED)

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 10) <= v < (3, 13) else "davinci-kernel needs Python 3.10 to 3.12; set PYTHON=python3.11, for example")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
