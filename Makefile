# Two commands on a fresh Debian or Ubuntu machine: `make run` and `make test`.
# Needs git, make and Python 3.10 or newer; fetches the rest itself. `make help` lists all.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Set, every sentinel that a test starts would compile itself anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
SOURCES := sentinel tests benchmarks docs packaging
# What the tests start for real. Debian and Ubuntu share the names.
PACKAGES := slurm-wlm slurmdbd mariadb-server munge openssh-server iproute2 fuse3 procps \
            monitoring-plugins-basic postgresql gcc libc6-dev prometheus-alertmanager busybox cron shellcheck \
            prometheus chromium wrk btrfs-progs mawk gawk original-awk

.PHONY: help run test test-long mutants torture check house format lab demo bench docs pictures pyz service clean packages

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: .venv/.run ## set everything up and start the service on its embedded default
	@echo "Watching. It stays silent while all is well; Ctrl-C ends it." >&2
	@exec $(BIN)/sentinel run

test: .venv/.dev packages ## set everything up (Debian packages too, as root) and run the tests but for the long ones
	@# 6 on two cores: most of a test on the cluster is waiting for it.
	$(BIN)/pytest -n 6 --dist worksteal -m 'not long' $(ARGS)

test-long: .venv/.dev packages ## the long ones, which CI runs too
	@# A file at a time: some wait for a minute of a cron daemon, of which a host has one. 5: none is marked so.
	$(BIN)/pytest -n 4 --dist loadfile -m long $(ARGS) || [ $$? = 5 ]

mutants: .venv/.dev ## plant faults in what judges, deletes or tells; show what no test notices
	@$(BIN)/python -m tests.mutants $(ARGS)

torture: .venv/.dev packages ## faults of all kinds beside a real cluster; counts the harm (ARGS="--minutes N --seed S")
	@$(BIN)/python -m tests.torture $(ARGS)

check: .venv/.dev ## formatter, linter, strict types, layers
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/lab tests/conftest.py benchmarks
	$(BIN)/lint-imports --no-logo

house: .venv/.dev ## counters of the source beside their limits: names, imports, lengths
	@$(BIN)/python -m tests.house

format: .venv/.dev ## put the code in order
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lab: .venv/.dev packages ## a shell in a real, throw-away Slurm cluster
	@$(BIN)/python -m tests.lab shell

demo: .venv/.dev packages ## a night on that cluster, told as it happens (about 90 s)
	@$(BIN)/python -m tests.lab demo

bench: .venv/.dev packages ## measure, and print the ratios (ARGS="web slurm": those alone)
	$(BIN)/python -m benchmarks $(ARGS)

docs: .venv/.docs ## build the documentation as a site into build/site; every link is checked
	$(BIN)/mkdocs build --quiet --strict

pictures: .venv/.dev packages ## make the pictures of the documentation anew
	$(BIN)/python -m docs.pictures

pyz: .venv/.made ## build dist/sentinel.pyz: all in one file, for shared file systems
	$(BIN)/python packaging/pyz.py dist/sentinel.pyz

service: /opt/sentinel/bin/sentinel ## as root: install for systemd, with a first configuration; starts nothing
	ln -sf /opt/sentinel/bin/sentinel /usr/local/bin/sentinel
	install -m 644 systemd/sentinel*.service systemd/sentinel*.timer /etc/systemd/system/
	install -D -m 644 systemd/sentinel.sysusers /usr/lib/sysusers.d/sentinel.conf
	install -D -m 644 systemd/sentinel.tmpfiles /usr/lib/tmpfiles.d/sentinel.conf
	systemd-sysusers sentinel.conf
	systemd-tmpfiles --create sentinel.conf
	systemctl daemon-reload
	@slurm=$$(dirname "$$(command -v squeue || echo /usr/bin/squeue)"); \
	 [ -e /etc/sentinel/environment ] || [ "$$slurm$${SLURM_CONF:-}" = /usr/bin ] || \
	   printf '%s\n' "PATH=$$slurm:/usr/local/bin:/usr/bin:/bin" $${SLURM_CONF:+"SLURM_CONF=$$SLURM_CONF"} \
	     >/etc/sentinel/environment
	[ -e /etc/sentinel/sentinel.yaml ] || /opt/sentinel/bin/sentinel config init /etc/sentinel/sentinel.yaml
	chgrp sentinel /etc/sentinel/sentinel.yaml
	chmod 640 /etc/sentinel/sentinel.yaml

clean: ## remove what labs, tools and builds left; .venv too
	if [ -x $(BIN)/python ]; then $(BIN)/python -m tests.lab clean; fi
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

/opt/sentinel/bin/sentinel: pyproject.toml $(shell find sentinel -name '*.*' -type f -not -name '*.pyc')
	$(need-python)
	$(PYTHON) -m venv /opt/sentinel
	/opt/sentinel/bin/pip install --quiet --upgrade .
	@touch $@

define need-python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
  { echo "sentinel needs Python 3.10 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || .ci/packages python3-venv
endef

# Stamps lie in .venv, so that they go with it; the second time costs nothing.

.venv/.made:
	$(need-python)
	@echo "1 of 2: making .venv (about 15 s)" >&2
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

.venv/.run: pyproject.toml | .venv/.made
	@echo "2 of 2: installing sentinel and what it needs into it (about a minute)" >&2
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.dev: pyproject.toml | .venv/.run
	@echo "installing what the tests need (about two minutes)" >&2
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

.venv/.docs: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

packages:
	@if [ $$(id -u) = 0 ]; then .ci/packages $(PACKAGES); \
	 else echo "not root: tests that need the cluster are skipped"; fi
