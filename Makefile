# The two commands of the README are `make demo` and `make test`; `make help` lists the rest.

CARGO ?= cargo
# Builds the control plane where it is missing, and says so; prints where it is.
ASSETS = $$(tests/control-plane/build)

.PHONY: help demo sandbox sandbox-down test test-offline bench lint release clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | column -t -s '|'

demo: ## Start a throw-away control plane and show the plugin at work on it
	@$(CARGO) build --release --bin kubectl-lease
	@$(CARGO) build --example sandbox
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" ./demo.sh

sandbox: ## Start a control plane to play with, and leave it running
	@$(CARGO) build --release --bin kubectl-lease
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" $(CARGO) run --quiet --example sandbox -- up

sandbox-down: ## End the control plane of `make sandbox`
	@$(CARGO) run --quiet --example sandbox -- down

# More at once than there are cores: most of them wait, for leases to run out and leaders to change.
test: ## All tests, those on a real control plane included
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} $(CARGO) test --locked --lib --bins --tests

test-offline: ## The tests that need no control plane
	@$(CARGO) test --locked --lib --bins --test cli

bench: ## Time and memory beside kubectl and curl, as ratios
	@assets="$(ASSETS)" && KUBEBUILDER_ASSETS="$$assets" $(CARGO) bench --locked --bench compare

lint: ## Formatting and clippy
	@$(CARGO) fmt --check
	@$(CARGO) clippy --locked --all-targets -- -D warnings

# For another target than this machine's own: make release TARGET=x86_64-unknown-linux-musl
release: ## The archive for this machine, in dist/
	@$(CARGO) build --locked --release --bin kubectl-lease $(if $(TARGET),--target $(TARGET))
	@version=$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1) && \
	 host=$(or $(TARGET),$$(rustc -vV | sed -n 's/^host: //p')) && \
	 name="kubectl-lease-v$$version-$$host.tar.gz" && \
	 mkdir -p dist && \
	 tar -C target/$(if $(TARGET),$(TARGET)/)release -cf - kubectl-lease -C "$(CURDIR)" LICENSE README.md | gzip -n9 >"dist/$$name" && \
	 echo "dist/$$name"

clean: ## What was built here; the control plane's binaries stay in the cache
	@$(CARGO) clean
	@rm -rf dist
