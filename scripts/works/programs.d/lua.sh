# SPDX-License-Identifier: Apache-2.0
# The Lua 5.4 interpreter, compiled directly, without readline, which scripts do not need.
# shellcheck shell=bash disable=SC2034,SC2086
HAS_SHARED=1

program_prepare() {
	fetch lua5.4
}

program_build() {
	local src=$CACHE/src/lua5.4/src defs="-DLUA_COMPAT_5_3 -DLUA_USE_POSIX" f objs=
	local export=
	# A static program cannot load C modules, so it need not export symbols to them.
	case $1 in static*) ;; *) defs="$defs -DLUA_USE_DLOPEN" export=-Wl,-E ;; esac
	cd "$W" || return
	# Debian's packaging writes this header; the paths only matter to require().
	cat >lua5.4-deb-multiarch.h <<-H
		#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"
	H
	for f in "$src"/*.c; do
		case $f in */luac.c|*/lua.c|*/onelua.c|*/ltests.c) continue ;; esac
		objs="$objs $(basename "$f" .c).o"
	done
	printf '%s\n' $objs lua.o | sed 's/\.o$//' |
		xargs -P "$JOBS" -I@ $CC $CFLAGS_V $defs -I. -I"$src" -c "$src/@.c" -o @.o
	if [ "$1" = shared ]; then
		$CC $LDFLAGS_V -shared -Wl,-soname,liblua5.4.so.0 -o liblua5.4.so.0 \
			$objs -lm -ldl
		# shellcheck disable=SC2016
		$CC -pie $LDFLAGS_V -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN' -o lua \
			lua.o liblua5.4.so.0 -lm
		mv liblua5.4.so.0 "$OUT/"
	else
		$CC $LDFLAGS_V $export -o lua lua.o $objs -lm -ldl
	fi
	mv lua "$OUT/lua-$1"
}
