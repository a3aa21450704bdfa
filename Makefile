# The set-up is part of every target: `make demo` and `make test` work in a fresh clone.
# Needed beforehand: Python 3.11 or newer (with venv), make, a C library.

VENV := .venv
BIN := $(VENV)/bin
PACKAGES := skidway schemas audit agent broker loader
CHECKED := $(PACKAGES) pyspark_skidway.py tests bench deploy

# The first Python that is new enough; `make PYTHON=... demo` names another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	command -v $$name >/dev/null 2>&1 && \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$name && break; done)

PIP := $(BIN)/python -m pip --disable-pip-version-check

# The tests, those first that fail fastest.
SUITES := unit model crash conformance e2e

# Runs pytest and says how long it took. It fails when a test fails and when none ran.
# REPORTS=DIR: what ran, as XML.
PYTEST = started=$$(date +%s); status=0; \
	$(BIN)/pytest $(WORKERS) $(if $(REPORTS),--junit-xml=$(REPORTS)/$@.xml) $(1) $(ARGS) || status=$$?; \
	echo "== $@: $$(($$(date +%s) - started)) s, status $$status"; exit $$status

# Suites share the machine with what they wait for: one suite at a time, even with -j.
.NOTPARALLEL:

.PHONY: help venv install install-dev demo doctor fmt lint type imports check docs-ansible lint-ansible $(SUITES) \
	peers test foreign test-all bench bench-paper wheels deb clean

help:
	@echo 'make demo      a million lines through the whole pipeline here, with kills; ARGS="--quick", "--logs GLOB" for yours'
	@echo 'make test      formatting rules, types, imports, and all tests that Python and Java suffice for'
	@echo 'make test-all  also the tests that need Node, Go, Debian packages or root, lint-ansible and test-deploy'
	@echo 'make test-deploy   the Ansible collection on three Debian hosts of its own; needs root'
	@echo 'make test-operations   the tasks of docs/operations.md, and services that are there already, on such hosts; not in test-all'
	@echo 'make $(SUITES)    one suite of tests; ARGS="..." for pytest; PROCESSES=1 for one test at a time'
	@echo 'make bench     figures, each beside its peer, into docs/performance.md; ARGS="produce latency" for some'
	@echo 'make bench-paper    the experiment of the Kafka paper, beside RabbitMQ and ActiveMQ, which it installs'
	@echo 'make wheels    what hosts without internet install, into dist/wheels; VERSION=x for another version'
	@echo 'make lint-ansible    yamllint and ansible-lint on deploy/ansible'
	@echo "make deb       the agent as a Debian package with its own environment, into dist; VERSION=x"
	@echo 'make fmt lint type imports    one tool at a time;  make doctor    what this machine lacks'
	@echo 'make clean     remove what was built (not ./skidway-demo)'

venv: $(BIN)/python

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "Skidway needs Python 3.11 or newer, and this machine has $$(python3 --version 2>/dev/null || echo none): install it (Debian, Ubuntu: apt-get install python3 python3-venv), or name one with make PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

# Nothing tells before pip has loaded pyspark; tests/unit/packaging/test_installation.py counts.
DEMO_NEEDS := 31 distributions, about 0.6 GB to download and 1 GB on disk (Spark alone is half of it)

# What programs need, and on top of it what tests need; done again when pyproject.toml changes.
install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@$(BIN)/python deploy/packaging/installation.py "$(DEMO_NEEDS)" --editable '.[demo]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

demo: install
	$(BIN)/skidway demo $(ARGS)

doctor: install
	$(BIN)/skidway doctor

fmt: install-dev
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

lint: install-dev
	$(BIN)/ruff check $(CHECKED)

type: install-dev
	$(BIN)/mypy

imports: install-dev
	$(BIN)/lint-imports

check: lint type imports

# What only the checks of deploy/ansible need.
$(VENV)/.installed-deploy: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable '.[deploy]'
	@touch $@

# The table of variables in deploy/ansible/README.md.
docs-ansible: install-dev
	$(BIN)/python -m deploy.variables

# Ansible finds a collection by its place, so the tree gets one that has its name.
COLLECTIONS := $(abspath .cache/collections)

$(COLLECTIONS)/ansible_collections/skidway/fleet:
	@mkdir -p $(@D)
	@ln -sfn $(abspath deploy/ansible) $@

lint-ansible: $(VENV)/.installed-deploy $(COLLECTIONS)/ansible_collections/skidway/fleet
	cd deploy/ansible && $(abspath $(BIN))/yamllint --strict .
	cd deploy/ansible && PATH="$(abspath $(BIN)):$$PATH" ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) \
		ansible-lint --offline --strict
	cd deploy/ansible && ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) \
		$(abspath $(BIN))/ansible-playbook --syntax-check -i inventories/example playbooks/*.yml

# What tests run besides Skidway (.cache/peers); Maven is installed where that may be done.
peers: install-dev
	$(BIN)/python tests/support/peers.py

$(SUITES): install-dev
	@$(call PYTEST,-m 'not foreign' tests/$@)

crash conformance e2e: peers

# These two only compute, without sockets and clocks: on all cores at once.
unit model: WORKERS := -n auto

# The others wait for programs as often as they compute. The files of a suite, and the pipelines of
# e2e, are dealt out to so many processes.
PROCESSES ?= 2

crash conformance: WORKERS := -n $(PROCESSES) --dist loadfile
e2e: WORKERS := -n $(PROCESSES) --dist loadgroup

test: check $(SUITES)

# Tests that need Node, Go, Debian packages or root carry the mark `foreign`. What they need is
# installed where that may be done.
foreign: install-dev peers
	PYTHONPATH=tests $(BIN)/python -m support.foreign
	@$(call PYTEST,-m foreign tests)

# The steps of a story: after the first that fails the others mean nothing.
test-deploy: install-dev $(VENV)/.installed-deploy
	PYTHONPATH=tests $(BIN)/python -m support.debian
	@$(call PYTEST,-x -m deploy --durations=0 --durations-min=1 tests/deploy)

# The tasks of docs/operations.md, in its own words; and an operator's own ZooKeeper, Apache Kafka,
# registry, HDFS and Spark.
test-operations: install-dev $(VENV)/.installed-deploy peers
	PYTHONPATH=tests $(BIN)/python -m support.debian
	@$(call PYTEST,-x -m operations --durations=0 --durations-min=1 tests/deploy)

# TESTED=yes: `make test` was just done.
test-all: $(if $(TESTED),,test) foreign lint-ansible test-deploy

bench: install-dev peers
	$(BIN)/python -m bench.run $(ARGS)

# RabbitMQ and ActiveMQ are Debian packages, installed where that may be done.
bench-paper: install-dev peers
	$(BIN)/python -m bench.run paper

# VERSION=x: another one than pyproject's, without a change to the tree.
wheels: install
	$(BIN)/python -m deploy.packaging.wheels $(if $(VERSION),--version '$(VERSION)')

deb: install
	$(BIN)/python -m deploy.packaging.deb $(if $(VERSION),--version '$(VERSION)')

clean:
	rm -rf $(VENV) build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
