# Drover. `make` lists the targets. Python >= 3.11 with venv, make and git are all that you need.

BIN := .venv/bin
STAMP := .venv/.installed
LINT := $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports && $(BIN)/mypy

# pip trusts the authorities of this system, such as that of a company's proxy, and uv only where it is told to.
export UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem),1,0)
# Byte code is kept whatever the environment says: the tests start hundreds of Python processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
HELM := v3.22.0

.PHONY: help install test stories stories-again lint types unit pythons browser helm manifests docs sbom format demo bench picture soak soak-faults soak-hostile soak-workers mutants clean

help: ## List these targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install: $(STAMP) ## Make .venv with the locked dependencies (PYTHON=... chooses the interpreter)

$(STAMP): uv.lock pyproject.toml .ci/install .ci/build.txt
	@PYTHON='$(PYTHON)' .ci/install
	@touch $@

test: install ## Check a change: lint, types, layers and all tests but the stories, in eight minutes on two cores
	@$(BIN)/python -m tests.ring 'not story' '$(LINT)'

stories: install ## Run the stories: real clusters, killed, secured and upgraded; hostile input; most seeds; in half an hour
	@$(BIN)/python -m tests.ring story

stories-again: install ## Run the stories that failed once more, one after the other
	@$(BIN)/pytest -m story --last-failed --last-failed-no-failures none

lint: install ## Check formatting, style, types and import layers
	$(LINT)

types: install ## Check types
	$(BIN)/mypy

unit: install ## Run the tests that need no cluster (ARGS=... is passed on to pytest)
	$(BIN)/pytest -m 'not cluster and not story' $(ARGS)

pythons: install ## Run those tests on every Python from 3.11 to 3.14 that can be found
	.ci/pythons $(ARGS)

browser: install ## Get the browser that the tests of the page drive, pinned by its hash
	$(BIN)/python -m tests.web.browser

helm: ## Build helm, with Go, which `make manifests` and a test of the chart use
	GOBIN='$(CURDIR)/.tools' go install helm.sh/helm/v3/cmd/helm@$(HELM)

manifests: install ## Make deploy/kubernetes/drover.yaml of the Helm chart
	$(BIN)/python -m tests.deploy.manifests

docs: install ## Build the documentation site in site/, with a search; a warning, such as of a link to nowhere, is an error
	$(BIN)/uv run --quiet --isolated --frozen --only-group docs \
		sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs/site . $(or $(SITE),site)

sbom: install ## Write dist/sbom.cdx.json: every package and every jar, with version and hash (CycloneDX)
	$(BIN)/python -m tests.install.sbom

format: install ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: install ## Watch replicas move on a real four-broker Kafka, roll back, survive a killed worker
	$(BIN)/drover demo

bench: install ## Measure, and write docs/performance.md
	$(BIN)/python -m bench --write

soak: install ## Simulate SEEDS=2000 new seeds of STEPS=2000, then go on for HOURS=0, and as long with hostile input
	$(BIN)/python -m tests.simulation soak --seeds $(or $(SEEDS),2000) --steps $(or $(STEPS),2000) \
		--hours $(or $(HOURS),0) $(if $(FIRST_SEED),--first-seed $(FIRST_SEED))
	$(BIN)/python -m tests.hostile --hours $(or $(HOURS),0) --first-seed $$(date +%s)

picture: install ## Play a story on a local cluster and draw it as the picture of the README
	$(BIN)/python -m bench.picture

mutants: install ## Put deliberate faults into copies of the source and check that each is noticed; writes docs/mutants.md
	$(BIN)/python -m tests.simulation.mutate

soak-faults: install ## Break a local cluster and its workers at random for HOURS=... (default 1), see docs/faults.md
	$(BIN)/python -m tests.faults --long --hours $(or $(HOURS),1) --seed $(or $(SEED),1)

soak-hostile: install ## Send hostile and large input to whole shards for HOURS=... (default 1), from FIRST_SEED=1000 on
	$(BIN)/python -m tests.hostile --hours $(or $(HOURS),1) --first-seed $(or $(FIRST_SEED),1000)

soak-workers: install ## Let whole workers play SEEDS=200 random stories in virtual time, from FIRST_SEED=1000 on
	$(BIN)/python -m tests.runtime.random_story $(or $(FIRST_SEED),1000) $(or $(SEEDS),200)

clean: ## Remove .venv and every cache (downloaded jars stay in the user's cache)
	rm -rf .venv .pythons .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
