# Millrace's workshop. `make` alone lists the targets; CONTRIBUTING.md says more.
SHELL := /bin/bash
CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
CARGO_TARGET_DIR ?= target
SECONDS_PER_FUZZ_TARGET ?= 60
# `make bench QUICK=1`: everything once, briefly.
QUICK ?=
export CARGO_TARGET_DIR
# A fresh root shell may know neither rustup's folder nor the administrator's.
export PATH := $(PATH):/usr/sbin:/sbin:$(HOME)/.cargo/bin

RELEASE := $(CARGO_TARGET_DIR)/release
SHELL_SCRIPTS = $(shell git ls-files | xargs -r grep -lE '^\#(!.*(bash|/sh)| shellcheck shell=bash)' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup build python demo test lab hostile numa tsan lint bench fuzz install clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r target text; do printf '  make %-8s %s\n' "$$target" "$$text"; done

setup: ## install what is missing (apt packages, Rust)
	@scripts/setup

build: setup ## build programs and library for use (target/release)
	$(CARGO) build --release --workspace

python: setup ## build the Python module: a wheel, and target/python with it
	@scripts/python

demo: build ## route real traffic between two namespaces, then serve it with NGINX
	@scripts/demo

test: setup ## every test: crates, lab, a minute of each fuzz target
	@SECONDS_PER_FUZZ_TARGET=$(SECONDS_PER_FUZZ_TARGET) scripts/test

lab: setup ## only the tests against the kernel, in network namespaces
	$(CARGO) build --workspace --lib --bins --examples
	@lab/run

hostile: setup ## two hours of hostile client processes beside traffic (LAB_HOSTILE_SECONDS)
	$(CARGO) build --workspace --lib --bins --examples
	@LAB_HOSTILE_SECONDS=$(or $(LAB_HOSTILE_SECONDS),7200) LAB_VERBOSE=1 LAB_TRIES=1 LAB_TIMEOUT=$$(($(or $(LAB_HOSTILE_SECONDS),7200) + 300)) lab/run hostile

numa: setup ## where memory lies on an emulated machine with two NUMA nodes (needs qemu-system-x86 and cpio)
	$(CARGO) build -p millrace-daemon
	@scripts/two-nodes $(CARGO_TARGET_DIR)/debug

tsan: setup ## what processes and threads share, under ThreadSanitizer (needs a nightly toolchain)
	@scripts/tsan

lint: setup ## formatting, clippy, rustdoc, shellcheck, layers, licences, header
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path python/Cargo.toml --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	scripts/header --check
	scripts/check-layers
	scripts/check-cycles
	scripts/check-licences
	@if command -v cargo-deny >/dev/null; then echo "cargo deny check"; $(CARGO) deny --all-features check; fi
	shellcheck $(SHELL_SCRIPTS)
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps

bench: build ## measure everything beside DPDK and the kernel, write out/report.html (QUICK=1: briefly)
	@QUICK=$(QUICK) scripts/bench $(RELEASE) out

fuzz: setup ## fuzz each target for SECONDS_PER_FUZZ_TARGET (60)
	@scripts/fuzz $(SECONDS_PER_FUZZ_TARGET)

install: ## install what `make build` made under DESTDIR/PREFIX
	@test -x $(RELEASE)/millraced || { echo "make install: run 'make build' first" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 755 $(RELEASE)/millraced $(RELEASE)/millrace-judge $(DESTDIR)$(PREFIX)/sbin
	install -m 755 $(RELEASE)/millrace $(RELEASE)/millrace-bench $(DESTDIR)$(PREFIX)/bin
	install -d $(DESTDIR)$(PREFIX)/share/millrace/scenarios/operator
	install -m 644 scenarios/*.toml $(DESTDIR)$(PREFIX)/share/millrace/scenarios
	install -m 644 scenarios/operator/*.toml $(DESTDIR)$(PREFIX)/share/millrace/scenarios/operator
	install -D -m 644 $(RELEASE)/libmillrace_preload.so $(DESTDIR)$(PREFIX)/lib/millrace/libmillrace_preload.so
	scripts/install-library $(RELEASE)/libmillrace.so $(PREFIX) $(DESTDIR)
	@if [ -z "$(DESTDIR)" ] && command -v ldconfig >/dev/null; then ldconfig; fi
	sed 's|/usr/local/|$(PREFIX)/|' dist/millraced.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/millraced.service
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RELEASE)/millrace completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/millrace
	$(RELEASE)/millrace completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_millrace
	$(RELEASE)/millrace completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/millrace.fish

clean: ## remove what building and testing made
	$(CARGO) clean
	rm -rf out fuzz/target fuzz/artifacts
