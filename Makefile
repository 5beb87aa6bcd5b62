# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Short names for what a person does with a clone; each line can be typed by hand as well.

# Ansible leaves flushing to the system, which through a pipe would keep progress back until there are 8 KB of it.
export PYTHONUNBUFFERED := 1

playbook := .venv/bin/ansible-playbook hetero.compute

# What the playbooks say themselves, without Ansible's line for each task; with -v, or another callback, all of them.
demo console status flavors terminate lab-up lab-down: export ANSIBLE_STDOUT_CALLBACK ?= hetero.compute.quiet

.PHONY: help bench demo docs figures flavors release test test-all ssh console status terminate lab-up lab-down setup setup-test name
.DEFAULT_GOAL := help

help:
	@echo "make demo                 a lab on this machine, a board asked for by flavor, a login on it"
	@echo "make ssh NAME=jackie      log in; NAME=proxy1 on the proxy node"
	@echo "make console NAME=jackie  the end of its board's console, and how to attach to it and to follow it"
	@echo "make status               every node, its state, who has it; JSON=1 for programs, HTML=FILE (besides) for a browser"
	@echo "make flavors              what can be asked for, and how much of it is free"
	@echo "make terminate NAME=jackie"
	@echo "make lab-up, lab-down     the lab alone; lab-down leaves nothing behind"
	@echo "make docs                 all documentation as a web site: build/docs/html/index.html"
	@echo "make release VERSION=1.2.3   changelog, archive, commit and tag, once make test has passed"
	@echo "make bench                what it costs, beside what others cost, measured in one run; QUICK=1: some of it, in minutes"
	@echo "make figures              the house in figures: files, lines, circles, types; REVISIONS=\"v1 HEAD\" beside each other"
	@echo "make test, test-all       all tests, and those that take long; one stage: make test-ruff, test-types, test-layers,"
	@echo "                          test-docs, test-unit, test-sanity, test-lint, test-package, test-e2e, test-attack,"
	@echo "                          test-molecule (all scenarios), test-molecule-default (one of molecule/),"
	@echo "                          test-versions (each ansible-core on each Python: Debian's and Ubuntu's mirrors give them),"
	@echo "                          test-sanity-everywhere, test-ansible-unit (the same on each Python, in ansible-test's way),"
	@echo "                          test-lint-everywhere (ansible-lint on the scenarios and tests, too),"
	@echo "                          test-mutants (small faults in a sample of the code: do the unit tests notice them?),"
	@echo "                          test-gpu (needs a real GPU, says so where there is none; without .venv: python3 tests/run gpu)"

demo: setup
	@tools/demo

ssh: name setup
	@tools/ssh "$(NAME)"

console: name setup
	@$(playbook).console -e "instance=$(NAME)"

# JSON=1: nothing but the JSON, for programs
status: setup
	@if [ -z "$(JSON)" ]; then tools/status $(if $(HTML),-e "html=$(abspath $(HTML))"); \
	else said=$$($(playbook).status -e json=true $(if $(HTML),-e "html=$(abspath $(HTML))")); ended=$$?; \
	printf '%s\n' "$$said" | grep '^{'; \
	[ $$ended = 0 ] || printf '%s\n' "$$said" | grep -v '^{' >&2; exit $$ended; fi

flavors: setup
	@$(playbook).flavors

terminate: name setup
	@$(playbook).terminate_instance -e "instance=$(NAME)"

lab-up: setup
	@$(playbook).lab_up

lab-down: setup
	@$(playbook).lab_down

figures: setup-test
	@.venv/bin/python tests/figures.py $(REVISIONS)

# QUICK=1: some of it, one turn each
bench: export QUICK := $(QUICK)
bench:
	@tools/setup bench
	@tools/bench

docs: setup-test
	@tools/docs

release: setup-test
	@tools/release "$(VERSION)"

test: setup-test
	@.venv/bin/python tests/run

test-all: setup-test
	@.venv/bin/python tests/run --all

test-%: setup-test
	@.venv/bin/python tests/run $*

setup:
	@tools/setup

setup-test:
	@tools/setup test

name:
	@test -n "$(NAME)" || { echo "Which instance? make $(filter ssh console terminate,$(MAKECMDGOALS)) NAME=jackie" >&2; exit 1; }
