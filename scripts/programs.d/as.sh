# SPDX-License-Identifier: Apache-2.0
# The GNU assembler.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch binutils
	configured binutils --disable-dependency-tracking --disable-nls --disable-gdb \
		--disable-ld --disable-gold --disable-gprof --disable-gprofng --disable-sim \
		--disable-shared --disable-werror --without-zstd
}

program_build() {
	cp -a "$CACHE/configured/binutils/." "$W"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" MAKEINFO=true all-gas
	mv "$W/gas/as-new" "$OUT/as-$1"
}
