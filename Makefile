# SPDX-License-Identifier: GPL-2.0-only

PYTHON := .venv/bin/python
SETUP := lab/setup.sh $(if $(NO_INSTALL),--no-install)

# The rest of the command line of pytest: make test TESTS="tests/unit -k series"
TESTS ?= tests experiments --ignore=tests/lint -m "not vm and not distros"

# How long `make soak` goes on, and where its record is put.
HOURS ?= 3
SOAK_RECORD ?= soak

# To compile all tests again takes longer than to run the quick ones.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'NO_INSTALL=1 forbids installing Debian packages; TESTS="tests/unit" chooses tests.'

.PHONY: setup
setup: ## install what the stages need; nothing to install is quick
	@$(SETUP) native vm count arm64 quick

.PHONY: setup-test
setup-test:
	@$(SETUP) native vm count arm64 quick arch test $(if $(CI),sshd)

# What needs no kernel, and takes little each: tests/slow.txt names what does not.
QUICK := not native and not vm and not live and not distros and not slow
UNREAD := $(patsubst %,--ignore-glob='*/tests/%/*',native vm live)
CHECKED := $(if $(filter command line,$(origin TESTS)),$(TESTS),\
	tests/unit tests/lint tests/cli/test_cached_row.py experiments)

.PHONY: check
check: ## in a minute, without compiler, network or root: linters and quick tests
	@lab/setup.sh --no-install python
	@$(PYTHON) -m pytest -q -n 2 --dist loadgroup -m "$(QUICK)" $(UNREAD) $(CHECKED)

# Tests that share a machine-wide resource, such as its clock, or a long build name a group; the
# others spread.
# None takes a third of the timeout, in seconds; one that waits for ever fails and is named.
.PHONY: test
test: setup-test ## run the tests; the first time they fetch and build kernel source
	@$(PYTHON) -m pytest -n 2 --dist loadgroup --no-loadscope-reorder --timeout 1500 $(TESTS)

# In one process: a guest takes gigabytes, and a build both CPUs.
.PHONY: test-vm
test-vm: setup-test ## all images, debug kernels, selftests, every patch built: two hours
	@$(PYTHON) -m pytest tests experiments --ignore=tests/lint -m vm

.PHONY: test-distros
test-distros: setup-test ## the first command on minimal Debian systems, as root
	@$(SETUP) distros
	@$(PYTHON) -m pytest -rA tests/distros -m distros

.PHONY: soak
soak: setup-test ## random devices in random kernels for HOURS, a line each in SOAK_RECORD
	@for soak in experiments/*/tests/vm/soak.py; do \
		PYTHONPATH=lab:. $(PYTHON) $$soak --hours $(HOURS) --record $(SOAK_RECORD) || exit; \
	done

.PHONY: golden
golden: setup-test ## write again what is made of kept records, the help, and README
	@PYTHONPATH=lab:tests:. $(PYTHON) tests/golden.py
	@PYTHONPATH=lab:tests:. $(PYTHON) tests/help_texts.py
	@PYTHONPATH=lab:tests:. $(PYTHON) tests/readme.py
	@PYTHONPATH=lab:tests:. $(PYTHON) tests/results.py
	@PYTHONPATH=lab:tests:. $(PYTHON) tests/questions.py

.PHONY: lint
lint: setup-test ## judge Python, shell, C and patches
	@$(PYTHON) -m pytest -q -n 2 tests/lint

.PHONY: clean
clean: ## remove .venv and what tools left behind; kernel builds in ~/.cache/ream stay
	@rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	@find lab tests experiments -name __pycache__ -type d -prune -exec rm -rf {} +
