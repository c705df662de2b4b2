SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The image that `make deploy` runs, the overlay that it applies, and a configuration file in place of the overlay's.
IMG ?=
OVERLAY ?= standard
CONFIG ?=
# Users of the playground beside alice, bob, carol, dave and mia: USERS="eve otto:pay-oncall".
USERS ?=
# server: `make deploy` and `make install` let the API server check everything and keep nothing but Namespace and CRDs.
DRY_RUN ?= none
# true: `make deploy` leaves the CRDs as they are, to return to an older version.
KEEP_CRDS ?= false
# true: `make undeploy` takes the CRDs too.
CRDS ?= false
# Where `make uninstall` saves our objects first.
SAVE ?= .dev/warren-objects-$(shell date -u +%Y%m%dT%H%M%SZ).yaml
# The kind cluster of `make kind`, and the image of its node: empty for the default of kind.
CLUSTER ?= warren
NODE ?=
# kubectl from the PATH, else the one that `make up` puts into bin.
KUBECTL ?= $(shell command -v kubectl || echo bin/kubectl)
# Arguments of the operator for `make run`.
ARGS ?=
# docker, podman or buildah: what `make docker-build` and `make docker-push` work with.
CONTAINER_TOOL ?= docker
# What `make image` builds for, and where to.
ARCH ?= $(shell go env GOARCH)
IMAGE_TAR ?= dist/image.tar
# Where the image of a release is pushed to.
REPOSITORY ?= ghcr.io/warren-tenancy/warren
# Where its chart is pushed to, below its own name.
CHARTS ?= ghcr.io/warren-tenancy/charts
# What a release is built for.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# The versions of Kubernetes for `make test-matrix`: minor versions are emulated, patch versions are built.
VERSIONS ?= 1.35 1.34
# What looking through the changes of `make vet-admin` has shown.
NOTE ?= not reviewed
# Suites run this many processes at once. Most of them have a control plane of their own, which costs more than waiting.
PROCS ?= 4

# Without git, or in a folder that is no clone, there is still a version.
VERSION ?= $(shell [ -e .git ] && git describe --tags --match "v*" --always --dirty 2>/dev/null || echo v0.0.0)
# What `make e2e-node` upgrades from: the last tag, or, before the first release, a commit that tenants may have run.
PREVIOUS ?= $(shell [ -e .git ] && git describe --tags --match "v*" --abbrev=0 HEAD^ 2>/dev/null || echo 1c1a3b1)
# A chart's version is a semantic one.
CHART_VERSION = $(shell [[ "$(VERSION)" =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] && echo "$(VERSION)" || echo v0.0.0-dev)
COMMIT ?= $(shell [ -e .git ] && git rev-parse --short HEAD 2>/dev/null || echo unknown)
LDFLAGS ?= -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# Programs, tests and linters are built in one way, so that what one of them has compiled serves the others.
CGO_ENABLED ?= 0
BUILD = go build -ldflags '$(LDFLAGS)'

# Not in hack/tools: it has advisories of its own to look after, and nothing here is built with it.
GOVULNCHECK = v1.9.0
# A mirror of the vulnerability database.
GOVULNDB ?=

# A module of its own, which ./... leaves out.
WATCHSET = github.com/warren-tenancy/warren/pkg/watchset/...
TOOL = go tool -modfile=$(CURDIR)/hack/tools/go.mod
LICENCES = go tool -modfile=$(CURDIR)/hack/licences/go.mod go-licenses
LINT = go tool -modfile=$(CURDIR)/hack/lint/go.mod golangci-lint
export CGO_ENABLED KUBECTL PROCS USERS

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make \033[36mTARGET\033[0m\n"} \
		/^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-18s\033[0m%s\n", $$1, $$2} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ The first ten minutes

.PHONY: demo
demo: announce build-demo controlplane ## Walk through tenant, sub-namespace, propagation, sudo and billing on a control plane of its own. ARGS=-warehouse=away: without a warehouse.
	@go run ./hack/demo $(ARGS)

# A first build is silent for minutes, so whoever waits is told.
.PHONY: announce
announce:
	@echo "Building what is not built yet. The first time, with Kubernetes itself, this takes 34 CPU-minutes: 10 minutes on a fast laptop, 40 on a busy one." >&2

.PHONY: demo-informers
demo-informers: controlplane ## Show informers that follow RBAC: the operator of examples/memcached, whose rights come and go.
	@go run ./hack/demoinformers

.PHONY: up
up: announce build-demo controlplane ## Start a playground in the background; writes .dev/kubeconfig and .dev/<user>.kubeconfig. OVERLAY is standard or open.
	@OVERLAY=$(OVERLAY) go run ./hack/playground up

.PHONY: kind
kind: ## Install Warren with tenant payments on a kind cluster of its own: needs Docker or podman, kind and kubectl. CLUSTER names it; NODE is the image of its node.
	@CLUSTER="$(CLUSTER)" NODE="$(NODE)" hack/kind.sh .dev/kind "$(CHART_VERSION)"

.PHONY: down
down: ## Stop the playground.
	@go run ./hack/playground down

##@ Development

.PHONY: controlplane
controlplane: ## Build etcd, API server, controller manager and kubectl into the cache, unless they are there.
	@go run ./hack/controlplane $(if $(filter controlplane,$(MAKECMDGOALS)),,>/dev/null)

.PHONY: manifests
manifests: generate ## Write the generated files: CRDs, DeepCopy methods, the objects that list the kinds of config/manager/config.yaml, the golden file of the operator's rights.
	@hack/generate-crds.sh config/crd/bases
	@mv config/crd/bases/tenancy.warren.dev_resourcedistributions.yaml config/crd/distribution/
	@mv config/crd/bases/tenancy.warren.dev_hierarchicalresourcequotas.yaml config/crd/budgets/
	@mv config/crd/bases/tenancy.warren.dev_sudorequests.yaml config/crd/requests/
	@$(TOOL) controller-gen crd paths=./examples/... output:crd:artifacts:config=examples/memcached/config
	@go run . manifests --config=config/manager/config.yaml --dir=config
	@go test ./config -run TestOperatorsRightsAreTheGoldenOnes -update >/dev/null

.PHONY: generate
generate: ## Write the DeepCopy methods of the API types.
	@$(TOOL) controller-gen object paths="./api/...;./examples/..."

.PHONY: docs
docs: ## Write the pages of docs/reference and docs/behaviour that follow from the code and the tests, and the pictures.
	@go run ./hack/reference
	@go run ./hack/behaviour
	@go run ./hack/pictures

.PHONY: fmt
fmt: ## Format the code.
	@$(LINT) fmt ./...

.PHONY: vet
vet: ## Run go vet.
	@go vet ./... $(WATCHSET)
	@cd test/ui && go vet ./...
	@cd test/gitops && go vet ./...

.PHONY: lint
lint: ## Run golangci-lint.
	@$(LINT) run --allow-serial-runners ./...
	@cd pkg/watchset && $(LINT) run --allow-serial-runners ./...

.PHONY: lint-api
lint-api: ## Check the types of our kinds against the API conventions of Kubernetes.
	@cd hack/lint && go build -o $(CURDIR)/bin/lint-api .
	@bin/lint-api run --allow-serial-runners --config hack/lint/api.yml ./api/v1alpha1/...

# What may be linked into an Apache-2.0 program that is shipped as a binary. Arrow's licence, Apache-2.0, stands in one file with those of code
# in C++ that its Go modules don't hold; SQLite is in the public domain, and its port to Go has a licence of its own.
.PHONY: licences
licences: ## Check the licences of all modules that are linked in.
	@$(LICENCES) check ./... --logtostderr=false --stderrthreshold=ERROR --ignore=github.com/warren-tenancy/warren --ignore=github.com/apache/arrow/go/v15 \
		--allowed_licenses=Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT,MPL-2.0

.PHONY: links
links: ## Check that links in the docs lead somewhere, and that the pages read easily.
	@go run ./hack/links && go test -count=1 ./hack/links

.PHONY: kustomizations
kustomizations: ## Build every overlay, the objects for Prometheus, and the samples.
	@for d in config/overlays/* config/prometheus config/samples config/samples/billing config/samples/guardrails; do \
		$(TOOL) kustomize build "$$d" >/dev/null || exit 1; done

.PHONY: verify
verify: verify-generated verify-modules verify-rights kustomizations links licences vet lint lint-api ## Check everything that needs no control plane.

.PHONY: verify-generated
verify-generated: ## Check that generated files are up to date, without touching them.
	@hack/verify-generated.sh

.PHONY: verify-rights
verify-rights: ## Check that the operator's rights are those of the golden file, few, and none of the forbidden ones.
	@go test ./config

.PHONY: verify-modules
verify-modules: ## Check that go.mod and go.sum are complete and tidy.
	@for d in . pkg/watchset hack/tools hack/lint hack/helm hack/licences test/gitops test/googlesql test/monitoring test/ui; do (cd "$$d" && { go mod tidy -diff || go mod tidy -diff; }) || exit 1; done

##@ Tests

.PHONY: test
test: build controlplane ## Run unit, integration and attack tests; reports in .reports.
	@hack/test.sh .reports

.PHONY: test-unit
test-unit: build controlplane ## Run the unit tests of `make test` alone.
	@ONLY=unit hack/test.sh .reports

.PHONY: test-suites
test-suites: build controlplane ## Run the suites of `make test` alone: integration and attack.
	@ONLY=suites hack/test.sh .reports

.PHONY: test-slow
test-slow: build controlplane ## Run the eight cases that take a fifth of the time of all, which `make test` leaves out: kills after each write, a restore of etcd, large copies.
	@mkdir -p .reports
	@go run github.com/onsi/ginkgo/v2/ginkgo --procs=$(PROCS) --keep-going --timeout=60m --label-filter=slow --output-dir=.reports --json-report=slow.json \
		./test/integration/{budget,propagation}
	@go run github.com/onsi/ginkgo/v2/ginkgo --procs=$(PROCS) --keep-going --timeout=60m --focus='kubectl warren migrate' --output-dir=.reports \
		--json-report=slow-migrate.json ./test/integration/trees # whole, because each case goes on where the one before it has ended

.PHONY: test-race
test-race: build controlplane ## Run the tests in which races are possible, with the race detector: before a release. Reports in .reports/race.
	@hack/test.sh .reports/race -race

.PHONY: test-race-unit
test-race-unit: build controlplane ## Run the unit tests with the race detector; reports in .reports/race.
	@ONLY=unit hack/test.sh .reports/race -race

.PHONY: test-long
test-long: export TEST_WINDOW = full
test-long: build controlplane ## Run the tests of `make test` with the full waiting times of the specification; reports in .reports/long.
	@hack/test.sh .reports/long

.PHONY: test-googlesql
test-googlesql: ## Check the ledger's statements for BigQuery with GoogleSQL's own analyser, in a Go module of its own. The first time it compiles for minutes and takes 7 GB.
	@mkdir -p .reports
	@cd test/googlesql && $(TOOL) gotestsum --format=pkgname --jsonfile=$(CURDIR)/.reports/googlesql.json

.PHONY: test-monitoring
test-monitoring: controlplane ## Check alerts and dashboards with Prometheus's own packages, on the metrics of a real operator, in a Go module of its own. The first time it compiles for minutes. ARGS=-draw: draw docs/runbooks/*.svg anew.
	@mkdir -p .reports
	@cd test/monitoring && $(TOOL) gotestsum --format=testname --jsonfile=$(CURDIR)/.reports/monitoring.json -- -count=1 -timeout=20m . $(if $(ARGS),-args $(ARGS))

.PHONY: test-gitops
test-gitops: ## Check how Flux and Argo CD see our objects, with the libraries that they use, in a Go module of its own.
	@mkdir -p .reports
	@cd test/gitops && $(TOOL) gotestsum --format=testname --jsonfile=$(CURDIR)/.reports/gitops.json -- -count=1 .

.PHONY: test-ui
test-ui: controlplane ## Check the pages and drawings in Debian's Chromium, from the PATH or CHROMIUM, in a Go module of its own. Screenshots in .reports/ui.
	@mkdir -p .reports
	@cd test/ui && $(TOOL) gotestsum --format=testname --jsonfile=$(CURDIR)/.reports/ui.json -- -count=1 -timeout=90m ./... $(if $(ARGS),-args $(ARGS))

.PHONY: bench-ui
bench-ui: controlplane ## Measure the pages of kubectl warren graph and ui beside a bare list of the same names, in Debian's Chromium, as ratios.
	@cd test/ui && go test -run '^$$' -bench . -benchtime 1x -timeout=30m .

.PHONY: test-matrix
test-matrix: build controlplane ## Run the tests of admission, attacks and tenants while the API server emulates Kubernetes 1.35, then 1.34. VERSIONS=1.34: one of them; VERSIONS="1.35.4 1.34.4": real ones, which take minutes to build.
	@for v in $(VERSIONS); do \
		case $$v in *.*.*) export WARREN_KUBERNETES_VERSION=$$v; go run ./hack/controlplane >/dev/null ;; *) export WARREN_EMULATED_VERSION=$$v ;; esac; \
		echo "Kubernetes $$v"; go run github.com/onsi/ginkgo/v2/ginkgo --procs=$(PROCS) --keep-going --timeout=30m \
		./test/attack/... ./test/integration/{admission,components,guard,tenants,webhooks} || exit 1; \
		unset WARREN_KUBERNETES_VERSION WARREN_EMULATED_VERSION; done

.PHONY: test-scopes
test-scopes: build controlplane ## Run the cases of propagation that hold in every scope, with every kind but those of RBAC in scope Namespaces, then in scope Auto.
	@for scope in Namespaces Auto; do PROPAGATION_SCOPE=$$scope go run github.com/onsi/ginkgo/v2/ginkgo --procs=$(PROCS) --keep-going --timeout=30m \
		--focus='PROP-(P|V|C|K[1-5]|T|D[1-8]|R1|R2|X1 |O|N)' ./test/integration/propagation || exit 1; done

.PHONY: test-fault
test-fault: build controlplane ## Try each fault at each write of the operator in every story; print how many tries there were, and how many ended in another state. Takes an hour or two.
	@WARREN_FAULTS=all go run github.com/onsi/ginkgo/v2/ginkgo --keep-going --timeout=180m ./test/integration/fault

.PHONY: test-load
test-load: build controlplane ## Kill the operator every 20 s while 50 people work in 1,000 namespaces for 30 minutes, and ask the authorizer 1,000,000 questions; print how long operations take. LOAD_DURATION=2m LOAD_USERS=4 LOAD_NAMESPACES=20: a smaller load; LOAD_SEED=7: another one.
	@LOAD_DURATION=$${LOAD_DURATION:-30m} go run github.com/onsi/ginkgo/v2/ginkgo --timeout=300m --output-dir=.reports --json-report=load.json ./test/load

.PHONY: test-simulation
test-simulation: ## Run 1,000,000 simulated histories on all cores. SIMULATION_SEED=7: begin with that seed; SIMULATION_HISTORIES=100: run only 100.
	@SIMULATION_HISTORIES=$${SIMULATION_HISTORIES:-1000000} go test -count=1 -timeout=24h -v -run "TestHistories|TestRights" ./test/simulation/...

.PHONY: test-whole
test-whole: ## Run 1,500 histories of the whole operator in virtual time, and as many of sudo on request, on all cores. WHOLE_SEED=7: begin with that seed; WHOLE_HISTORIES=100, WHOLE_EVENTS=200: so many, so long; WHOLE_SHRINK=120: make what fails shorter for 120 s; WHOLE_LOG=1: print all that happens.
	@WHOLE_STRICT=1 WHOLE_HISTORIES=$${WHOLE_HISTORIES:-1500} WHOLE_EVENTS=$${WHOLE_EVENTS:-100} go test -count=1 -timeout=24h -v -run Histories ./test/whole

.PHONY: test-defects
test-defects: ## Put each defect of test/defects into the product, one at a time, and expect the tests to fail.
	@hack/test-defects.sh

.PHONY: test-release
test-release: ## Make a release twice, each in a clone of its own, and compare every byte. PLATFORMS=linux/amd64: compile for that alone.
	@PLATFORMS="$(PLATFORMS)" hack/test-release.sh

.PHONY: e2e-node
e2e-node: ## Upgrade PREVIOUS to this version on a real node with a kubelet, which it starts; needs Linux, root, and Debian's containerd and CNI plugins. STORY=manifests or chart: one half of it.
	@go build -o bin/e2e-node ./test/e2e
	@PREVIOUS="$(PREVIOUS)" STORY="$(STORY)" bin/e2e-node

.PHONY: bench
bench: controlplane ## Measure the budgets B1 to B7 and B9 to B11 against a bare client. BENCH_SCALE=small: only what doesn't depend on the machine.
	@go run ./test/bench $(ARGS)

.PHONY: bench-scale
bench-scale: controlplane ## Measure B8: a cold start with 1,000 to 10,000 namespaces.
	@go run ./test/bench -cold $(ARGS)

.PHONY: bench-targets
bench-targets: controlplane ## Measure DIST-D71: status, time and memory of one ResourceDistribution to 10,000 namespaces.
	@go run ./test/bench -targets $(ARGS)

.PHONY: bench-migration
bench-migration: controlplane build ## Measure a move from HNC: 1,000 namespaces with 10,000 copies, against bare patches. BENCH_SCALE=small: 30 namespaces.
	@go run ./test/bench -migration $(if $(BENCH_SCALE),,-children 1000) $(ARGS)

.PHONY: bench-budgets
bench-budgets: controlplane ## Measure budgets over a tree beside a ResourceQuota and, with ARGS="-hnc FOLDER" for a clone with bin/manager, HNC. BENCH_SCALE=small: less of it.
	@go run ./test/bench -budgets $(ARGS)

.PHONY: bench-noisy
bench-noisy: controlplane ## Measure what a tenant that floods the operator costs the others: the time from a Secret to its copy, and the operator's requests. BENCH_SCALE=small: a tenth of it.
	@go run ./test/bench -noisy $(ARGS)

.PHONY: bench-informers
bench-informers: controlplane ## Measure informers by namespace beside those of controller-runtime, the operator in scope Namespaces, and how soon RBAC is followed. BENCH_SCALE=small: 50 namespaces.
	@go run ./test/bench -informers $(ARGS)

.PHONY: bench-admission
bench-admission: controlplane ## Measure SEC-P5: what policies and webhooks add to a request, as ratios.
	@go run ./test/bench -admission $(ARGS)

.PHONY: vet-admin
vet-admin: build controlplane ## Write docs/vetted/<minor>.yaml: what ClusterRole admin grants on the control plane that the tests build. NOTE says what its review has shown.
	@go run ./hack/vetadmin -note "$(NOTE)"

.PHONY: bench-access
bench-access: controlplane ## Measure how soon standing sudo and sudo on request begin and end, and what that and edits of a tenant's lists cost, with 200 tenants; and B12, what ClusterRoleBindings cost every request.
	@go run ./test/bench -access $(ARGS)

.PHONY: bench-billing
bench-billing: ## Measure the ledger with 10,000 tenants on SQLite, PostgreSQL and a stand-in for BigQuery, and the memory of an exporter. Too many statements are an error, and so is too much memory.
	@go test ./internal/billing -run '^$$' -bench Ledger -benchtime 1x
	@go test ./internal/billing/exporter -run '^$$' -bench Memory -benchtime 1x

.PHONY: spec-coverage
spec-coverage: ## Show which cases of docs/behaviour passed in the last `make test`.
	@go run ./hack/speccoverage

##@ Build

.PHONY: build
build: build-demo ## Build bin/manager, bin/manager-billing, bin/manager-bigquery, bin/kubectl-warren and bin/kubectl-sudo, and links to the last two under their other names.
	@$(BUILD) -o bin/manager-bigquery ./cmd/manager-bigquery

# What the demo runs: all but manager-bigquery, whose client of Google's is the longest of all to compile.
.PHONY: build-demo
build-demo: build-plugins
	@$(BUILD) -o bin/manager .
	@$(BUILD) -o bin/manager-billing ./cmd/manager-billing

.PHONY: build-plugins
build-plugins: ## Build bin/kubectl-warren and bin/kubectl-sudo, and links to them under their other names.
	@$(BUILD) -o bin/kubectl-warren ./cmd/kubectl-warren
	@$(BUILD) -o bin/kubectl-sudo ./cmd/kubectl-sudo
	@for name in kubectl-warren:kubectl-create-lns kubectl-warren:kubectl_complete-warren kubectl-sudo:kubectl_complete-sudo; do \
		ln -f "bin/$${name%:*}" "bin/$${name#*:}" 2>/dev/null || cp -f "bin/$${name%:*}" "bin/$${name#*:}"; done

.PHONY: image
image: ## Write dist/image.tar, the image as a file, without any container tool: IMG names it, ARCH chooses the machine.
	@[ -n "$(IMG)" ] || { echo "error: IMG is empty: make image IMG=registry.example/warren:v1" >&2; exit 1; }
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o bin/linux-$(ARCH)/manager .
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o bin/linux-$(ARCH)/manager-billing ./cmd/manager-billing
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o bin/linux-$(ARCH)/manager-bigquery ./cmd/manager-bigquery
	@GOOS=linux GOARCH=$(ARCH) $(BUILD) -trimpath -o bin/linux-$(ARCH)/kubectl-warren ./cmd/kubectl-warren
	@go run ./hack/image -name "$(IMG)" -o "$(IMAGE_TAR)" -version "$(VERSION)" -revision "$(COMMIT)" \
		bin/linux-$(ARCH)/manager bin/linux-$(ARCH)/manager-billing bin/linux-$(ARCH)/manager-bigquery bin/linux-$(ARCH)/kubectl-warren

.PHONY: sbom
sbom: build ## Write dist/sbom.cdx.json: what the programs of the image are made of, in CycloneDX. The image holds the same.
	@mkdir -p dist
	@go run ./hack/sbom -version "$(VERSION)" -o dist/sbom.cdx.json bin/manager bin/manager-billing bin/manager-bigquery bin/kubectl-warren

.PHONY: govulncheck
govulncheck: ## Look for known vulnerabilities in what is linked in. It asks vuln.go.dev, or GOVULNDB.
	@go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) $(if $(GOVULNDB),-db "$(GOVULNDB)") ./... $(WATCHSET)

.PHONY: docker-build
docker-build: ## Build the image with Docker, or with CONTAINER_TOOL=podman or buildah: IMG names it.
	@[ -n "$(IMG)" ] || { echo "error: IMG is empty: make docker-build IMG=registry.example/warren:v1" >&2; exit 1; }
	@$(CONTAINER_TOOL) build --build-arg VERSION="$(VERSION)" --build-arg COMMIT="$(COMMIT)" -t "$(IMG)" .

.PHONY: docker-push
docker-push: ## Push the image.
	@[ -n "$(IMG)" ] || { echo "error: IMG is empty: make docker-push IMG=registry.example/warren:v1" >&2; exit 1; }
	@$(CONTAINER_TOOL) push "$(IMG)"

.PHONY: chart
chart: ## Write dist/chart/warren, the Helm chart of VERSION, from config. `make chart VERSION=v1.2.3`; if VERSION is no semantic version, v0.0.0-dev.
	@go run ./hack/chart -o dist/chart/warren -version "$(CHART_VERSION)"
	@echo "wrote dist/chart/warren"

.PHONY: release
release: ## Write what a release ships to dist/VERSION: images, install.yaml of each overlay, chart, plugins, SBOMs, checksums, provenance. VERSION=v1.2.3, REPOSITORY is the image's.
	@PLATFORMS="$(PLATFORMS)" hack/release.sh "$(VERSION)" "$(REPOSITORY)" "$(CURDIR)/dist/$(VERSION)"

.PHONY: release-check
release-check: ## Show, without a network, what the workflow of a tag publishes: `make release-check VERSION=v1.2.3`. It checks the changelog, and the checksums of dist/VERSION if that exists.
	@PLATFORMS="$(PLATFORMS)" hack/publish.sh check "$(VERSION)" "$(REPOSITORY)" "$(CHARTS)" "dist/$(VERSION)"

.PHONY: release-push
release-push: ## Push the images and the chart of dist/VERSION to REPOSITORY and CHARTS. The workflow of a tag runs it.
	@PLATFORMS="$(PLATFORMS)" hack/publish.sh push "$(VERSION)" "$(REPOSITORY)" "$(CHARTS)" "dist/$(VERSION)"

.PHONY: release-page
release-page: ## Make the release page of VERSION on GitHub, with the files of dist/VERSION. The workflow of a tag runs it.
	@PLATFORMS="$(PLATFORMS)" hack/publish.sh page "$(VERSION)" "$(REPOSITORY)" "$(CHARTS)" "dist/$(VERSION)"

.PHONY: build-installer
build-installer: sbom ## Write dist/install.yaml: the overlay as one file, and dist/sbom.cdx.json. IMG names the image.
	@hack/render.sh "$(OVERLAY)" "$(IMG)" "$(CONFIG)" "$(VERSION)" > dist/install.yaml.new
	@mv dist/install.yaml.new dist/install.yaml
	@echo "wrote dist/install.yaml"

##@ On the current cluster

.PHONY: run
run: build ## Run the operator in the foreground, as its own service account. ARGS are its flags.
	@hack/run.sh $(ARGS)

.PHONY: install
install: ## Install the CRDs alone.
	@$(TOOL) kustomize build config/crd | $(KUBECTL) apply --dry-run=$(DRY_RUN) -f -

.PHONY: uninstall
uninstall: ## Save our objects to a file, then remove the CRDs. Namespaces and what is in them stay.
	@hack/remove-crds.sh "$(SAVE)"

.PHONY: deploy
deploy: ## Deploy the operator: IMG=…, OVERLAY=standard|open|hardened, CONFIG=FILE; DRY_RUN=server keeps only Namespace and CRDs.
	@[ -n "$(IMG)" ] || { echo "error: IMG is empty: make deploy IMG=registry.example/warren:v1" >&2; exit 1; }
	@hack/deploy.sh "$(OVERLAY)" "$(IMG)" "$(CONFIG)" $(DRY_RUN) "$(VERSION)" $(KEEP_CRDS)

.PHONY: undeploy
undeploy: build ## Take the operator off the cluster; CRDs and tenants stay. CRDS=true: the CRDs go too, our objects are saved.
	@if [ "$(CRDS)" = true ]; then hack/remove-crds.sh "$(SAVE)"; fi
	@hack/undeploy.sh
