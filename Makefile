# Every target installs what it needs: `make demo` and `make test` work in a fresh clone.
# Required beforehand: Python 3.11 or newer (with venv), make, a C library.

# NEWEST=yes: use the newest versions that pyproject.toml allows, not the locked ones.
VENV := .venv$(if $(NEWEST),-newest)
BIN := $(VENV)/bin
PACKAGES := skidway schemas audit agent broker loader
CHECKED := $(PACKAGES) pyspark_skidway.py tests bench deploy

# The first Python that is new enough; `make PYTHON=... demo` uses another one.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	command -v $$name >/dev/null 2>&1 && \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$name && break; done)

PIP := $(BIN)/python -m pip --disable-pip-version-check

# The test suites; the fastest comes first.
SUITES := unit model crash conformance e2e

# $(call PYTEST,NAME,OPTIONS) runs pytest and prints its duration. It fails if a test fails or if no
# test ran. With REPORTS=DIR pytest writes an XML report to DIR.
PYTEST = started=$$(date +%s); status=0; \
	$(BIN)/pytest $(if $(REPORTS),--junit-xml=$(REPORTS)/$(1).xml) $(2) $(ARGS) || status=$$?; \
	echo "== $(1): $$(($$(date +%s) - started)) s, status $$status"; exit $$status

# Each suite needs the machine for the programs that it starts: one suite at a time, even with -j.
.NOTPARALLEL:

.PHONY: help venv install install-dev lock demo doctor fmt lint type imports check \
	docs-ansible docs-promises docs-tables screenshots lint-ansible $(SUITES) peers test test-deep foreign readers test-deploy test-operations test-all explore torture incidents mutants \
	bench bench-paper wheels deb clean

help:
	@echo 'make demo      a million lines through the whole pipeline here, with kills; ARGS="--quick", "--logs GLOB" for yours'
	@echo 'make test      rules, types, imports, all unit tests, every model, and each promise on real programs'
	@echo 'make test-deep   test, then the rest of every suite, with Apache Kafka, HDFS and a KDC, which Maven and apt-get fetch'
	@echo 'make foreign   tests with clients for Node, Go and Java, an older Spark, and Debian packages: rsyslog, Prometheus, Chromium'
	@echo 'make test-deploy   the Ansible collection on three Debian hosts of its own; needs root'
	@echo 'make test-all  test-deep, model, foreign, lint-ansible and test-deploy'
	@echo 'make test-operations   the tasks of docs/operations.md, and services that are there already, on such hosts; not in test-all'
	@echo 'make $(SUITES)    one suite of tests; ARGS="-k ..." for pytest; PROCESSES=1 for one test at a time, but for unit and model'
	@echo 'make explore   random tests with new seeds; MINUTES=30, SEED=n, ARGS="tests/model/test_agent.py"'
	@echo 'make torture   all programs under all faults, and what became of every line; MINUTES=30, SEED=n; needs root'
	@echo 'make incidents   breaks eight parts of a small site: how soon page, why and report show the true cause first'
	@echo 'make mutants   cosmic-ray changes the modules that decide: which changes no test notices; ARGS="agent/parsing/framing.py"'
	@echo 'make bench     figures, each beside its peer, into docs/performance.md; ARGS="produce latency" for some'
	@echo 'make bench-paper    the experiment of the Kafka paper, beside RabbitMQ and ActiveMQ, which it installs'
	@echo 'make wheels    what hosts without internet install, into dist/wheels; VERSION=x for another version'
	@echo 'make docs-ansible docs-promises docs-tables   the tables that are made from settings, roles, and marks in tests'
	@echo "make screenshots   the pictures of README and docs/audit.md, with Debian's Chromium"
	@echo 'make lint-ansible    yamllint and ansible-lint on deploy/ansible'
	@echo "make deb       the agent as a Debian package with its own environment, into dist; VERSION=x"
	@echo 'make lock      resolve the versions in requirements/ anew; NEWEST=yes with any target: without the locks'
	@echo 'make fmt lint type imports    one tool at a time;  make doctor    what this machine lacks'
	@echo 'make clean     remove what was built (not ./skidway-demo)'

venv: $(BIN)/python

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "Skidway needs Python 3.11 or newer, and this machine has $$(python3 --version 2>/dev/null || echo none): install it (Debian, Ubuntu: apt-get install python3 python3-venv), or name one with make PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "$(PYTHON) is no Python 3.11 or newer: name another with make PYTHON=/path/to/python3, or leave PYTHON out" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

# $(call INSTALL,LOCK,EXTRA,SIZE) installs the versions and hashes of requirements/LOCK.txt, then our own
# package without its dependencies. SIZE is a text to print, because pip shows no size beforehand.
INSTALLATION := $(BIN)/python deploy/packaging/installation.py
ifdef NEWEST
INSTALL = @$(INSTALLATION) "$(3)" --editable '.[$(2)]'
else
INSTALL = @$(INSTALLATION) "$(3)" --require-hashes --requirement requirements/$(1).txt && \
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
endif

# `install` installs what programs need, `install-dev` also what tests need; both run again when the
# versions change.
install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(VENV)/.installed: pyproject.toml requirements/demo.txt | $(BIN)/python
	$(call INSTALL,demo,demo,0.6 GB to download and 1 GB on disk; Spark is half of it)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/test.txt | $(BIN)/python
	$(call INSTALL,test,dev,0.7 GB to download and 1.4 GB on disk; Spark is the largest)
	@touch $@ $(VENV)/.installed

# Packages that only the checks of deploy/ansible, or only `make mutants`, need.
$(VENV)/.installed-deploy: pyproject.toml requirements/deploy.txt | $(BIN)/python
	$(call INSTALL,deploy,deploy,20 MB to download)
	@touch $@

$(VENV)/.installed-mutants: pyproject.toml requirements/mutants.txt | $(BIN)/python
	$(call INSTALL,mutants,mutants,10 MB to download)
	@touch $@

# Locks versions for every Python from 3.11 on, without the address of an index. If two files list a
# package, both list the same version.
UV := uv==0.13.8
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-header --no-annotate pyproject.toml

lock: $(BIN)/python
	$(PIP) install --quiet $(UV)
	$(COMPILE) --extra dev --extra build --output-file requirements/test.txt
	$(COMPILE) --extra demo --extra build --constraint requirements/test.txt --output-file requirements/demo.txt
	$(COMPILE) --extra wheels --constraint requirements/test.txt --output-file requirements/wheels.txt
	$(COMPILE) --extra deploy --extra build --constraint requirements/test.txt --output-file requirements/deploy.txt
	$(COMPILE) --extra mutants --extra build --constraint requirements/test.txt --output-file requirements/mutants.txt

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

# Writes the tables of variables in deploy/ansible/README.md.
docs-ansible: install-dev
	$(BIN)/python -m deploy.variables

# Writes the tables of formats, settings, columns and codecs in docs/.
docs-tables: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.generated_tables

# Writes docs/promises.md from the marks in the tests.
docs-promises: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.promises_page

# Takes the pictures of README.md and docs/audit.md with Debian's Chromium; installs Chromium if it may.
screenshots: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.screenshots

# Ansible finds a collection only at a path with its name, so this makes a link at such a path.
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

# Fetches the programs that tests run besides Skidway (.cache/peers); installs Maven if it may.
peers: install-dev
	$(BIN)/python tests/support/peers.py

# How many tests run at once; each process takes whole files, or pipelines of e2e.
PROCESSES ?= 4
DEALT = -n $(PROCESSES) --dist loadgroup
TESTS := $(SUITES:%=tests/%)
PROGRAMS := (crash or conformance or e2e)

# Only root can make some faults of disks. Who is not root runs all other tests.
ROOTLESS := $(if $(filter-out 0,$(shell id -u)), and not root)

# One whole suite, or the tests that ARGS names.
NAMED = $(if $(filter tests/%,$(ARGS)),,tests/$@)

unit model: install-dev
	@$(call PYTEST,$@,-n auto -m 'not foreign' $(NAMED))

crash conformance e2e: install-dev peers
	@$(call PYTEST,$@,$(DEALT) -m 'not foreign$(ROOTLESS)' $(NAMED))

# Needs only Python, make and PyPI: random tests are shortened, and of the tests with real programs only
# those marked `quick` run. mypy and the linters use one core, and go on beside the tests, once the other core
# has compiled these. (A line with the name MAKE would run the tests even with `make -n`.)
CHECK := $(MAKE) check
test: install-dev
	@$(CHECK) >$(VENV)/check.txt 2>&1 & check=$$!; $(BIN)/pytest --collect-only -q $(TESTS) >/dev/null 2>&1; \
	($(call PYTEST,$@,$(DEALT) --share 16 -m 'not slow and not foreign and (quick or not $(PROGRAMS))' $(TESTS))); \
	tested=$$?; wait $$check; checked=$$?; cat $(VENV)/check.txt; \
	echo "== check: status $$checked"; [ $$tested -eq 0 ] && exit $$checked; exit $$tested

# `make test`, then what it left out: another eighth of the random schedules and examples of unit and model, and
# the rest of the other suites. TESTED=yes: `make test` has just run, so do not run it again. Of unit and model,
# only the files with random tests are collected, which saves each process a few seconds.
SEEDED = $(shell grep -rlE '@given|seeds?\b|TestCase' --include='test_*.py' tests/unit tests/model)
test-deep: $(if $(TESTED),,test) install-dev peers
	@$(call PYTEST,$@,$(DEALT) --share 8 --hypothesis-seed 1 -m \
		'not foreign$(ROOTLESS) and (random or $(PROGRAMS) and (slow or not quick))' \
		$(SEEDED) tests/crash tests/conformance tests/e2e)

# Tests that need Node, Go, an older Spark, Debian packages or Spark on a cluster, or for which test-deep has no time,
# have the mark `foreign`. Installs what they need if it may.
foreign: install-dev peers
	PYTHONPATH=tests $(BIN)/python -m support.foreign
	@$(call PYTEST,$@,$(DEALT) -m foreign tests)

# Programs that read outputs and are too large for `foreign`: Spark 3.3 and 3.5, and Trino.
readers: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.large_readers

# These tests are steps of one story, so the run stops at the first failure.
test-deploy: install-dev $(VENV)/.installed-deploy
	PYTHONPATH=tests $(BIN)/python -m support.debian
	@$(call PYTEST,$@,-x -m deploy --durations=0 --durations-min=1 tests/deploy)

# Runs the tasks of docs/operations.md with the commands of that page; and uses an operator's own
# ZooKeeper, Apache Kafka, registry, HDFS and Spark.
test-operations: install-dev $(VENV)/.installed-deploy peers
	PYTHONPATH=tests $(BIN)/python -m support.debian
	@$(call PYTEST,$@,-x -m operations --durations=0 --durations-min=1 tests/deploy)

# The whole suite `model` searches further than test-deep.
test-all: test-deep model foreign lint-ansible test-deploy

# Runs random tests with new seeds; prints each failure with the command that replays it.
explore: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.explore $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

# Runs all programs under faults that a seed determines; needs root and libfaketime (Debian: faketime).
torture: install-dev peers
	PYTHONPATH=tests $(BIN)/python -m torture $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(ARGS)

# Breaks eight parts of a small site, and prints how soon page, `why` and report show the true cause first.
incidents: install-dev
	PYTHONPATH=tests $(BIN)/python -m support.incident_table

# Tries mutants of modules that decide, in a copy of the tree, each with the tests of its module.
mutants: install-dev $(VENV)/.installed-mutants
	PYTHONPATH=tests $(BIN)/python -m support.mutants $(ARGS)

bench: install-dev peers
	$(BIN)/python -m bench.run $(ARGS)

# RabbitMQ and ActiveMQ are Debian packages; the target installs them if it may.
bench-paper: install-dev peers
	$(BIN)/python -m bench.run paper

# VERSION=x: another version than that of pyproject.toml, without a change to the tree.
wheels: install
	$(BIN)/python -m deploy.packaging.wheels $(if $(VERSION),--version '$(VERSION)')

deb: install
	$(BIN)/python -m deploy.packaging.deb $(if $(VERSION),--version '$(VERSION)')

clean:
	rm -rf .venv .venv-newest build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
