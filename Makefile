# Everything runs in environments that `make env` makes from a bare machine: Python 3.11 or newer, and npm.
# Paths here are relative, so the checkout may lie anywhere, also under a name with spaces.

.PHONY: help env demo docs test soak bench

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 8

env: ## make .venv, .venv-dbt and node_modules, or see that they are current
	@sh .ci/env

test: env ## run what CI runs; SUITES="lint unit" chooses, SUITES=--list lists them; COVERAGE=1 measures branches
	@.venv/bin/python -m tests.run_suites $(if $(COVERAGE),--coverage) $(SUITES)

demo: env ## run the whole path on real engines and a real Airflow; FORMAT=json gives the run report
	@DPONE_DBT_PYTHON="$$PWD/.venv-dbt/bin/python" .venv/bin/dpone demo --format $(or $(FORMAT),text)

docs: env ## check the documentation: links, commands, examples, and that reference pages are as the code is
	@.venv/bin/python -m tests.docs.check

soak: env ## play N seeded schedules from SEED on (500,000 from 0), then KILLS kills and stops per transfer on real engines (0), then RACES raced gates and twice as many deliveries (0), then with CRASHES=all every crash point of the lab, then MALFORMED documents of each schema (0)
	@.venv/bin/python -m tests.simulation.soak --schedules $(or $(N),500000) --seed $(or $(SEED),0) --workers 2
	@test $(or $(KILLS),0) = 0 || DPONE_TEST_KILL_CYCLES=$(KILLS) DPONE_TEST_KILL_SEED=$(or $(SEED),0) \
		.venv/bin/python -m pytest tests/acceptance/test_kills.py -q
	@test $(or $(RACES),0) = 0 || DPONE_TEST_RACED_GATES=$(RACES) DPONE_TEST_DELIVERIES=$$((2 * $(or $(RACES),0))) \
		.venv/bin/python -m pytest tests/races -q --timeout=0
	@test $(or $(CRASHES),0) = 0 || DPONE_TEST_CRASHES=$(CRASHES) .venv/bin/python -m pytest tests/crash -m lab -n 3 --dist worksteal -q --timeout=0
	@test $(or $(MALFORMED),0) = 0 || DPONE_TEST_MALFORMED=$(MALFORMED) .venv/bin/python -m pytest tests/documents -m exhaustive -q

bench: env ## measure, and print ratios; ONLY="attempt_overhead" chooses, ONLY=--list lists them
	@.venv/bin/python -m benchmarks $(ONLY)
