# make lab framework=aiohttp [rate=2000 ...]   sets everything up and runs the lab
# make test                                    sets everything up and runs the suite, 20 minutes at most
# make test-all                                runs what that leaves out too
# make test-all only=stacks,faults             runs parts of it, see CONTRIBUTING.md
# make lab hands any name=value to the playbook as it is.
SHELL := /bin/bash
.DEFAULT_GOAL := lab
.PHONY: lab test test-all lint unit aws molecule core lock setup

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Molecule and the tests find the lab's own settings wherever they run.
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Compiled Python is kept, whatever the environment says: every call of Ansible starts faster.
export PYTHONDONTWRITEBYTECODE :=

# Named by what it holds: another lock file makes another one.
installed := .venv/installed-$(shell sha256sum requirements.txt | cut -c1-16)

setup: $(installed)

$(installed): requirements.txt
	@echo "Setting up Python and Ansible in .venv, about a minute"
	@python3 -c 'import ensurepip' 2>/dev/null || { apt-get -qq update && \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-venv >/dev/null; }
	@python3 -m venv --clear .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	    --requirement <(sed -n '/^uv==/,/^[a-z]/{/^uv==/p;/^ /p}' requirements.txt)
	@.venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --requirement requirements.txt
	@.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

lab: setup
	@ansible-playbook lab.yml $(foreach pair,$(MAKEOVERRIDES),-e '$(pair)')

# What measures nothing runs side by side.
test: setup
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=line lint unit aws molecule
	@$(MAKE) --no-print-directory core

# A part is a file; named with only= it runs whole, what make test has of it included.
folders := tests/lab tests/first_run
parts := $(patsubst test_%,%,$(basename $(notdir $(foreach folder,$(folders),$(wildcard $(folder)/test_*.py)))))
comma := ,
chosen := $(subst $(comma), ,$(only))
unknown := $(filter-out $(parts),$(chosen))

test-all: setup
	@$(if $(unknown),echo "only: '$(unknown)' is no part. There are: $(sort $(parts))" >&2; exit 2)
	@$(if $(chosen),,$(MAKE) --no-print-directory test)
	$(if $(chosen),pytest $(foreach part,$(chosen),$(wildcard $(folders:%=%/test_$(part).py))),pytest $(folders) -m "not core")

lint: setup
	ruff check .
	ruff format --check .
	mypy loadlab collections tests
	lint-imports --no-cache --no-logo
	yamllint --strict .
	ansible-lint --offline

unit: setup
	pytest tests/unit

# What is asked of AWS, against moto's server here.
aws: setup
	pytest tests/aws

# Boots hosts of its own making, measures, and removes them. Needs root.
molecule: setup
	molecule test --all

# Refreshes every lock file from its requirements.in.
lock: setup
	for each in . apps/* files/clients files/profiler; do \
	  [ ! -f $$each/requirements.in ] || uv pip compile --quiet --universal --python-version 3.11 \
	    --generate-hashes --no-header --upgrade --constraint apps/constraints.txt \
	    $$each/requirements.in --output-file $$each/requirements.txt >/dev/null; \
	done
	cd apps/golang && go mod tidy
	cd apps/nodejs && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

# The lab from end to end, and what is injected told as what it is. Needs root.
core: setup
	pytest tests/lab -m core
