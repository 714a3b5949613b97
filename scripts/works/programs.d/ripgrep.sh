# SPDX-License-Identifier: Apache-2.0
# ripgrep, built by Debian's cargo and rustc from Debian's packages of its crates (scripts/setup
# --rust). The linker is $RUST_LINKER, by default lld, as with today's rustc. rustc gets $PROGRAMS_RUSTFLAGS, too.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	[ -x /usr/bin/cargo ] && [ -d /usr/share/cargo/registry ] || fail "ripgrep: run scripts/setup --rust first"
	fetch rust-ripgrep
}

program_build() {
	local flags="-C link-arg=-Wl,--emit-relocs -C link-arg=-fuse-ld=${RUST_LINKER:-lld}"
	case $1 in
	nopie) flags="$flags -C relocation-model=static" ;;
	static) flags="$flags -C target-feature=+crt-static -C relocation-model=static" ;;
	static-pie) flags="$flags -C target-feature=+crt-static" ;;
	esac
	flags="$flags ${PROGRAMS_RUSTFLAGS:-}"
	cp -a "$CACHE/src/rust-ripgrep/." "$W"
	# Debian's crates lack these features; the lock file names other versions.
	sed -i '/^simd-accel/d; /^pcre2 = /d' "$W/Cargo.toml"
	rm -f "$W/Cargo.lock"
	mkdir -p "$W/.cargo"
	cat >"$W/.cargo/config.toml" <<-CONF
		[source.crates-io]
		replace-with = "debian"
		[source.debian]
		directory = "/usr/share/cargo/registry"
	CONF
	(cd "$W" && CARGO_HOME=$W/.cargo-home RUSTC=/usr/bin/rustc RUSTFLAGS=$flags \
		/usr/bin/cargo build --release --offline --jobs "$JOBS")
	mv "$W/target/release/rg" "$OUT/ripgrep-$1"
}
