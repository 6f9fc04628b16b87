PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile

.PHONY: help train test slow campaign coverage docs pins clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

train: .venv/installed-report  ## install, then train on the built-in Cora graph and write a report
	$(BIN)/dgt train cora --out runs/cora --overwrite --report

test: .venv/installed-test  ## lint, type check and test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)

slow: .venv/installed-test  ## run only the tests that take a minute or more
	$(BIN)/pytest -m slow

campaign: .venv/installed-test  ## try malformed inputs, kills and faults (about half an hour on two cores)
	$(BIN)/python -m tests.campaign

coverage: .venv/installed-test  ## test with a coverage report
	$(PYTEST) --cov --cov-report=term --cov-report=html

docs: .venv/installed-docs  ## build the documentation into site/; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pins: .venv/installed-test .venv/installed-docs  ## pin all installed dependencies in constraints.txt
	$(BIN)/python tools/pins.py

clean:  ## remove the environment and all build products
	rm -rf .venv dist build site htmlcov .coverage

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

.venv/installed-report: .venv/installed
	$(PIP) --editable '.[report]'
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) --editable '.[test]'
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) --editable '.[docs]'
	touch $@
