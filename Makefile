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
# The same versions each time, so that no release of a tool decides whether work lands. NEWEST=1: without.
INSTALL = $(BIN)/python -m pip install --quiet $(if $(NEWEST),--upgrade,--constraint .ci/constraints.txt)
# What the tests start for real. Debian and Ubuntu share the names.
TEST_PACKAGES := slurm-wlm slurmdbd mariadb-server munge openssh-server iproute2 fuse3 procps \
            monitoring-plugins-basic postgresql gcc libc6-dev prometheus-alertmanager busybox cron shellcheck \
            prometheus chromium wrk btrfs-progs mawk gawk original-awk

.PHONY: help run test test-long test-nightly nightly check-newest constraints install-all mutants torture hostile bare check house format lab demo bench docs pictures pyz service need-systemd install-files clean packages release test-packages test-life first-mail

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: .venv/.run ## set everything up and start the service on its embedded default
	@echo "Watching. It stays silent while all is well; Ctrl-C ends it." >&2
	@exec $(BIN)/sentinel run

test: .venv/.dev test-packages ## set everything up (Debian packages too, as root) and run the tests but for the long ones
	@# 6 on two cores: most of a test on the cluster is waiting for it.
	@$(BIN)/python -m tests.gate.hearing test -n 6 --dist worksteal -m 'not long and not nightly' $(ARGS)

test-long: .venv/.dev test-packages ## the long ones, which CI runs too
	@# A file at a time; 7: most of it is waiting.
	@$(BIN)/python -m tests.gate.hearing long -n 7 --dist loadfile -m long $(ARGS)

test-nightly: .venv/.dev test-packages ## the longest ones, which make nightly runs
	@# A file at a time: some wait for a minute of a cron daemon, of which a host has one.
	@$(BIN)/python -m tests.gate.hearing nightly -n 4 --dist loadfile -m nightly $(ARGS)

nightly: ## as root: all that takes too long for each commit; about two hours
	@.ci/nightly

mutants: .venv/.dev ## plant faults in what judges, deletes or tells; show what no test notices
	@$(BIN)/python -m tests.mutants $(ARGS)

torture: .venv/.dev test-packages ## faults of all kinds beside a real cluster; counts the harm (ARGS="--minutes N --seed S")
	@$(BIN)/python -m tests.torture $(ARGS)

hostile: .venv/.dev test-packages ## what an ordinary user of the cluster can do to it, tried on one; five minutes
	@$(BIN)/python -m tests.hostile $(ARGS)

bare: .venv/.dev ## every command in minimal Debian roots (mmdebstrap, as root); about four minutes
	@.ci/packages mmdebstrap
	@$(BIN)/python -m tests.bare $(ARGS)

check: .venv/.dev ## formatter, linter, strict types, layers
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/lab tests/conftest.py benchmarks
	$(BIN)/lint-imports --no-logo

check-newest: .venv/.dev ## the same with the newest versions of all tools; once a week, by hand
	$(PYTHON) -m venv build/newest
	build/newest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/newest/bin/python -m pip install --quiet --upgrade --editable . --group dev
	@$(MAKE) --no-print-directory check BIN=build/newest/bin

constraints: .venv/.packages ## make .ci/constraints.txt anew, with the newest versions of everything
	@{ echo "# What the tests and tools run with, of $$(date -u +%F). Made by \`make constraints\`."; \
	   $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --all-extras --group dev --group docs \
	     --group packages --no-header --no-annotate pyproject.toml; } >build/constraints.txt
	mv build/constraints.txt .ci/constraints.txt

house: .venv/.dev ## counters of the source beside their limits: names, imports, lengths
	@$(BIN)/python -m tests.house

format: .venv/.dev ## put the code in order
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lab: .venv/.dev test-packages ## a shell in a real, throw-away Slurm cluster
	@$(BIN)/python -m tests.lab shell

demo: .venv/.dev test-packages ## a night on that cluster, told as it happens (about 90 s)
	@$(BIN)/python -m tests.lab demo

bench: .venv/.dev test-packages ## measure, and print the ratios (ARGS="web slurm": those alone)
	$(BIN)/python -m benchmarks $(ARGS)

docs: .venv/.docs ## build the documentation as a site into build/site; every link is checked
	$(BIN)/mkdocs build --quiet --strict

pictures: .venv/.dev test-packages ## make the pictures of the documentation anew
	$(BIN)/python -m docs.pictures

pyz: .venv/.made ## build dist/sentinel.pyz: all in one file, for shared file systems
	$(BIN)/python packaging/pyz.py dist/sentinel.pyz

packages: .venv/.packages ## as root: build dist/: wheel, sdist, zipapp, constraints, SBOM, .deb and .rpm (ARGS="--only rpm")
	@.ci/packages binutils debhelper dpkg-dev fakeroot mmdebstrap rpm
	$(BIN)/python packaging/packages.py dist $(ARGS)

release: .venv/.packages ## as root: set the version, check, build dist/ and tag, without pushing (VERSION=0.1.0)
	@$(BIN)/python packaging/release.py "$(VERSION)" $(ARGS)

test-life: .venv/.dev ## as root: the life of each package in dist/ on clean Debians that boot (make packages first)
	@.ci/packages mmdebstrap
	$(BIN)/python packaging/clean_systems.py dist
	@# 7: a life is most of the time a wait for a minute without changes.
	$(BIN)/pytest -n 7 -m nightly tests/packaging/test_life.py $(ARGS)

first-mail: .venv/.dev ## as root: time the way from a package in dist/ to the first mail, on clean Debians with a Slurm
	@.ci/packages mmdebstrap
	$(BIN)/python packaging/clean_systems.py --sites dist
	@$(BIN)/python -m tests.packaging.first_mail

# For packagers: all that is not Python. SENTINEL is a command that runs sentinel here.
DESTDIR ?=
PREFIX ?= /usr/local
UNITDIR ?= /etc/systemd/system
SYSTEMDLIB ?= /usr/lib
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
SENTINEL ?= $(BIN)/sentinel

install-files: ## units, manual page, completions below DESTDIR, for packagers
	@for unit in systemd/sentinel*.service systemd/sentinel*.timer; do \
	   sed 's,^ExecStart=sentinel ,ExecStart=$(PREFIX)/bin/sentinel ,' "$$unit" | \
	     install -D -m 644 /dev/stdin "$(DESTDIR)$(UNITDIR)/$${unit##*/}"; \
	 done
	install -D -m 644 systemd/sentinel.sysusers $(DESTDIR)$(SYSTEMDLIB)/sysusers.d/sentinel.conf
	install -D -m 644 systemd/sentinel.tmpfiles $(DESTDIR)$(SYSTEMDLIB)/tmpfiles.d/sentinel.conf
	@put() { $(SENTINEL) $$1 | install -D -m 644 /dev/stdin "$(DESTDIR)$$2"; }; \
	 put man $(PREFIX)/share/man/man1/sentinel.1; \
	 put 'completion bash' $(PREFIX)/share/bash-completion/completions/sentinel; \
	 put 'completion zsh' $(ZSHDIR)/_sentinel; \
	 put 'completion fish' $(PREFIX)/share/fish/vendor_completions.d/sentinel.fish

service: need-systemd /opt/sentinel/bin/sentinel ## as root: install for systemd, with a first configuration; starts nothing
	install -d $(PREFIX)/bin
	ln -sf /opt/sentinel/bin/sentinel $(PREFIX)/bin/sentinel
	@$(MAKE) --no-print-directory install-files SENTINEL=/opt/sentinel/bin/sentinel
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

# First of all, so that nothing is left half done.
need-systemd:
	@refuse() { echo "make service: $$1; nothing was changed" >&2; exit 1; }; \
	 [ -z "$(DESTDIR)" ] || refuse "for a package: make install-files DESTDIR=$(DESTDIR), and the wheel"; \
	 [ "$$(id -u)" = 0 ] || refuse "only root may install a service: sudo make service"; \
	 [ -d /run/systemd/system ] || refuse "systemd does not run here. Install the wheel \
	(docs/install.md) and let your supervisor run 'sentinel run', or cron 'sentinel tick'"

/opt/sentinel/bin/sentinel: pyproject.toml $(shell find sentinel -name '*.*' -type f -not -name '*.pyc') | need-systemd
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

.venv/.run: pyproject.toml .ci/constraints.txt | .venv/.made
	@echo "2 of 2: installing sentinel and what it needs into it (about a minute)" >&2
	$(INSTALL) --editable .
	@touch $@

.venv/.dev: pyproject.toml .ci/constraints.txt | .venv/.run
	@echo "installing what the tests need (about two minutes)" >&2
	$(INSTALL) --group dev
	@touch $@

.venv/.docs: pyproject.toml .ci/constraints.txt | .venv/.made
	$(INSTALL) --group docs
	@touch $@

.venv/.packages: pyproject.toml .ci/constraints.txt | .venv/.run
	$(INSTALL) --group packages
	@touch $@

install-all: .venv/.dev .venv/.docs test-packages

test-packages:
	@if [ $$(id -u) = 0 ]; then .ci/packages $(TEST_PACKAGES); \
	 else echo "not root: tests that need the cluster are skipped"; fi
