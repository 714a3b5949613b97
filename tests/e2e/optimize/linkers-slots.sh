#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In files of gold and lld, the new segment replaces PT_PHDR or a note that demands nothing. Outputs
# run, also after packaging steps. Originals are stripped first, as distributions do; a PT_NOTE still
# leads to the build-id.
. "$(dirname "$0")/../lib.sh"
scratch slots
need gcc g++ strip readelf
data=$root/tests/data
nr_run=0

strip_all() { strip -o "$2" "$1"; }
strip_debug() { strip -g -o "$2" "$1"; }
objcopy_copy() { objcopy "$1" "$2"; }
objcopy_link() {
	objcopy --only-keep-debug "$1" side.debug && objcopy --strip-debug "$1" "$2" &&
		objcopy --add-gnu-debuglink=side.debug "$2"
}
eu_strip() { eu-strip -o "$2" "$1"; }
llvm_strip() { "$LLVM_STRIP" -o "$2" "$1"; }
patchelf_rpath() { cp "$1" "$2" && patchelf --set-rpath /nowhere/at/all:/nor/here "$2"; }
strip_then_patchelf() { strip -o "$2" "$1" && patchelf --set-rpath /nowhere "$2"; }
steps=(strip_all strip_debug objcopy_copy objcopy_link)
if command -v eu-strip >/dev/null; then steps+=(eu_strip); else echo "note: no eu-strip"; fi
LLVM_STRIP=$(command -v llvm-strip-14 || command -v llvm-strip)
if [ -n "$LLVM_STRIP" ]; then steps+=(llvm_strip); else echo "note: no llvm-strip"; fi
if command -v patchelf >/dev/null; then
	steps+=(patchelf_rpath strip_then_patchelf)
else
	echo "note: no patchelf"
fi

map_of() { readelf -nW "$1" 2>/dev/null | grep -A2 -i "morph" | head -3 | sha256sum; }
build_id_of() { readelf -nW "$1" 2>/dev/null | awk '/Build ID/ { print $NF }'; }

# runs FILE: run FILE, or ./uses with FILE as its library
runs() {
	local got
	if [ "$library" = 1 ]; then
		mkdir -p lib && cp "$1" lib/liblibrary.so
		LD_LIBRARY_PATH=$dir/lib timeout 600 ./uses >out.txt 2>&1 </dev/null
	else
		timeout 600 "$1" >out.txt 2>&1 </dev/null
	fi
	got=$?
	nr_run=$((nr_run + 1))
	echo "status $got" >>out.txt
	sed -i "s,$dir/[a-z._]*,program,g; s,\./[a-z._]*,program,g" out.txt
}

# survives NAME PRICE: NAME works after each step; the report says that the segment replaced PRICE
survives() {
	local name=$1 step map
	strip "$name" || fail "$name: strip"
	runs "./$name"
	mv out.txt want
	[ -s want ] || fail "$name: says nothing"
	command_ends 0 "$name" "$BUILD/morph-optimize" --lab=stress-layout=7 "$name" -o "$name.opt"
	says out.txt "$2" "$name"
	map=$(map_of "$name.opt")
	[ "$map" != "$(map_of "$name")" ] || fail "$name: no map to be seen"
	[ -n "$(build_id_of "$name.opt")" ] || fail "$name: no build-id to be seen"
	[ "$(build_id_of "$name.opt")" != "$(build_id_of "$name")" ] ||
		fail "$name: the original's build-id"
	for step in none "${steps[@]}"; do
		rm -f after
		if [ $step = none ]; then
			cp "$name.opt" after
		elif ! $step "./$name.opt" after >step.log 2>&1; then
			# Some tools refuse some originals, too.
			if $step "./$name" after >step.0 2>&1; then
				fail "$name: $step: $(head -n 1 step.log)"
			else
				echo "note: $name: $step: $(head -n 1 step.0)"
			fi
			continue
		fi
		chmod +x after
		runs ./after
		cmp -s want out.txt || fail "$name after $step: $(diff want out.txt | head -n 3)"
		[ "$(map_of after)" = "$map" ] || fail "$name after $step: the map is gone or changed"
		readelf -lSW after >re.log 2>re.err || fail "$name after $step: readelf"
		[ ! -s re.err ] || fail "$name after $step: readelf: $(head -n 1 re.err)"
	done
}

nothing="which has no effect"
library=0
for ld in gold lld; do
	if ! command -v ld.$ld >/dev/null; then
		echo "note: no $ld"
		continue
	fi
	flags=(-w -O2 -fuse-ld=$ld -Wl,--build-id=sha1)
	# gold copies its inputs' property notes. A note that demands nothing may be replaced.
	gcc "${flags[@]}" -fno-pie -no-pie -o fixed_$ld "$data/control.c" || fail "$ld: fixed"
	g++ "${flags[@]}" -fno-pie -no-pie -o caught_$ld "$data/exceptions.cc" || fail "$ld: caught"
	price=$nothing
	[ $ld = gold ] || price=PT_PHDR
	survives fixed_$ld "$price"
	survives caught_$ld "$price"
	if [ $ld = gold ]; then
		gcc "${flags[@]}" -pie -fPIE -o pie_$ld "$data/control.c" || fail "$ld: pie"
		survives pie_$ld "$nothing"
	fi
	library=1
	gcc "${flags[@]}" -fPIC -shared -Wl,-soname,liblibrary.so -o lib_$ld "$data/library.c" &&
		cp lib_$ld liblibrary.so &&
		gcc -w -O2 -rdynamic -I"$data" -o uses "$data/uses_library.c" ./liblibrary.so ||
		fail "$ld: library"
	survives lib_$ld PT_PHDR
	library=0
done
echo "$nr_run runs, $nr_failed failures"
[ $nr_failed = 0 ]
