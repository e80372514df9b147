# The two commands of the README are `make demo` and `make test`; `make help` lists the rest.

CARGO ?= cargo
# Builds the control plane where it is missing, and says so; prints where it is.
ASSETS = $$(tests/control-plane/build)
# What real nodes need beside it, where there can be any; the tests say what is missing.
NODE_ASSETS = if [ "$$(id -u)" = 0 ] && command -v containerd >/dev/null && command -v runc >/dev/null && \
	  command -v busybox >/dev/null && command -v go >/dev/null; then \
	  tests/control-plane/build kubelet >/dev/null && tests/control-plane/build kube-scheduler >/dev/null; fi

.PHONY: help generate demo demo-rust demo-go sandbox sandbox-down test test-nodes test-offline test-long test-mutations bench lint release release-all clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | column -t -s '|'

demo: ## Start a throw-away control plane and nodes, and show the plugin at work on them
	@tests/harness/at-once plugin '$(MAKE) --no-print-directory demo-rust' 'control plane' '$(MAKE) --no-print-directory demo-go'
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" ./demo.sh

# Not optimised: a newcomer waits for this, beside Go's compiler.
demo-rust:
	@$(CARGO) build --locked --bin kubectl-lease --example sandbox
demo-go: export KUBECTL_LEASE_PROGRESS = 2
demo-go:
	@tests/control-plane/build >/dev/null
	@$(NODE_ASSETS)

sandbox: ## Start a control plane to play with, and leave it running; NODES=2 adds two real nodes
	@$(CARGO) build --release --bin kubectl-lease
	@$(CARGO) run --quiet --example sandbox -- up $(NODES)

sandbox-down: ## End the control plane of `make sandbox`
	@$(CARGO) run --quiet --example sandbox -- down

# More at once than there are cores: most of them wait, for leases to run out and leaders to change.
test: ## All tests; those on real nodes where there can be any
	@assets="$(ASSETS)" && tests/control-plane/build kube-scheduler >/dev/null && oldest=$$(tests/control-plane/build oldest) && \
	 KUBEBUILDER_ASSETS="$$assets" KUBEBUILDER_ASSETS_OLDEST="$$oldest" RUST_TEST_THREADS=$${RUST_TEST_THREADS:-6} $(CARGO) test --locked --workspace --lib --bins --tests
	@$(CARGO) test --locked --workspace --doc
	@$(MAKE) --no-print-directory test-nodes

generate: ## The files that are made from the help texts and the rules: completions, man pages, docs/reference.md, docs/risks.md
	@GENERATE=overwrite $(CARGO) test --locked --test cli -- generated:: risks::

test-nodes: ## Only the tests on real nodes, as root, with containerd, runc and a static busybox
	@$(NODE_ASSETS)
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" $(CARGO) test --locked --test nodes

test-offline: ## The tests that need no control plane
	@$(CARGO) test --locked --workspace --lib --bins --test cli --test protocols
	@$(CARGO) test --locked --workspace --doc

# As the short one, but until the plugin was run so many times; KUBECTL_LEASE_SEED does the same again.
test-long: ## A long history of contended leases, judged by porcupine, and 200 races for one; 200 elections and 10 minutes of priorities; 30 rounds of faults of real nodes (20 minutes each)
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" KUBECTL_LEASE_HISTORY_OPERATIONS=$${KUBECTL_LEASE_HISTORY_OPERATIONS:-10000} \
	 KUBECTL_LEASE_OUTAGE=$${KUBECTL_LEASE_OUTAGE:-100} KUBECTL_LEASE_RACES=$${KUBECTL_LEASE_RACES:-200} \
	 $(CARGO) test --locked --test cluster -- --nocapture history:: restarts:: maint::of_32_processes
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" KUBECTL_LEASE_LINE_UPS=$${KUBECTL_LEASE_LINE_UPS:-200} \
	 KUBECTL_LEASE_INTERLEAVING_SECONDS=$${KUBECTL_LEASE_INTERLEAVING_SECONDS:-600} \
	 $(CARGO) test --locked --test cluster -- --nocapture line_ups:: interleavings::
	@$(NODE_ASSETS)
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" KUBECTL_LEASE_ROUNDS=$${KUBECTL_LEASE_ROUNDS:-30} \
	 KUBECTL_LEASE_ROUNDS_AT_ONCE=$${KUBECTL_LEASE_ROUNDS_AT_ONCE:-3} $(CARGO) test --locked --test nodes -- --nocapture rounds::who_follows

test-mutations: ## Break the protocol on purpose, one way at a time: a test has to fail each time (about 40 minutes)
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" tests/mutations/run $(MUTATIONS)

bench: ## Time and memory beside kubectl and curl, as ratios
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" $(CARGO) bench --locked --bench compare

lint: ## Formatting, clippy, the library without its feature internals, rustdoc of both, shellcheck, and whether the patches of test-mutations still apply
	@$(CARGO) fmt --check
	@tests/mutations/run --check
	@if command -v shellcheck >/dev/null; then git grep -l '^#!/usr/bin/env bash$$' -- ':!*.rs' ':!*.md' | xargs shellcheck; \
	 else echo 'note: shellcheck is not installed: the scripts are not checked'; fi
	@$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@$(CARGO) clippy --locked --test nodes -- -D warnings
	@$(CARGO) check --locked -p kube-leases --examples
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --workspace --lib --no-deps
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked -p kube-leases --features k8s-openapi/latest --lib --no-deps

# For another target than this machine's own: make release TARGET=x86_64-unknown-linux-musl
release: ## The archive for this machine and krew's manifest for it, in dist/, and how to install them
	@target=$(or $(TARGET),$$(rustc -vV | sed -n 's/^host: //p')) && \
	 binary=$$(packaging/binary "$$target") && rm -rf dist && packaging/local "$$binary" "$$target" dist

release-all: ## The archives for every platform that can be built here
	@packaging/all dist

clean: ## What was built here; the control plane's binaries stay in the cache
	@$(CARGO) clean
	@rm -rf dist
