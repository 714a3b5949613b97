# SPDX-License-Identifier: Apache-2.0
# GNU bash, with its own termcap, so that no terminal library is needed.
# shellcheck shell=bash disable=SC2034

program_prepare() {
	fetch bash
	bash_cv_termcap_lib=gnutermcap configured bash --disable-nls \
		--without-bash-malloc --enable-largefile
}

program_build() {
	cp -a "$CACHE/configured/bash/." "$W"
	make -C "$W" -j"$JOBS" CFLAGS="$CFLAGS_V -w" CFLAGS_FOR_BUILD="-O1 -w" \
		LDFLAGS="$LDFLAGS_V" LDFLAGS_FOR_BUILD= bash
	mv "$W/bash" "$OUT/bash-$1"
}
