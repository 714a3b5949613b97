#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Outputs still run after packaging steps: variants of strip, objcopy, patchelf. The map is still
# found. readelf and eu-elflint accept the structure.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
data=$root/tests/data
cd "$TMPDIR" || exit 1
nr_failed=0 nr_run=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

has() { command -v "$1" >/dev/null 2>&1; }

# Each function makes "$2" from "$1".
strip_all() { strip -o "$2" "$1"; }
strip_debug() { strip -g -o "$2" "$1"; }
strip_unneeded() { strip --strip-unneeded -o "$2" "$1"; }
objcopy_debug() { objcopy --strip-debug "$1" "$2"; }
objcopy_copy() { objcopy "$1" "$2"; }
objcopy_link() {
	objcopy --only-keep-debug "$1" side.debug && objcopy --strip-debug "$1" "$2" &&
		objcopy --add-gnu-debuglink=side.debug "$2"
}
eu_strip() { eu-strip -o "$2" "$1"; }
eu_strip_file() { eu-strip -f side.eu -o "$2" "$1"; }
llvm_strip() { "$LLVM_STRIP" -o "$2" "$1"; }
llvm_strip_debug() { "$LLVM_STRIP" -g -o "$2" "$1"; }
patchelf_rpath() { cp "$1" "$2" && patchelf --set-rpath /nowhere/at/all:/nor/here "$2"; }
strip_then_patchelf() { strip -o "$2" "$1" && patchelf --set-rpath /nowhere "$2"; }

steps=(strip_all strip_debug strip_unneeded objcopy_debug objcopy_copy objcopy_link)
if has eu-strip; then steps+=(eu_strip eu_strip_file); else echo "note: no eu-strip"; fi
LLVM_STRIP=$(command -v llvm-strip-14 || command -v llvm-strip)
if [ -n "$LLVM_STRIP" ]; then steps+=(llvm_strip llvm_strip_debug); else echo "note: no llvm-strip"; fi
if has patchelf; then steps+=(patchelf_rpath strip_then_patchelf); else echo "note: no patchelf"; fi

map_of() { readelf -nW "$1" 2>/dev/null | grep -A2 -i "morph" | head -3 | sha256sum; }

check_after() { # NAME FILE EXPECTED-OUTPUT EXPECTED-STATUS MAP
	local status
	timeout 600 "$2" >out.2 2>err.2 </dev/null
	status=$?
	nr_run=$((nr_run + 1))
	[ $status = "$4" ] || fail "$1: exit $status instead of $4: $(head -n 1 err.2)"
	cmp -s "$3" out.2 || fail "$1: output differs"
	[ "$(map_of "$2")" = "$5" ] || fail "$1: the map is gone or changed"
	readelf -lSW "$2" >re.log 2>re.err || fail "$1: readelf: $(head -n 1 re.err)"
	[ ! -s re.err ] || fail "$1: readelf warns: $(head -n 1 re.err)"
}

check_program() { # NAME COMPILER FLAGS...
	local name=$1 step status
	shift
	"$@" -w -Wl,--emit-relocs -o "$name" || { fail "$name: does not build"; return; }
	timeout 600 "./$name" >out.1 2>err.1 </dev/null
	status=$?
	"$BUILD/morph-optimize" --lab=stress-layout=3 "$name" -o "$name.opt" >opt.log 2>&1 ||
		{ fail "$name: $(tail -n 1 opt.log)"; return; }
	map=$(map_of "$name.opt")
	[ "$map" != "$(map_of "$name")" ] || fail "$name: no map to be seen"
	check_after "$name" "./$name.opt" out.1 $status "$map"
	if has eu-elflint; then
		# Complaints about the original (from its linker) are allowed for the output.
		eu-elflint --gnu-ld "$name" 2>&1 | grep -v '^No errors' | sort -u >lint.1
		eu-elflint --gnu-ld "$name.opt" 2>&1 | grep -v '^No errors' | sort -u >lint.2
		comm -13 <(sed 's/\[ *[0-9]*\]//g' lint.1 | sort -u) \
			<(sed 's/\[ *[0-9]*\]//g' lint.2 | sort -u) >lint.new
		grep -q "overlap\|out of order\|out of range\|not aligned" lint.new &&
			fail "$name: eu-elflint: $(head -n 3 lint.new)"
	fi
	for step in "${steps[@]}"; do
		rm -f stripped
		if ! $step "./$name.opt" stripped >step.log 2>&1; then
			# Some tools refuse some originals, too.
			if $step "./$name" stripped >step.0 2>&1; then
				fail "$name: $step: $(head -n 1 step.log)"
			else
				echo "note: $name: $step: $(head -n 1 step.0)"
			fi
			continue
		fi
		chmod +x stripped
		check_after "$name after $step" ./stripped out.1 $status "$map"
	done
}

check_program control-pie gcc -O2 -g "$data/control.c"
check_program control-nopie gcc -O2 -g -fno-pie -no-pie "$data/control.c"
check_program exceptions-pie g++ -O2 -g "$data/exceptions.cc"
check_program exceptions-nopie g++ -O2 -g -fno-pie -no-pie "$data/exceptions.cc"
# patchelf changes parts that static files lack.
for s in patchelf_rpath strip_then_patchelf; do steps=("${steps[@]/$s/}"); done
keep=()
for s in "${steps[@]}"; do [ -z "$s" ] || keep+=("$s"); done
steps=("${keep[@]}")
check_program exceptions-static g++ -O2 -g -static "$data/exceptions.cc"
check_program control-static-pie gcc -O2 -g -fPIE -static-pie "$data/control.c"
echo "$nr_run runs, $nr_failed failures"
[ $nr_failed = 0 ]
