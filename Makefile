# The commands that developers run; `make help` lists them.

VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
FUZZ_STAMP := $(VENV)/.installed-fuzz
SITE_STAMP := $(VENV)/.installed-site
MINUTES ?= 10
HOURS ?= 0.5
SEED ?= 1
UV ?= uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-header --no-annotate pyproject.toml

# The tests start hundreds of processes; without bytecode files, each would compile the source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-batch demo-elastic demo-outage test test-long fuzz torture check audit format bench site golden \
	lock clean

help: ## list the commands of this Makefile
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

$(RUN_STAMP): requirements.lock pyproject.toml
	@.ci/environment $(VENV) requirements.lock
	@touch $@

# The development lock includes the runtime lock, so this environment satisfies both.
$(DEV_STAMP): requirements-dev.lock pyproject.toml
	@.ci/environment $(VENV) requirements-dev.lock
	@touch $(RUN_STAMP) $@

# The fuzzing lock includes the others; its tools are installed only for `make fuzz` and
# `make test-long`.
$(FUZZ_STAMP): requirements-fuzz.lock pyproject.toml
	@.ci/environment $(VENV) requirements-fuzz.lock
	@touch $(RUN_STAMP) $(DEV_STAMP) $(SITE_STAMP) $@

$(SITE_STAMP): requirements-site.lock pyproject.toml
	@.ci/environment $(VENV) requirements-site.lock
	@touch $(RUN_STAMP) $(DEV_STAMP) $@

demo: $(RUN_STAMP) ## ask "what if?" of a production cluster's trace (examples/openb)
	@examples/openb/demo $(BIN)/fairlead

demo-outage: $(RUN_STAMP) ## the same cluster, with a third of its nodes down for twenty minutes
	@examples/openb/demo-outage $(BIN)/fairlead

demo-batch: $(RUN_STAMP) ## share openb's GPUs between three queues of gangs, under three policies
	@examples/openb-batch/demo $(BIN)/fairlead $(BIN)/python

demo-elastic: $(RUN_STAMP) ## a day of traffic on fixed nodes, with Cluster Autoscaler and with Karpenter
	@examples/elastic/demo $(BIN)/fairlead $(BIN)/python

test: $(DEV_STAMP) ## run the test suite
	@.ci/programs
	@# Tests wait for processes a sixth of the time, so one more worker keeps the cores busy. make check
	@# runs tests/test_tidy.py in one process, which parses the source once. Here, each worker would parse it.
	@# Properties are tested with fewer examples here than in make test-long.
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} $(BIN)/pytest -q -n $$(($(WORKERS) + 1)) --dist worksteal --ignore tests/test_tidy.py

test-long: $(FUZZ_STAMP) ## run slow tests, and test properties with more examples
	@.ci/programs
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "long or hypothesis" || [ $$? -eq 5 ]

fuzz: $(FUZZ_STAMP) ## fuzz parsers and a served API, for MINUTES=10
	@$(BIN)/python -m tests.fuzz.run --minutes $(MINUTES)

torture: $(RUN_STAMP) ## run control planes under random faults, for HOURS=0.5 from SEED=1
	@$(BIN)/fairlead torture --seed $(SEED) --hours $(HOURS) --jobs $(WORKERS)

check: $(DEV_STAMP) ## check format, lint, types, layers and structure; run it before every commit
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pytest -q tests/test_tidy.py
	@$(BIN)/python tools/structure.py

audit: ## compare the requirements with known vulnerabilities (needs uv and a connection)
	@for lock in requirements*.lock; do echo $$lock; \
		$(UV) tool run pip-audit --disable-pip --require-hashes --requirement $$lock || exit 1; done

format: $(DEV_STAMP) ## format the source, and fix what ruff can fix
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: $(RUN_STAMP) ## run upstream's scheduler benchmarks and compare with its thresholds, and those of running clusters
	@$(BIN)/fairlead bench
	@$(BIN)/python benchmarks/cluster_run.py
	@$(BIN)/python benchmarks/cluster_start.py
	@$(BIN)/python benchmarks/live_whatif.py --nodes 1000 --pods 20000

site: $(SITE_STAMP) ## build the documentation in out/site, and the manual page
	@echo "building out/site/index.html ..."
	@$(BIN)/python -m sphinx -b html -W -q docs out/site
	@echo "building out/man/fairlead.1 ..."
	@$(BIN)/python -m sphinx -b man -q docs out/man

golden: $(RUN_STAMP) ## replay decisions recorded from the real programs
	@for kind in scheduling timelines volumes nodelifecycle kubebatch autoscaler karpenter; do \
		$(BIN)/fairlead conformance $$kind tests/golden/data/$$kind/*.jsonl.gz || exit 1; done

lock: ## compile the hash-locked requirements anew (needs uv on the path)
	@$(LOCK) --group build -o requirements.lock
	@$(LOCK) --group dev -c requirements.lock -o requirements-dev.lock
	@$(LOCK) --group site -c requirements-dev.lock -o requirements-site.lock
	@$(LOCK) --group fuzz -c requirements-site.lock -o requirements-fuzz.lock

clean: ## remove the environment, caches and outputs
	@rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
		.hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +
