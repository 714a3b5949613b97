# SPDX-License-Identifier: Apache-2.0
# GNU gzip; its gnulib parts need configure.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch gzip
	configured gzip --disable-dependency-tracking --disable-gcc-warnings
}

program_build() {
	cp -a "$CACHE/configured/gzip/." "$W"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" version.c version.h
	make -C "$W/lib" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" gzip
	mv "$W/gzip" "$OUT/gzip-$1"
}
