# Everything a newcomer needs; `make help` lists it.
CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
TARGET = $(or $(CARGO_TARGET_DIR),target)
RELEASE = $(TARGET)/release
# Tests of the ledger that Miri, which takes hundreds of times as long, runs in seconds.
MIRI = member:: outside:: places:: path_shares:: token::
OLDEST_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# What install-program installs: other builds of the program and the library, for packages.
PROGRAMS ?= $(RELEASE)
LIBRARIES ?= $(RELEASE)
STRIP ?= strip
# Each test that lacks something has a line here (tests/requirements).
SKIPPED = $(CURDIR)/target/skipped
# Tests that mostly wait, of which more run at a time than there are processors.
WAITING = discnice-waiting-tests
WAITING_PROGRAMS = $(addprefix --test ,$(basename $(notdir $(wildcard tests/waiting/tests/*.rs))))

.PHONY: help book build program demo test test-programs lint style clippy rustdoc locks fuzz-targets check install install-program uninstall packages packages-test cross docs model miri msrv fuzz rates login-node storm leftovers inject kernels fleet-storm fleet-test fleet-tutorial fleet-metrics fleet-steal nri nri-test podman-test slurm slurm-test

help: ## This list
	@awk -F ':.*## ' '/^##@ / { print (n++ ? "\n" : "") substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Build and try

build: ## Build the program and the library
	$(CARGO) build --release --locked

program: ## Build what a user runs: the program, the library, gbp
	$(CARGO) build --release --locked -p discnice-cli -p discnice-preload -p discnice-graybox

demo: ## Build the program and the library, then run the main job: one copy unlimited, one at 20 MiB/s
	$(CARGO) build --release --locked -p discnice-cli -p discnice-preload
	@demo/demo.sh $(RELEASE)/discnice

##@ Check

test: program ## All tests that need nothing but this machine
	@mkdir -p $(dir $(SKIPPED)) && : >$(SKIPPED)
	@export DISCNICE_SKIPPED=$(SKIPPED); \
	$(CARGO) test --workspace --exclude $(WAITING) --locked --no-fail-fast; passed=$$?; \
	$(CARGO) test --workspace --locked --no-fail-fast $(WAITING_PROGRAMS) -- --test-threads=8 || passed=$$?; \
	awk -F '\t' '{ times[$$1]++ } \
		END { printf "tests skipped: %d", NR; for (why in times) printf "; %d: %s", times[why], why; print "" }' \
		$(SKIPPED); exit $$passed

lint: style fuzz-targets rustdoc ## Formatting, clippy, layers, exported symbols, the program's size, silent tests, words and references of comments and documents, the papers' statements, documentation

# What of it needs the program, or is soon done.
style: program clippy locks
	$(CARGO) fmt --all --check
	$(CARGO) xtask check-layers
	$(CARGO) xtask check-tests
	$(CARGO) xtask check-words
	$(CARGO) xtask requirements --check
	$(CARGO) xtask check-symbols $(RELEASE)/libdiscnice.so
	$(CARGO) xtask check-size $(RELEASE)/discnice

# What Cargo builds in the folder of the tests, one after the other.
test-programs: clippy rustdoc
	$(CARGO) test --workspace --locked --no-run

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Workspaces of their own: a crate that one of ours begins to use must be in their lists of versions, too.
locks:
	for workspace in bindings/python fuzz; do \
		$(CARGO) metadata --locked --format-version 1 --manifest-path $$workspace/Cargo.toml >/dev/null || exit 1; \
	done

# A workspace of its own again: its targets must follow what they call.
fuzz-targets:
	$(CARGO) check --quiet --locked --no-default-features --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz-targets

rustdoc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked --quiet

check: lint test ## What CI runs

##@ Check for longer

model: ## Model-check the ledger with loom (minutes)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --release -p discnice-ledger --lib loom

miri: ## Look for undefined behaviour with Miri where members and the watcher share memory (needs `rustup toolchain install nightly -c miri -c rust-src`; a minute)
	PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri $(CARGO) +nightly miri test --locked --lib -p discnice-ledger -- $(MIRI)

msrv: ## Build everything with the oldest Rust that Cargo.toml allows (needs `rustup toolchain install` with its number; some minutes)
	CARGO_TARGET_DIR=target/msrv $(CARGO) +$(OLDEST_RUST) check --workspace --all-targets --locked

fuzz: ## Fuzz whatever reads what others wrote, a minute for each target (needs g++)
	fuzz/run.sh 60

rates: build ## Hold real programs to their rates on a loop device (needs root, an hour)
	python3 eval/benches/rates.py --unlimited

login-node: build ## What 49 users of a login node wait for while one runs away, without and with limits (needs root; ten minutes)
	python3 eval/benches/login_node.py

storm: build ## Kill what belongs to us beside sqlite, tar, rsync and git, 500 rounds (half an hour)
	python3 eval/benches/kill_storm.py

leftovers: build ## What policyd keeps of 50,000 commands and 10,000 classes (a quarter of an hour)
	DISCNICE_COMMANDS=50000 DISCNICE_CLASSES=10000 $(CARGO) test -p discnice-tests --test leftovers -- --nocapture

kernels: program ## Boot the kernels of four Debian releases (Linux 5.10 to the newest) and try all mechanisms there (needs root, debootstrap, qemu-system-x86; a quarter of an hour)
	tests/kernels/run.sh $(RELEASE)/discnice $(RELEASE)/libdiscnice.so

inject: build ## Make every system call and allocation of run, policyd and refresh fail in turn (an hour)
	DISCNICE_INJECT=all $(CARGO) test -p discnice-tests --no-fail-fast --test 'injection*' -- --nocapture

fleet-storm: ## A thousand simulated machines share a budget, with faults all the time (half an hour; needs redis-server)
	DISCNICE_FLEET_MINUTES=30 $(CARGO) test --release -p discnice-fleet --test simulation -- --nocapture --test-threads 1

fleet-test: build ## Three Slurm nodes in namespaces share a budget (needs root, slurm-wlm, munge, redis-server; two minutes)
	python3 tests/fleet/slurm.py $(RELEASE)/discnice

fleet-tutorial: build ## Do what the first hour of docs/fleet.md says (needs root, redis-server; half a minute)
	python3 tests/fleet/tutorial.py $(RELEASE)/discnice

fleet-metrics: build ## Draw the dashboards' queries from four nodes under load, by a real Prometheus (needs root, prometheus, redis-server; a minute)
	python3 tests/fleet/metrics.py $(RELEASE)/discnice

fleet-steal: build ## Guests on nodes whose owners work, which leave, linger or stay, on real Slurm (needs root, slurm-wlm, munge; three minutes)
	python3 tests/fleet/steal.py $(RELEASE)/discnice

nri: ## Build the NRI plugin of containerd (needs Go and its modules)
	@mkdir -p $(RELEASE)
	cd packaging/nri && CGO_ENABLED=0 go build -trimpath -o $(abspath $(RELEASE))/discnice-nri .

nri-test: build ## Run that plugin by NRI's own part of a container engine (needs Go and its modules)
	cd packaging/nri && DISCNICE=$(abspath $(RELEASE))/discnice go test ./...

podman-test: build ## Limits of containers under real podman, of the superuser and of an ordinary user (needs root, podman, uidmap, runc, musl-tools; a minute)
	python3 tests/engines/podman.py $(RELEASE)/discnice $(wildcard dist/discnice-*-x86_64.oci.tar)

slurm: ## Build the plugin for the Slurm whose headers are installed (libslurm-dev)
	@mkdir -p $(RELEASE)
	$(CC) -O2 -Wall -Wextra -shared -fPIC -DPREFIX='"$(abspath $(PREFIX))"' -o $(RELEASE)/discnice_spank.so packaging/slurm/discnice_spank.c

slurm-test: build slurm ## Limits of jobs by the plugin, on real Slurm in namespaces (needs root, slurm-wlm, slurmdbd, mariadb-server, munge, libslurm-dev; a minute)
	python3 tests/fleet/spank.py $(RELEASE)/discnice $(RELEASE)/discnice_spank.so

##@ Documents

book: ## The documents as a book, in book/ (needs mdbook)
	@command -v mdbook >/dev/null || { echo "make: no mdbook; cargo install --locked mdbook" >&2; exit 1; }
	mdbook build

docs: ## Man pages and shell completions from the flags' one definition
	$(CARGO) pages manual $(RELEASE)/pages

##@ Install

install: program docs install-program ## Install below PREFIX
	DESTDIR=$(DESTDIR) crates/capi/install.sh $(abspath $(PREFIX))

install-program: # Install what is built
	install -D -m 755 $(PROGRAMS)/discnice $(DESTDIR)$(PREFIX)/bin/discnice
	install -m 755 packaging/discnice-runc $(DESTDIR)$(PREFIX)/bin/discnice-runc
	install -D -m 755 $(PROGRAMS)/gbp $(DESTDIR)$(PREFIX)/lib/discnice/gbp
	$(STRIP) $(DESTDIR)$(PREFIX)/bin/discnice $(DESTDIR)$(PREFIX)/lib/discnice/gbp
	install -D -m 644 $(LIBRARIES)/libdiscnice.so $(DESTDIR)$(PREFIX)/lib/discnice/libdiscnice.so
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 $(RELEASE)/pages/*.1 packaging/discnice-runc.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(RELEASE)/pages/*.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -D -m 644 $(RELEASE)/pages/discnice.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/discnice
	install -D -m 644 $(RELEASE)/pages/_discnice $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_discnice
	install -D -m 644 $(RELEASE)/pages/discnice.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/discnice.fish
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/discnice packaging/engines/discnice-*
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/discnice packaging/slurm/discnice-task packaging/slurm/discnice-ended
	[ ! -f $(RELEASE)/discnice_spank.so ] || install -m 755 $(RELEASE)/discnice_spank.so $(DESTDIR)$(PREFIX)/lib/discnice/
	install -D -m 644 packaging/profile.d/discnice.sh $(DESTDIR)$(PREFIX)/share/discnice/profile.d/discnice.sh
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/discnice/rules packaging/rules/*.toml
	install -d $(DESTDIR)$(PREFIX)/share/systemd/user
	install -m 644 packaging/systemd/*.socket packaging/systemd/*.timer $(DESTDIR)$(PREFIX)/share/systemd/user/
	for unit in discnice-policyd discnice-refresh@; do \
		sed 's|@PREFIX@|$(abspath $(PREFIX))|g' packaging/systemd/$$unit.service.in \
			>$(DESTDIR)$(PREFIX)/share/systemd/user/$$unit.service; \
	done

uninstall: ## Remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/discnice $(DESTDIR)$(PREFIX)/bin/discnice-runc $(DESTDIR)$(PREFIX)/share/man/man[15]/discnice*.[15]
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/discnice
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_discnice
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/discnice.fish
	rm -f $(DESTDIR)$(PREFIX)/share/systemd/user/discnice-policyd.* $(DESTDIR)$(PREFIX)/share/systemd/user/discnice-refresh@.*
	rm -rf $(DESTDIR)$(PREFIX)/lib/discnice $(DESTDIR)$(PREFIX)/share/discnice
	rm -f $(DESTDIR)$(PREFIX)/include/discnice.h $(DESTDIR)$(PREFIX)/lib/libdiscnice_testpoint.*
	rm -f $(DESTDIR)$(PREFIX)/lib/pkgconfig/discnice.pc
	cd $(DESTDIR)$(PREFIX)/share 2>/dev/null || exit 0; \
	for folder in man/man1 man/man5 bash-completion/completions zsh/site-functions fish/vendor_completions.d systemd/user; do \
		[ ! -d $$folder ] || rmdir -p --ignore-fail-on-non-empty $$folder; \
	done

packages: ## Build .deb, .rpm, tarball, wheel and OCI image into dist/
	packaging/build.sh

cross: ## Build tarball, .rpm, wheel and OCI image for aarch64 into dist/, and hold a job with each under qemu-user (needs clang, lld, binutils-aarch64-linux-gnu, libc6-arm64-cross, qemu-user-static, rpm, cpio, umoci; a quarter of an hour)
	packaging/cross.sh

packages-test: ## Install, use and remove each package in a root of its own (needs root, debootstrap, rpm, runc, umoci, busybox-static, musl-tools)
	packaging/test.sh
