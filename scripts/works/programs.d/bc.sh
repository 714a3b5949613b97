# SPDX-License-Identifier: Apache-2.0
# GNU bc.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch bc
	configured bc --disable-dependency-tracking --without-readline
}

program_build() {
	cp -a "$CACHE/configured/bc/." "$W"
	make -C "$W/lib" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	make -C "$W/bc" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	mv "$W/bc/bc" "$OUT/bc-$1"
}
