# Everything from nothing: Python 3.11+ and make are all that must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
# with .pyc files: without them every process compiles what it imports, half of a cold command
INSTALL := $(UV) pip install --quiet --only-binary :all: --require-hashes --compile-bytecode
COMPILE := $(BIN)/python -m compileall -q connector jobs models migrations __init__.py
# and the tests write theirs: to rewrite the asserts of all files costs each process 18 CPU seconds
unexport PYTHONDONTWRITEBYTECODE
UV_VERSION := 0.13.7
SEQUENCES ?= 10
# processes of `make test`, each with databases of its own; one where the tests were given a Neo4j
WORKERS ?= $(if $(RINGFENCE_TEST_NEO4J_URI),0,2)
# what needs no server and no browser and takes seconds; the markers stand in pyproject.toml
USUAL_LANE := not statistics and not long
FAST_LANE := not neo4j and not postgres and not browser and not slow

.DEFAULT_GOAL := help
.PHONY: help demo story release test test-coverage test-fast test-slow test-statistics test-count test-integrations test-wheel lint test-faults faults-sqlite faults-postgresql bench bench-audit bench-conformal bench-gds bench-real bench-scale reproduce \
  screenshots docs notebooks lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/.demo ## run everything once on a sample graph, ending with the dashboard
	$(BIN)/ringfence demo

story: $(VENV)/.demo ## the life of a model on the sample graph: drift, alarm, candidate, promotion, rollback
	$(BIN)/ringfence demo --story

test: lint ## the suite but for what takes minutes (test-slow), against real Neo4j, SQLite and PostgreSQL
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "$(USUAL_LANE)" -n $(WORKERS) --dist worksteal --durations=25 $(ARGS)

test-coverage: $(VENV)/.dev ## the same tests with the branches of the code that they reach; a third slower
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -m "$(USUAL_LANE)" -n $(WORKERS) --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-fast: $(VENV)/.dev ## under two minutes: no server, no browser, nothing slow
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "$(FAST_LANE)" -n 2 --dist worksteal $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-slow: $(VENV)/.dev ## the slow tests, with those that take minutes and those of test-statistics
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow -n $(WORKERS) --dist worksteal $(ARGS)

test-statistics: $(VENV)/.dev ## the simulated sequences that make test leaves out
	$(BIN)/python -m pytest -m statistics $(ARGS)

test-wheel: $(VENV)/.dev ## wheel and sdist on every Python from 3.11 to 3.13 there is: demo and dashboard, a scorer without torch; sizes and cold starts
	$(BIN)/python -m tests.packaging.try_wheel --uv $(UV)

release: $(VENV)/.dev ## wheel, sdist, bill of materials (CycloneDX) and their digests into dist, from the commit alone: the same bytes for everybody
	$(BIN)/python -m tests.packaging.release dist

test-integrations: $(VENV)/.dev ## the examples for Airflow, Dagster and Prefect in the real packages, each in an environment of its own
	$(BIN)/python -m tests.integrations.run --uv $(UV) $(ARGS)

test-count: $(VENV)/.dev ## how many tests each marker and each folder has
	$(BIN)/python -m tests.count

bench: $(VENV)/.bench ## a cold command, training, incremental pass, deletions, updates, reading, writing, a whole run, scale, verification, a long life; SIZE=--quick for a look
	for one in cold training incremental deletions updates reach reading writing deciding fences streams run scale sealing why verification long_life; do $(BIN)/python -m benchmarks.$$one $(SIZE) || exit 1; done
	$(BIN)/python -m benchmarks.report

test-faults: $(VENV)/.dev ## two thousand kills, freezes and cuts on both forms of a project (SEQUENCES=120 FORM=one); 20 late writers; 5,000 hostile names
	rm -rf build/faults
	-$(MAKE) -j2 faults-sqlite faults-postgresql
	$(BIN)/python -m tests.faults.report build/faults/sqlite.json build/faults/postgresql.json
	RINGFENCE_TEST_WRITERS_NODES=10000 RINGFENCE_TEST_HOSTILE_NAMES=5000 RINGFENCE_TEST_READS_BESIDE_WRITERS=100 \
	  $(BIN)/pytest -q -s tests/connector/neo4j/read/test_watermark.py tests/connector/neo4j/test_quoting.py \
	  tests/connector/neo4j/read/test_accounting.py::test_twenty_writers_at_work_cause_no_comparison_and_nothing_is_missed

bench-gds: $(VENV)/.dev ## a run beside a full cycle of GDS on the same server; fetches GDS first
	$(BIN)/python -m benchmarks.gds $(SIZE)

# SEQUENCES as given; 120 where it is only the default of the other targets
FAULT_SEQUENCES := $(if $(filter file,$(origin SEQUENCES)),120,$(SEQUENCES))
RUN_FAULTS := $(BIN)/python -m tests.faults.run --sequences $(FAULT_SEQUENCES) $(if $(FORM),--forms $(FORM))

faults-sqlite: ## the faults on SQLite, and the negative controls
	$(RUN_FAULTS) --stores sqlite --json build/faults/sqlite.json

faults-postgresql: ## the faults on PostgreSQL
	$(RUN_FAULTS) --stores postgresql --controls --json build/faults/postgresql.json

bench-conformal: $(VENV)/.bench ## sets and p-values beside TorchCP, MAPIE and crepes
	$(BIN)/python -m benchmarks.conformal

screenshots: $(VENV)/.dev ## the documentation's pictures of the dashboard, from the demo's data
	rm -rf .ringfence/screenshots
	$(BIN)/ringfence demo --no-serve --folder .ringfence/screenshots
	$(BIN)/python docs/screenshots/take.py .ringfence/screenshots/ringfence.toml docs/screenshots

bench-real: $(VENV)/.bench ## two real graphs through init, doctor, train, score, audit; each scorer on both in time order (FLIGHTS=folder FAERS=folder)
	$(BIN)/python -m benchmarks.real.run $(if $(FLIGHTS),--flights $(FLIGHTS)) $(if $(FAERS),--faers $(FAERS)) $(ARGS)
	$(BIN)/python -m benchmarks.scorers $(if $(FLIGHTS),--flights $(FLIGHTS)) $(if $(FAERS),--faers $(FAERS))

bench-scale: $(VENV)/.bench ## the pass on one machine and over partitions on Ray: memory, bytes, time per stage; a cost model (SIZE=--quick)
	$(BIN)/python -m benchmarks.partitions.run $(SIZE)

bench-audit: $(VENV)/.dev ## how fast pages answer on a store of 1,000,000 predictions; an audit of 10,000 runs
	$(BIN)/python -m benchmarks.audit_pages
	$(BIN)/python -m benchmarks.audit_runs
	$(BIN)/python -m benchmarks.store_rows

docs: $(VENV)/.dev ## the documentation as a site in build/site, with the pages that are made from the code
	$(BIN)/python -m ringfence.jobs.config.reference > docs/configuration.md
	$(BIN)/python docs/site/figures.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees -c docs/site . build/site
	@echo "build/site/index.html"

notebooks: $(VENV)/.dev ## execute the notebooks of examples/ anew, each with a Neo4j of its own
	$(BIN)/python examples/make_notebooks.py

reproduce: $(VENV)/.dev ## the paper's table and figures into docs/reproduction (DATA=folder, SEQUENCES=100)
	OMP_NUM_THREADS=1 $(BIN)/ringfence reproduce --sequences $(SEQUENCES) $(if $(DATA),--data $(DATA)) $(ARGS)

lock: $(UV) ## resolve into the lock files (hashes, no addresses): all, the demo (trains), a scorer; UPGRADE=--upgrade for the newest
	$(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --all-extras $(UPGRADE) \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements-dev.lock
	$(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --extra demo --extra postgres \
	  -c requirements-dev.lock \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements.lock
	$(UV) pip compile pyproject.toml --quiet --universal --python-version 3.11 --extra serve --extra postgres \
	  -c requirements-dev.lock \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements-scorer.lock
	for one in airflow dagster prefect; do \
	  $(UV) pip compile examples/$$one/requirements.in --quiet --universal --python-version 3.11 $(UPGRADE) \
	    --generate-hashes --no-emit-index-url --no-annotate --no-header -o examples/$$one/requirements.lock || exit 1; \
	done

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist *.egg-info .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(UV):
	@echo "creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ringfence needs Python 3.11 or newer; try: make PYTHON=python3.12 demo")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/.demo: $(UV) requirements.lock pyproject.toml
	@echo "installing ringfence and the embedded Neo4j's parts (torch is large: minutes on a slow line)"
	@test -e $(VENV)/.dev || $(INSTALL) -r requirements.lock
	@$(UV) pip install --quiet --no-deps -e .
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(UV) requirements-dev.lock pyproject.toml
	@echo "installing ringfence with everything its tests need"
	@$(INSTALL) -r requirements-dev.lock
	@$(UV) pip install --quiet --no-deps -e .
	@$(COMPILE)
	@touch $@

# TorchCP's own requirements need a compiler; the part that is compared needs none of them.
$(VENV)/.bench: $(VENV)/.dev requirements-bench.lock
	@$(INSTALL) --no-deps --target $(VENV)/bench -r requirements-bench.lock
	@touch $@
