# SPDX-License-Identifier: Apache-2.0
# PHP's command line interpreter, with the core only: an engine of 100,000 lines whose main loop
# jumps by computed goto.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch php8.2
	configured php8.2 --disable-all --disable-cgi --disable-phpdbg --without-pcre-jit \
		--without-valgrind --disable-opcache
}

program_build() {
	cp -a "$CACHE/configured/php8.2/." "$W"
	make -C "$W" -j"$JOBS" CFLAGS_CLEAN="$CFLAGS_V -fvisibility=hidden -w" \
		EXTRA_LDFLAGS_PROGRAM="$LDFLAGS_V" sapi/cli/php
	mv "$W/sapi/cli/php" "$OUT/php-$1"
}
