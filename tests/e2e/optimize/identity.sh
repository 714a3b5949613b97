#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: many programs in several variants
# Programs that are easy to break behave the same after optimisation: each in several variants, with
# all functions moved, and blocks in order and shuffled. Same output, same exit status.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
data=$root/tests/data
cd "$TMPDIR" || exit 1
nr_failed=0 nr_run=0 nr_refused=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

same() { # NAME ORIGINAL OPTIMISED
	timeout 600 "$2" >out.1 2>err.1 </dev/null
	local status=$?
	timeout 600 "$3" >out.2 2>err.2 </dev/null
	local status2=$?
	nr_run=$((nr_run + 1))
	[ $status = $status2 ] || fail "$1: exit $status2 instead of $status"
	cmp -s out.1 out.2 || fail "$1: standard output differs"
	cmp -s err.1 err.2 || fail "$1: standard error differs"
}

optimise() { # ORIGINAL OPTIMISED SEED
	local seed=()
	[ "$3" = 0 ] || seed=(--lab=stress-layout="$3")
	"$BUILD/morph-optimize" --all "${seed[@]}" "$1" -o "$2" >opt.log 2>&1
	local status=$?
	case $status in
	0) return 0 ;;
	3) return 1 ;; # nothing to move: no output
	4) nr_refused=$((nr_refused + 1)); fail "$1 seed $3: refused: $(tail -n 1 opt.log)" ;;
	*) fail "$1 seed $3: exit $status: $(tail -n 1 opt.log)" ;;
	esac
	return 1
}

build() { # NAME SOURCES FLAGS: empty when the compiler cannot
	local name=$1 cc=$2
	shift 2
	"$cc" "$@" -w -Wl,--emit-relocs -o "$name" 2>cc.log
}

check_program() { # NAME COMPILER FLAGS...
	local name=$1 seed
	build "$@" || { echo "note: $name: cannot be built here: $(head -n 1 cc.log)"; return; }
	for seed in 0 1 7; do
		optimise "./$name" "./$name.opt" $seed && same "$name seed $seed" "./$name" "./$name.opt"
		rm -f "$name.opt"
	done
	rm -f "$name"
}

variants=(
	"pie:-O2 -fPIE -pie" "nopie:-O2 -fno-pie -no-pie" "static:-O2 -fno-pie -static"
	"static-pie:-O2 -fPIE -static-pie" "cet:-O2 -fcf-protection=full" "noplt:-O2 -fno-plt"
	"os:-Os" "o3:-O3" "o1nopie:-O1 -fno-pie -no-pie" "sections:-O2 -ffunction-sections -Wl,--gc-sections"
	"lld:-O2 -fuse-ld=lld -Wl,-z,separate-loadable-segments"
)
compilers=(gcc)
command -v clang >/dev/null && compilers+=(clang)
for cc in "${compilers[@]}"; do
	for v in "${variants[@]}"; do
		read -ra flags <<<"${v#*:}"
		[ "$cc:${v%%:*}" != clang:static-pie ] || continue
		check_program "control-$cc-${v%%:*}" "$cc" "${flags[@]}" "$data/control.c"
		check_program "identity-$cc-${v%%:*}" "$cc" "${flags[@]}" -rdynamic -DWITH_IFUNC \
			"$data/identity.c"
		check_program "hazards-$cc-${v%%:*}" "$cc" "${flags[@]}" "$data/hazards.c" "$data/hazards.S"
		check_program "tls-$cc-${v%%:*}" "$cc" "${flags[@]}" -pthread "$data/tls.c"
		cxx=g++
		[ "$cc" = gcc ] || cxx=clang++
		check_program "exceptions-$cc-${v%%:*}" $cxx "${flags[@]}" "$data/exceptions.cc"
		check_program "threads-$cc-${v%%:*}" $cxx "${flags[@]}" -pthread "$data/threads.cc"
	done
done

# The shared object is moved, the program is moved, and both are.
for v in "pic:-O2" "cet:-O2 -fcf-protection=full" "os:-Os -fno-plt"; do
	read -ra flags <<<"${v#*:}"
	mkdir -p plain moved
	gcc "${flags[@]}" -fPIC -shared -Wl,--emit-relocs -o plain/liblibrary.so "$data/library.c" || exit 1
	for pie in "-fPIE -pie" "-fPIE -pie -rdynamic" "-fno-pie -no-pie" \
		"-fno-pie -no-pie -rdynamic"; do
		read -ra kind <<<"$pie"
		gcc "${flags[@]}" "${kind[@]}" -Wl,--emit-relocs -o uses "$data/uses_library.c" \
			-Lplain -llibrary || exit 1
		for seed in 0 5; do
			optimise plain/liblibrary.so moved/liblibrary.so $seed || continue
			optimise ./uses ./uses.opt $seed || continue
			printf '#!/bin/sh\nLD_LIBRARY_PATH=plain exec ./uses\n' >run.plain
			printf '#!/bin/sh\nLD_LIBRARY_PATH=moved exec ./uses\n' >run.lib
			printf '#!/bin/sh\nLD_LIBRARY_PATH=moved exec ./uses.opt\n' >run.both
			chmod +x run.*
			same "library ${v%%:*} $pie seed $seed" ./run.plain ./run.lib
			same "library and program ${v%%:*} $pie seed $seed" ./run.plain ./run.both
		done
	done
done
echo "$nr_run runs compared, $nr_refused refused as a whole, $nr_failed failures"
[ $nr_failed = 0 ] && [ $nr_run -gt 50 ]
