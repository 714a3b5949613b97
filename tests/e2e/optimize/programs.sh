#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: three programs are built, trained and run
# timeout: 3600
# Three of the five programs, each link variant at least once, with all movable code moved (MORPH_LONG=1: lua
# and gzip in all variants; MORPH_PROGRAMS=all: all five in all variants; sort and bash take minutes to build).
# Output and status stay the same on work other than the training, and no execution starts inside a patch.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit 1
form=some least=19
[ "${MORPH_LONG:-0}" = 0 ] || form=more least=30
[ "${MORPH_PROGRAMS:-some}" != all ] || form=all least=30
nr_failed=0 nr_run=0 nr_watched=0 first=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

variants_of() {
	case $form/$1 in
	all/* | more/lua | more/gzip) echo pie nopie static static-pie ;;
	some/lua) echo pie static ;;
	some/gzip) echo nopie static-pie ;;
	*/speedtest1) echo pie ;;
	esac
}

build_programs() {
	local name variant options
	for name in speedtest1 lua gzip sort bash; do
		[ -n "$(variants_of $name)" ] || continue
		options=()
		for variant in $(variants_of $name) shared; do
			options+=(--variant "$variant")
		done
		scripts/works/programs --inputs "${options[@]}" "$name" || return
	done
}

if ! build_programs >"$TMPDIR/build.log" 2>&1; then
	tail -n 3 "$TMPDIR/build.log"
	echo "skip: the test programs could not be built (no network?)"
	exit 77
fi
export INPUTS=${INPUTS:-$BUILD/inputs} LC_ALL=C
programs=$BUILD/programs
work=$TMPDIR/work
mkdir -p "$work" && cd "$work" || exit 1

run() { # NAME PROGRAM OUTPUT: status in $status
	local command filter
	command=$("$root/scripts/works/workload" "$1" short "$2")
	filter=$("$root/scripts/works/workload" "$1" filter)
	timeout 120 sh -c "$command" >raw 2>raw.err </dev/null
	status=$?
	sh -c "$filter" <raw >"$3"
}

# The original runs once for each variant; its output and status are in out.1 and $first.
original() { # NAME PROGRAM
	run "$1" "$2" out.1
	first=$status
}

compare() { # WHAT NAME COPY
	run "$2" "$3" out.2
	nr_run=$((nr_run + 1))
	[ $first = $status ] || fail "$1: exit $status instead of $first"
	[ -s out.1 ] || fail "$1: no output"
	cmp -s out.1 out.2 || fail "$1: output differs"
}

optimise() { # IN OUT SEED
	"$BUILD/morph-optimize" --all ${3:+--lab=stress-layout=$3} --lab=list-patches=patches "$1" -o "$2" \
		>opt.log 2>&1 && return 0
	fail "$1 ${3:+seed $3}: $(tail -n 1 opt.log)"
	return 1
}

for name in $("$root/scripts/works/workload" --names); do
	for variant in $(variants_of "$name"); do
		exe=$programs/$name-$variant
		[ -x "$exe" ] || { fail "$exe is missing"; continue; }
		# Use the program's own name, because some programs print it.
		mkdir -p a b
		cp "$exe" "a/$name" || continue
		original "$name" "a/$name"
		for seed in "" 2 9; do
			optimise "$exe" "b/$name" "$seed" || continue
			compare "$name-$variant seed ${seed:-none}" "$name" "b/$name"
			[ "$variant" = pie ] && [ "$seed" = 2 ] || continue
			command -v qemu-x86_64 >/dev/null || { echo "note: no emulator"; continue; }
			read -ra words <<<"$("$root/scripts/works/workload" "$name" short "b/$name")"
			"$root/scripts/bench/branches" --patches patches --stdout out.3 "${words[0]}" -- \
				"${words[@]:1}" >branches.log 2>&1 ||
				fail "$name under the emulator: $(tail -n 1 branches.log)"
			nr_watched=$((nr_watched + 1))
		done
	done
done
for lib in libsqlite3.so.0:speedtest1 liblua5.4.so.0:lua; do
	name=${lib#*:} lib=${lib%%:*}
	mkdir -p a b
	cp "$programs/$lib" "a/$lib" || { fail "$lib is missing"; continue; }
	cp "$programs/$name-shared" "$name"
	for side in a b; do
		printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$work/$side" "$work/$name" >run.$side
		chmod +x run.$side
	done
	original "$name" ./run.a
	for seed in "" 4; do
		optimise "a/$lib" "b/$lib" "$seed" || continue
		compare "$lib seed ${seed:-none}" "$name" ./run.b
	done
done
echo "$nr_run runs compared, $nr_watched watched under the emulator, $nr_failed failures"
[ $nr_failed = 0 ] && [ $nr_run -ge $least ]
