# make lab framework=aiohttp [rate=2000 ...]   installs the tools, then runs the lab
# make test                                    installs the tools, then runs the tests, 12 to 20 minutes
# make test-all                                also runs the tests that this leaves out
# make test-all only=stacks,faults             runs parts of the tests, see CONTRIBUTING.md
# make site [to=<folder>]                      writes the index and the reports as a static folder, site/
# make lab passes every name=value to the playbook.
SHELL := /bin/bash
.DEFAULT_GOAL := lab
.PHONY: lab test test-all lint unit unit-packages unit-whole aws metronome metronome-build molecule molecule-lab molecule-hosts core core-beside core-alone lock generate screenshots setup site tools

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Lets Molecule and the tests find the lab's settings from any directory.
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Keep compiled Python whatever the environment says: Ansible then starts faster.
export PYTHONDONTWRITEBYTECODE :=

# Named by the lock file's hash, so that a changed lock file triggers a new installation.
installed := .venv/installed-$(shell sha256sum requirements.txt | cut -c1-16)

setup: $(installed)

$(installed): requirements.txt
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "python3 is $$(python3 -V 2>&1); the lab needs" \
	    "3.11 or newer. Use Debian 12, Debian 13 or Ubuntu 24.04, or put a newer python3 first in PATH" >&2; exit 2; }
	@echo "Setting up Python and Ansible in .venv, about a minute"
	@python3 -c 'import ensurepip' 2>/dev/null || { apt-get -qq update && \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-venv >/dev/null; }
	@python3 -m venv --clear .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	    --requirement <(sed -n '/^uv==/,/^[a-z]/{/^uv==/p;/^ /p}' requirements.txt)
	@.venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --requirement requirements.txt
	@.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

# Packages with the programs that the tests run on this machine; the lab's roles install what they need themselves.
test_packages := chromium curl nftables openssh-client rsync

# Without installing the packages, which would start servers on ports 9090 and 9100. Debian 12 has promtool in the package of
# Prometheus, Debian 13 in its own.
prometheus := $(addprefix .venv/bin/,prometheus promtool prometheus-node-exporter)

$(prometheus) &: | setup
	@rm -rf .venv/debian && mkdir .venv/debian && cd .venv/debian && \
	    fetch() { apt-get -qq -o APT::Sandbox::User=root download prometheus prometheus-node-exporter \
	        $$(apt-cache --names-only search '^promtool$$' | cut -d ' ' -f 1); } && \
	    { fetch 2>/dev/null || { apt-get -qq update && fetch; }; } && \
	    for each in *.deb; do dpkg-deb --extract $$each . || exit; done && \
	    mv $(addprefix usr/bin/,$(notdir $(prometheus))) ../bin && rm -r ../debian

tools: setup $(prometheus)
	@dpkg-query --show $(test_packages) >/dev/null 2>&1 || { apt-get -qq update && \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $(test_packages) >/dev/null; }

lab: setup
	@ansible-playbook lab.yml $(foreach pair,$(MAKEOVERRIDES),-e '$(pair)')

site: setup
	@python -m loadlab.history.site results $(or $(to),site)

# Targets whose figures others would disturb run alone, after the rest, which run in parallel, the longest first. Of these,
# those without hosts are `nice`: they take the CPU time that those with hosts leave.
test: tools
	@$(MAKE) --no-print-directory --jobs 5 --output-sync=line \
	    core-beside molecule-lab molecule-hosts unit-packages aws lint unit-whole metronome-build
	@$(MAKE) --no-print-directory metronome core-alone

# A part is a test file. With only= it runs completely, including its tests from make test.
# Simulations are first: they need no hosts.
folders := $(wildcard tests/simulation) tests/lab tests/first_run
parts := $(patsubst test_%,%,$(basename $(notdir $(foreach folder,$(folders),$(wildcard $(folder)/test_*.py)))))
comma := ,
chosen := $(subst $(comma), ,$(only))
unknown := $(filter-out $(parts),$(chosen))

test-all: tools
	@$(if $(unknown),echo "only: '$(unknown)' is no part. There are: $(sort $(parts))" >&2; exit 2)
	@$(if $(chosen),,$(MAKE) --no-print-directory test examples=many)
	$(if $(chosen),pytest $(foreach part,$(chosen),$(wildcard $(folders:%=%/test_$(part).py))),pytest $(folders) -m "not core")

lint: setup
	ruff check .
	ruff format --check .
	nice -n 5 mypy loadlab collections tests
	lint-imports --no-cache --no-logo
	yamllint --strict .
	nice -n 5 ansible-lint --offline

# Two processes, which run in parallel under make test: the tests of the packages of loadlab/, and those of the whole lab.
# With examples=many, of each property as many as make test-all takes.
unit: unit-packages unit-whole
profile := $(if $(examples),--hypothesis-profile=$(examples))

unit-packages: tools
	nice -n 5 pytest tests/unit --ignore-glob='tests/unit/test_*.py' $(profile)

unit-whole: tools
	nice -n 5 pytest tests/unit/test_*.py $(profile)

# Tests the generator, with the cargo that the lab would build it with, or builds its tests, which judge how fast it is.
metronome_packages := ca-certificates gcc libc6-dev libssl-dev libzstd-dev pkg-config zlib1g-dev
metronome metronome-build: tools
	@set -e; set -- $$(roles/metronome/files/find-cargo.sh openssl $(metronome_packages)); \
	[ $$# -gt 0 ] || { echo "No Rust 1.63 here, and no right to install it" >&2; exit 2; }; \
	export PATH="$$1:$$PATH" CARGO_TARGET_DIR="$${CARGO_TARGET_DIR:-$(CURDIR)/metronome/target}"; shift; \
	export CARGO_PROFILE_DEV_DEBUG=0; \
	[ $$# = 0 ] || DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$$@" >/dev/null; \
	cd metronome; \
	if command -v cargo-clippy >/dev/null && command -v cargo-fmt >/dev/null; then \
	  cargo fmt --check; nice -n 5 cargo clippy --quiet --locked --all-targets --features tls -- -D warnings; \
	else echo "This cargo has no clippy and no rustfmt: metronome is not linted"; fi; \
	nice -n 5 cargo test --no-run --quiet --locked --features tls; \
	[ $@ = metronome-build ] || cargo test --quiet --locked --features tls

# Tests the AWS calls against a local moto server.
aws: tools
	nice -n 5 pytest tests/aws

# Each boots its own hosts, configures them, and removes them. Needs root.
molecule: molecule-lab molecule-hosts

molecule-lab: setup
	molecule test -s lab

molecule-hosts: setup
	molecule test -s occupied
	molecule test -s local_hosts

# Writes the files that follow from the code: the JSON Schema of a run's documents, and the page on reasons.
generate: setup
	python -m loadlab.run.schema files/schema/lab-3.schema.json
	python -m loadlab.kinds.troubleshooting docs/troubleshooting.md

# Makes the README's pictures: of the report of run_id= (default: the latest run) and of the terminal at the end of
# terminal_run_id= (default: the same run). See CONTRIBUTING.md.
run_id := latest
terminal_run_id := $(run_id)

screenshots: tools
	@python -m tests.screenshots '$(run_id)' '$(terminal_run_id)'

# Updates every lock file from its requirements.in.
lock: setup
	for each in . apps/* files/servers/* files/clients files/profiler; do \
	  [ ! -f $$each/requirements.in ] || uv pip compile --quiet --universal --python-version 3.11 \
	    --generate-hashes --no-header --upgrade --constraint apps/constraints.txt \
	    $$each/requirements.in --output-file $$each/requirements.txt >/dev/null; \
	done
	cd apps/golang && go mod tidy
	cd apps/nodejs && npm update --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

# Tests the lab end to end, including that injected faults are reported correctly: what nothing runs beside, and the rest.
# Needs root.
core: core-beside core-alone

core-beside: tools
	pytest tests/lab -m "core and not alone"

core-alone: tools
	pytest tests/lab -m "core and alone"
