# SPDX-License-Identifier: Apache-2.0
# SQLite's speed test: the amalgamation, with the options of Debian's library.
# shellcheck shell=bash disable=SC2034,SC2086
HAS_SHARED=1

SQLITE_OPTIONS="-DSQLITE_THREADSAFE=1 -DSQLITE_SECURE_DELETE -DSQLITE_ENABLE_COLUMN_METADATA
	-DSQLITE_ENABLE_FTS3 -DSQLITE_ENABLE_FTS3_TOKENIZER -DSQLITE_ENABLE_FTS5
	-DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_UNLOCK_NOTIFY -DSQLITE_ENABLE_DBSTAT_VTAB
	-DSQLITE_ENABLE_UPDATE_DELETE_LIMIT -DSQLITE_MAX_VARIABLE_NUMBER=250000
	-DSQLITE_ENABLE_JSON1 -DSQLITE_USE_URI -DSQLITE_SOUNDEX -DSQLITE_MAX_EXPR_DEPTH=10000
	-DSQLITE_TEMP_STORE=1 -DHAVE_USLEEP=1 -DHAVE_LOCALTIME_R=1 -DHAVE_GMTIME_R=1"

program_prepare() {
	fetch sqlite3
	configured sqlite3 --disable-tcl --disable-readline --disable-shared \
		--enable-update-limit
	[ -e "$CACHE/configured/sqlite3/sqlite3.c.complete" ] && return 0
	(
		flock 9
		cd "$CACHE/configured/sqlite3"
		[ -e sqlite3.c.complete ] && exit 0
		make sqlite3.c >make.log 2>&1 || { tail -5 make.log >&2; exit 1; }
		touch sqlite3.c.complete
	) 9>"$CACHE/lock" || fail "sqlite3: the amalgamation could not be made"
}

program_build() {
	local c=$CACHE/configured/sqlite3
	local main=$CACHE/src/sqlite3/test/speedtest1.c
	cp "$c/sqlite3.c" "$c/sqlite3.h" "$main" "$W/"
	cd "$W" || return
	$CC $CFLAGS_V $SQLITE_OPTIONS -I. -c sqlite3.c &
	$CC $CFLAGS_V $SQLITE_OPTIONS -I. -c speedtest1.c
	wait $!
	if [ "$1" = shared ]; then
		$CC $LDFLAGS_V -shared -Wl,-soname,libsqlite3.so.0 -o libsqlite3.so.0 \
			sqlite3.o -lpthread -ldl -lm
		# shellcheck disable=SC2016
		$CC -pie $LDFLAGS_V -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN' \
			-o speedtest1 speedtest1.o libsqlite3.so.0 -lpthread -ldl -lm
		mv libsqlite3.so.0 "$OUT/"
	else
		$CC $LDFLAGS_V -o speedtest1 speedtest1.o sqlite3.o -lpthread -ldl -lm
	fi
	mv speedtest1 "$OUT/speedtest1-$1"
}
