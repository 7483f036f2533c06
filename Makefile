# Everything here works with Go and make alone, except the targets that say more.

GO         ?= go
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PACKAGE    := github.com/csi-windows/csi-windows
LDFLAGS    := -s -w -X $(PACKAGE)/cmd/internal/version.number=$(VERSION)
BUILD      := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
FUZZTIME   ?= 10s
BENCHTIME  ?= 1s
LINT       := bin/golangci-lint
PLATFORMS  := linux/amd64 linux/arm64 windows/amd64 windows/arm64

.PHONY: build windows test test-race bench vet lint generate check-generated demo wine fuzz-short layout bench-wine verify check-verify coverage clean

## build: the programs for this machine, in bin/
build:
	$(BUILD) -o bin/ ./cmd/csi-proxy ./cmd/csi-proxyctl

## windows: the programs for Windows nodes, in bin/windows-amd64 and bin/windows-arm64
windows:
	GOOS=windows GOARCH=amd64 $(BUILD) -o bin/windows-amd64/ ./cmd/csi-proxy ./cmd/csi-proxyctl
	GOOS=windows GOARCH=arm64 $(BUILD) -o bin/windows-arm64/ ./cmd/csi-proxy ./cmd/csi-proxyctl

## demo: a node plugin's life on a simulated node, and attempts to do damage
demo:
	$(BUILD) -o bin/ ./cmd/csi-proxy ./test/demo
	bin/demo -agent bin/csi-proxy

## test: every test that needs no C compiler and no Wine
test:
	CGO_ENABLED=0 $(GO) test ./...

## test-race: the same under the race detector; needs a C compiler
test-race:
	CGO_ENABLED=1 $(GO) test -race ./...

## bench: the benchmarks; ratios are reported as metrics
bench:
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...

## fuzz-short: every fuzz target for FUZZTIME
fuzz-short:
	test/fuzz-short $(FUZZTIME)

## vet: go vet for every platform that is built
vet:
	set -e; for p in $(PLATFORMS); do \
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
