# SPDX-License-Identifier: Apache-2.0
# The zstd command with its library, also the assembly, in the program.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch libzstd
}

program_build() {
	cp -a "$CACHE/src/libzstd/." "$W"
	make -C "$W/programs" -j"$JOBS" CC="$CC" CFLAGS="$CFLAGS_V" LDFLAGS="$LDFLAGS_V" V=1 \
		HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 BACKTRACE=0 zstd
	mv "$W/programs/zstd" "$OUT/zstd-$1"
}
