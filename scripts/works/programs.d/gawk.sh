# SPDX-License-Identifier: Apache-2.0
# GNU awk, without the parts for terminals and extensions.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch gawk
	configured gawk --disable-dependency-tracking --disable-nls --disable-mpfr \
		--disable-extensions --disable-pma --without-readline
}

program_build() {
	cp -a "$CACHE/configured/gawk/." "$W"
	make -C "$W/support" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" gawk
	mv "$W/gawk" "$OUT/gawk-$1"
}
