# Everything here works with Go and make alone, except the targets that say more.

GO         ?= go
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGE    := github.com/csi-windows/csi-windows
LDFLAGS    := -s -w -X $(PACKAGE)/cmd/internal/version.number=$(VERSION)
BUILD      := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
FUZZTIME   ?= 10s
BENCHTIME  ?= 1s
LINT       := bin/golangci-lint
SWEEP_EVERY ?= 1
VET_PLATFORMS ?= linux/amd64 linux/arm64 windows/amd64 windows/arm64

.PHONY: build windows test test-race bench vet lint generate check-generated demo wine fuzz-short layout sweep test-cluster bench-cluster bench-wine verify check-verify coverage clean

## build: the programs for this machine, in bin/
build:
	$(BUILD) -o bin/ ./cmd/csi-proxy ./cmd/csi-proxyctl ./cmd/csi-driver ./cmd/csi-sidecar

## windows: the programs for Windows nodes, in bin/windows-amd64 and bin/windows-arm64
windows:
	GOOS=windows GOARCH=amd64 $(BUILD) -o bin/windows-amd64/ ./cmd/csi-proxy ./cmd/csi-proxyctl ./cmd/csi-driver ./cmd/csi-sidecar
	GOOS=windows GOARCH=arm64 $(BUILD) -o bin/windows-arm64/ ./cmd/csi-proxy ./cmd/csi-proxyctl ./cmd/csi-driver ./cmd/csi-sidecar

## demo: a claim's life by CSI calls on a simulated node, and attempts to do damage
demo:
	$(BUILD) -o bin/ ./cmd/csi-proxy ./cmd/csi-driver ./test/demo
	bin/demo -agent bin/csi-proxy -driver bin/csi-driver

## test: every test that needs no C compiler and no Wine
test:
	CGO_ENABLED=0 $(GO) test ./...

## test-race: the same under the race detector; needs a C compiler
test-race:
	CSI_SWEEP_EVERY=400 CGO_ENABLED=1 $(GO) test -race ./...

## bench: the benchmarks; ratios are reported as metrics
bench:
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...

## fuzz-short: every fuzz target for FUZZTIME
fuzz-short:
	test/fuzz-short $(FUZZTIME)

## vet: go vet for every platform that is built
vet:
	set -e; for p in $(VET_PLATFORMS); do \
		echo "vet $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./...; done

## lint: golangci-lint in the version of tools/go.mod, for both systems
lint: $(LINT)
	GOOS=linux $(LINT) run ./...
	GOOS=windows $(LINT) run ./...

$(LINT): tools/go.mod tools/go.sum
	$(GO) -C tools build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

## generate: everything that is made from something else
generate:
	CGO_ENABLED=0 $(GO) generate ./...

## check-generated: fails when generate changes anything
check-generated: generate
	git diff --exit-code
	@test -z "$$(git status --porcelain)" || { git status --short; exit 1; }

## layout: structures and numbers compared with the headers; needs gcc-mingw-w64-x86-64-win32
layout:
	CGO_ENABLED=0 $(GO) run ./test/layout

## sweep: the node tasks broken at every single call, or at every SWEEP_EVERYth, with the number of points; make test takes samples
sweep:
	CSI_SWEEP_EVERY=$(SWEEP_EVERY) CGO_ENABLED=0 $(GO) -C test/sweep test -timeout 60m

## test-cluster: the product in a real Kubernetes, which a cold machine builds first for a quarter
## of an hour, into bin/cluster; kubelets need root, containerd and runc
test-cluster: bin/cluster/.complete
	CGO_ENABLED=0 $(GO) -C test/cluster test -p 1 -timeout 40m ./...

## bench-cluster: a hundred claims with csi-sidecar and with upstream's sidecars, which it builds into
## bin/upstream; see docs/benchmarks.md
bench-cluster: bin/cluster/.complete
	test/cluster/upstream/build bin/upstream
	CGO_ENABLED=0 $(GO) -C test/cluster test -run '^$$' -bench Sidecars -benchtime 1x -timeout 60m .

bin/cluster/.complete: test/cluster/build test/cluster/kubernetes/go.mod test/cluster/kubernetes/build test/cluster/snapshots/go.mod test/cluster/snapshots/build
	test/cluster/build

## wine: the Windows binaries under Wine; needs wine64 and gcc-mingw-w64-x86-64-win32
wine:
	test/wine/run

## bench-wine: the benchmarks of the code for Windows, as ratios, against the stand-ins
bench-wine:
	test/wine/run lab -run '^$$' -bench . -benchtime $(BENCHTIME) ./test/wine/cim ./test/wine/devices

## verify: docs/windows-verification.md, from what the tests execute under Wine
verify:
	CGO_ENABLED=0 $(GO) build -o bin/verify-tool ./test/wine/verify
	bin/verify-tool

## check-verify: fails when that page is not what the tests execute
check-verify:
	CGO_ENABLED=0 $(GO) build -o bin/verify-tool ./test/wine/verify
	bin/verify-tool -check

## coverage: how much of the whole product is executed, on Linux or under Wine; after verify
coverage:
	CGO_ENABLED=0 $(GO) test -coverpkg=./... -coverprofile=bin/linux.out ./...
	bin/verify-tool -check -keep -linux bin/linux.out

clean:
	rm -rf bin .wine
