# SPDX-License-Identifier: Apache-2.0
# The xz command with its library in the program.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch xz-utils
	configured xz-utils --disable-shared --disable-nls --disable-doc --disable-scripts \
		--disable-dependency-tracking
}

program_build() {
	cp -a "$CACHE/configured/xz-utils/." "$W"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V"
	mv "$W/src/xz/xz" "$OUT/xz-$1"
}
