# SPDX-License-Identifier: Apache-2.0
# GNU m4; its gnulib parts need configure.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch m4
	configured m4 --disable-dependency-tracking --disable-gcc-warnings
}

program_build() {
	cp -a "$CACHE/configured/m4/." "$W"
	make -C "$W/lib" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	make -C "$W/src" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" m4
	mv "$W/src/m4" "$OUT/m4-$1"
}
