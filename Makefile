# Springtide. `make help` lists what there is to do.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
BIN       := bin
# Two packages at once are what two cores carry. No -trimpath: it would compile everything a second time, next to what the tests compile.
GOFLAGS_BUILD := -p 2
# Tests are linked without what debuggers read: a third less work for each of 120 binaries, of which nothing is kept from run to run.
export TEST_FLAGS := -ldflags=-w
# One version for binaries, images and chart; `springtide version` names the commit as well.
VERSION   ?= $(shell cat VERSION)
LDFLAGS   := -s -w -X main.version=$(VERSION)
# Kubernetes' own version, in a file of its own since the tests build the lab's binary too.
LAB_LDFLAGS := $(shell cat hack/lab-ldflags)

# What imports k8s.io/kubernetes is never tested under the race detector; the lab runs of e2e are a target of their own.
HEAVY := /(cmd/springtide-lab|hpa/upstreamtest|e2e)(/|$$)

##@ Try it
.PHONY: demo
demo: build ## Run the main job on the embedded lab (HEADLESS=1, REPORT=FILE, ARGS="--days 2 --speed 288")
	@$(BIN)/springtide-lab demo --springtide $(BIN)/springtide $(if $(HEADLESS),--headless) $(if $(REPORT),--report $(REPORT)) $(ARGS)

.PHONY: demo-picture
demo-picture: build ## Draw docs/demo.svg: the live view after three hours of the demo
	@$(BIN)/springtide-lab demo --springtide $(BIN)/springtide --headless --speed 1000000 --days 0.125 --picture docs/demo.svg $(ARGS)

.PHONY: demo-scrapes
demo-scrapes: build ## SLO minutes of a day of the demo at scrape intervals of 15, 30 and 60 s, a fifth of the scrapes lost, and how often each service is Fresh (SCRAPES=60s DAYS=0.25)
	@for i in $(SCRAPES); do echo "== scrapes every $$i, a fifth lost"; \
	  $(BIN)/springtide-lab demo --springtide $(BIN)/springtide --headless --speed 1000000 --days $(DAYS) --scrape-interval $$i --scrape-loss 0.2 $(ARGS) | grep -iE 'slo|fresh' || exit 1; done
SCRAPES ?= 15s 30s 60s
DAYS ?= 1

##@ Build
.PHONY: build
build: $(BIN)/springtide $(BIN)/springtide-agent $(BIN)/springtide-scheduler $(BIN)/springtide-lab $(BIN)/kwok ## Build the controller and CLI, the node agent, the scheduler, the lab and KWOK into bin/

.PHONY: modules
modules:
	@hack/progress.sh "Go modules (2.2 GB when new)" $(GO) mod download

$(BIN)/springtide: FORCE | modules
	@hack/progress.sh "springtide" $(GO) build $(GOFLAGS_BUILD) -ldflags '$(LDFLAGS)' -o $@ ./cmd/springtide

# Static, so that the same file runs in an image without a libc and on a machine of any distribution.
$(BIN)/springtide-agent: FORCE | modules
	@CGO_ENABLED=0 hack/progress.sh "springtide-agent" $(GO) build $(GOFLAGS_BUILD) -ldflags '$(LDFLAGS)' -o $@ ./cmd/springtide-agent

$(BIN)/springtide-scheduler: FORCE | modules
	@CGO_ENABLED=0 hack/progress.sh "springtide-scheduler: upstream's scheduler plugins come with it" $(GO) build $(GOFLAGS_BUILD) -ldflags '$(LDFLAGS)' -o $@ ./cmd/springtide-scheduler

$(BIN)/springtide-lab: FORCE | modules
	@hack/progress.sh "springtide-lab: etcd, Kubernetes and Prometheus in one binary (minutes when new, seconds from the cache)" \
		$(GO) build $(GOFLAGS_BUILD) -ldflags '$(LAB_LDFLAGS)' -o $@ ./cmd/springtide-lab

$(BIN)/kwok: FORCE | modules
	@hack/progress.sh "kwok" $(GO) build $(GOFLAGS_BUILD) -ldflags '-s -w' -o $@ sigs.k8s.io/kwok/cmd/kwok

.PHONY: images
images: ## Container images as OCI archives for amd64 and arm64, without a container engine, into bin/images
	@echo "  images: minutes when new, since everything is compiled once more, static, for two architectures"
	@$(GO) run ./tools/images --out $(BIN)/images

.PHONY: images-test
images-test: images ## Build the images a second time, open both: user, entry point, labels, no shell, the same bytes
	@$(GO) run ./tools/images --out $(BIN)/images-again
	@SPRINGTIDE_IMAGES=$(CURDIR)/$(BIN)/images SPRINGTIDE_IMAGES_AGAIN=$(CURDIR)/$(BIN)/images-again $(GO) test -count=1 -v -run TestRealArchives ./tools/images
	@rm -rf $(BIN)/images-again

$(BIN)/helm: tools/helm.mod | modules
	@hack/progress.sh "helm (two minutes when new)" $(GO) build $(GOFLAGS_BUILD) -modfile=tools/helm.mod -ldflags '-s -w' -o $@ helm.sh/helm/v4/cmd/helm

.PHONY: chart
chart: $(BIN)/helm ## The Helm charts: lint, and the same objects as kustomize's
	@$(BIN)/helm lint --quiet deploy/chart/springtide deploy/chart/springtide-crds
	@$(GO) test -count=1 -run 'TestChart' ./deploy

.PHONY: FORCE
FORCE:

##@ Test
.PHONY: deps
deps: ## Install the Debian packages that the tests need
	@hack/debian-deps.sh

.PHONY: test
test: deps build ## What must hold for every change: real API server, unit, scripts, properties, both stores, race detector where there are goroutines, one lab run, one loan on a real node where QEMU is installed
	@$(MAKE) --no-print-directory -j3 --old-file=build unit plane e2e-short race # build is done: -o keeps each lane from asking again; plane waits more than it works
	@$(MAKE) --no-print-directory --old-file=build e2e-node-short # alone: an emulated machine next to the others is starved

.PHONY: full
full: test seeds differential race-all e2e e2e-node e2e-operator images-test release-check ## Everything: make test, all seeds at the controller's own pace, the race detector on every package, all lab runs, the stories on a real node, Helm, images

.PHONY: seeds
seeds: ## 200 seeds of faults with a cycle every 15 seconds, 1,000 where the bundled scheduler's decisions place the pods (SEEDS=1..200), and 20 of each scenario of faults (EACH=1..100)
	@ALL_SEEDS=1 $(GO) test -timeout 60m -run TestSeedsBreakNothingAtTheControllersPace ./sim
	@SEEDS=$${SEEDS:-1..1000} $(GO) test -timeout 60m -run TestSeedsBreakNothingByTheBundledScheduler ./sim
	@SEEDS=$${EACH:-1..20} $(GO) test -timeout 60m -run TestSeedsOfAllScenariosBreakNothing ./sim

.PHONY: differential
differential: ## The bundled scheduler's filters against upstream's on thousands of random clusters, and adopted autoscalers against theirs (CHECKS=5000)
	@$(GO) test -timeout 30m -run 'AsUpstream|AnswersAfterChanges' ./scheduler/host ./scheduler/host/upstream ./internal/cli/adopt/foreign -rapid.checks=$${CHECKS:-5000}

.PHONY: quick
quick: ## Lint and -short tests of what changed since main and of its direct importers, in 90 seconds; says what it skipped (BASE=REF)
	@GO=$(GO) HEAVY='$(HEAVY)' hack/quick.sh

# Tests make much that is soon gone: with a heap of four times what lives, the fault seeds take an eighth less processor time.
unit race: export GOGC ?= 300
.PHONY: unit
unit: build $(BIN)/helm ## Every package's tests but the lab runs: all searches of the model check, each guard taken away, 200 seeds of faults
	@$(GO) test $(TEST_FLAGS) $(GOFLAGS_BUILD) -timeout 20m $$($(GO) list ./... | grep -vE '/e2e(/|$$)')

.PHONY: race
race: ## The -short tests of the packages with goroutines, under the race detector (hack/race-packages.sh lists them)
	@pkgs=$$(GO=$(GO) hack/race-packages.sh '$(HEAVY)') && $(GO) test $(TEST_FLAGS) -race -short -vet=off -p 2 -timeout 20m $$pkgs # vetted by unit

.PHONY: race-all
race-all: ## Tests of every package that does not import k8s.io/kubernetes, under the race detector
	@pkgs=$$($(GO) list ./... | grep -vE '$(HEAVY)') && $(GO) test $(TEST_FLAGS) -race -p 2 -timeout 60m $$pkgs

.PHONY: plane
plane: build ## Tests on a real API server with the operators' own CRDs: starts the lab's control plane, and ends it
	@BIN=$(BIN) GO=$(GO) hack/plane.sh

.PHONY: e2e-train
e2e-train: deps-train build ## Real training on a machine that is lent, recalled and lent again (four minutes)
	@$(GO) test -p 1 -v -count=1 -timeout 20m -run 'TestTraining' ./e2e

.PHONY: e2e-short
e2e-short: build ## One lab run of two minutes: an ebb and the flood after it
	@$(GO) test $(TEST_FLAGS) -p 1 -v -count=1 -timeout 20m -run 'TestTide$$' ./e2e

.PHONY: deps-train
deps-train: ## Install PyTorch, which e2e trains with
	@hack/debian-deps.sh train

.PHONY: e2e
e2e: deps-train build ## All lab runs: the tide, kills, two controllers, outages, a quiet night, the tutorial, real training
	@$(GO) test -p 1 -v -count=1 -timeout 60m ./e2e

.PHONY: e2e-node-short
e2e-node-short: build ## One loan on a real node (three minutes once its disk is built, a quarter of an hour before); skipped with a reason where QEMU is not installed (make e2e-node installs it)
	@$(GO) test $(TEST_FLAGS) -p 1 -v -count=1 -timeout 30m -run 'TestShort$$' ./e2e/node

.PHONY: e2e-node
e2e-node: build ## Stories on a real node: kubelet, containerd and runc in a virtual machine; skipped with a reason where QEMU cannot be installed (ARGS="-run TestAgent -kills 5")
	@hack/debian-deps.sh node || echo "e2e-node: its packages could not be installed: the stories say what is missing, and are skipped"
	@$(GO) test -p 1 -v -count=1 -timeout 150m ./e2e/node $(ARGS)

.PHONY: e2e-browser
e2e-browser: ## The reports of simulate and backtest in headless Chromium; screenshots stay in bin/screenshots
	@hack/debian-deps.sh browser || echo "e2e-browser: Chromium could not be installed: the test is skipped"
	@mkdir -p $(BIN)/screenshots && $(GO) test -count=1 -v -run TestReportsInABrowser -artifacts -outputdir $(CURDIR)/$(BIN)/screenshots ./internal/cli/simulate ./internal/cli/backtest

.PHONY: e2e-operator
e2e-operator: build chart e2e-browser ## What an operator does: Helm installs, upgrades and uninstalls on a real API server and on a real node; leaving gives a cluster back as it was; the tutorial and the how-to pages are played on the lab
	@hack/debian-deps.sh node || echo "e2e-operator: the packages of the virtual machine could not be installed: its stories say what is missing, and are skipped"
	@INSTALL=1 $(GO) test -v -count=1 -timeout 20m -run 'TestHelm' ./deploy
	@$(GO) test -p 1 -v -count=1 -timeout 30m -run 'TestLeavesTheClusterAsItWas|TestTutorial' ./e2e
	@INSTALL=1 $(GO) test -p 1 -v -count=1 -timeout 60m -run 'TestHelm' ./e2e/node

.PHONY: fuzz
fuzz: ## Every fuzz test for FUZZTIME (default 20s) each; an input that is new is not made smaller for more than one try
	@for p in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$p/*_test.go | sed 's/func //'); do \
			$(GO) test -run='^$$' -fuzz="^$$f$$" -fuzztime=$${FUZZTIME:-20s} -fuzzminimizetime=1x $$p; done; done

.PHONY: mutants
mutants: ## Change one operator at a time where it is decided who loses what, and list what no test notices: up to two hours (PKGS="reclaim quota" WORKERS=1); docs/benchmarks/mutants.md
	@BIN=$(BIN) GO=$(GO) hack/mutants.sh

.PHONY: bench
bench: build ## Benchmarks; results are kept under docs/benchmarks
	@hack/bench.sh

.PHONY: bench-shift
bench-shift: build ## A week of 1,000 machines under every policy, two fleets that nothing was tuned on, 10,000 seeds of faults (SEEDS=1..200), plans and recalls, the model check (PARTS="week plans"); docs/benchmarks/shift*.md
	@BIN=$(BIN) hack/bench-shift.sh

.PHONY: bench-forecast
bench-forecast: ## Forecasts next to the peers' (TRACES=DIR, M4=DIR, M4_TEST=1); the tables are kept under docs/benchmarks
	@hack/bench-forecast.sh

.PHONY: bench-scheduler-plane
bench-scheduler-plane: $(BIN)/springtide-lab $(BIN)/kwok ## Pods bound a second on the lab's control plane, next to kube-scheduler and bare binds, and what the placements are worth (NODES="1000 5000" ARGS="-rounds 1 -workloads ..."); docs/benchmarks/scheduler-plane.md
	@$(GO) build -o $(BIN)/bench-scheduling ./bench/scheduling
	@status=0; for n in $(NODES); do $(BIN)/bench-scheduling -lab $(BIN)/springtide-lab -kwok $(BIN)/kwok -nodes $$n -results $(BIN)/bench-scheduler-plane-$$n-$$(git rev-parse --short HEAD).json $(ARGS) || status=1; done; exit $$status
NODES ?= 1000 5000

.PHONY: bench-scheduler
bench-scheduler: ## The scheduler's decision on 1,000 to 100,000 machines, and a million pods on a million (BENCH=newClass SIZES=10000 MILLION=0); docs/benchmarks/scheduler.md
	@hack/bench-scheduler.sh

.PHONY: bench-demand
bench-demand: ## From pods that wait for room to the notice of a recall, by the wall's clock (three minutes); docs/benchmarks/scheduler-demand.md
	@SPRINGTIDE_WALL=1 $(GO) test -count=1 -v -timeout 25m -run 'TestDemandByTheWall$$' ./e2e

.PHONY: bench-festive
bench-festive: ## Forecasts of holidays, with a calendar and without; the table is kept under docs/benchmarks
	@$(GO) run ./bench/festive >docs/benchmarks/festive.md.new && mv docs/benchmarks/festive.md.new docs/benchmarks/festive.md

.PHONY: bench-slo
bench-slo: ## What service levels cost and whether they are kept: a real server by the wall's clock, and the simulator (PARTS="wall cost" SEEDS=2); docs/benchmarks/slo.md
	@BIN=$(BIN) GO=$(GO) hack/bench-slo.sh

##@ Release
.PHONY: release-check
release-check: images ## Version, changelog, charts, kustomizations and images agree
	@$(GO) run ./tools/release check

##@ Keep it clean
.PHONY: lint
lint: ## gofmt, go vet, the rules of style for what operators read, and golangci-lint
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt these files:"; echo "$$out"; exit 1; fi
	@$(GO) vet ./...
	@$(GO) run ./tools/style
	@$(MAKE) --no-print-directory golangci

.PHONY: golangci
golangci: ## golangci-lint: everything on all files; complexity and line length on what is newer than the commit in tools/lint.since
	@hack/progress.sh "golangci-lint (built at its first run, minutes)" $(GO) tool -modfile=tools/lint.mod golangci-lint run
	@GO=$(GO) hack/lint-new.sh

.PHONY: house
house: ## Measure methods, arrows between files, conditions, comments and owners, before the planner's rebuild and now; docs/benchmarks/house.md
	@$(GO) run ./tools/house -before $(HOUSE_BEFORE) >docs/benchmarks/house.md.new && mv docs/benchmarks/house.md.new docs/benchmarks/house.md
HOUSE_BEFORE := c578c1f6

.PHONY: generate
generate: ## Generated files: deep copies, CRDs, dashboards, the reference of CLI, metrics, events and conditions
	@$(GO) generate ./...

.PHONY: verify
verify: ## Fail when a generated file is not current, or go.mod is not tidy
	@before=$$(git status --porcelain); $(MAKE) --no-print-directory generate; \
		if [ "$$before" != "$$(git status --porcelain)" ]; then echo "generated files were not current: run make generate and commit"; git status --short; git --no-pager diff --stat; exit 1; fi
	@$(GO) mod tidy -diff >/dev/null || { echo "go.mod is not tidy: run go mod tidy and commit"; exit 1; }

.PHONY: vuln
vuln: ## govulncheck (needs its database, which is fetched)
	@$(GO) tool -modfile=tools/vuln.mod govulncheck ./...

.PHONY: clean
clean: ## Remove what was built
	@rm -rf $(BIN) .demo

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z_0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
