#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A stack with moved frames: gdb, backtrace(), libdw's eu-stack and perf read it, and name the
# functions by the symbols of the moved code.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
data=$root/tests/data
cd "$TMPDIR" || exit 1
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

has() { command -v "$1" >/dev/null 2>&1; }

in_order() { # FILE NAME...: the names stand in this order
	local file=$1 at=0 line word
	shift
	for word; do
		line=$(awk -v from="$at" -v name="$word" 'NR > from && index($0, name) { print NR; exit }' "$file")
		[ -n "$line" ] || return 1
		at=$line
	done
}

# The symbol of moved code lies in .morph.text.
in_moved_code() { # FILE SYMBOL
	local start size value
	read -r start size < <(readelf -SW "$1" | sed 's/\[ *[0-9]*\]//' |
		awk '$1 == ".morph.text" { print $3, $5 }')
	value=$(nm "$1" | awk -v s="$2" '$3 == s { print $1; exit }')
	[ -n "$value" ] && [ -n "$start" ] && [ $((0x$value)) -ge $((0x$start)) ] &&
		[ $((0x$value)) -lt $((0x$start + 0x$size)) ]
}

for v in "pie:-O2" "nopie:-O2 -fno-pie -no-pie" "static:-O2 -static"; do
	read -ra flags <<<"${v#*:}"
	name=frames-${v%%:*}
	gcc "${flags[@]}" -rdynamic -Wl,--emit-relocs -o "$name" "$data/frames.c" || exit 1
	"$BUILD/morph-optimize" --all "$name" -o "$name.opt" >opt.log 2>&1 ||
		{ fail "$name: $(tail -n 1 opt.log)"; continue; }
	for sym in inner middle outer main; do
		in_moved_code "$name.opt" $sym || fail "$name: $sym does not lie in moved code"
	done

	# backtrace() gives as many frames as before.
	"./$name" backtrace >bt.1 && "./$name.opt" backtrace >bt.2 || fail "$name: backtrace()"
	[ "$(wc -l <bt.1)" = "$(wc -l <bt.2)" ] || fail "$name: backtrace() sees other frames"

	if has gdb; then
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'run abort' -ex bt "./$name.opt" \
			>gdb.log 2>&1
		in_order gdb.log "inner (" "middle (" "outer (" "main (" ||
			fail "$name: gdb's backtrace lacks a moved frame: $(grep '^#' gdb.log | head -8)"
		# A breakpoint by name works, and finish returns through moved frames.
		gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'break inner' -ex run -ex bt \
			-ex finish "./$name.opt" >gdb.2 2>&1
		grep -q "Breakpoint 1, " gdb.2 || fail "$name: gdb meets no breakpoint in moved code"
		tail -n 1 gdb.2 | grep -q "in middle" || fail "$name: gdb cannot finish a moved frame"
	else
		echo "note: no gdb"
	fi
done

if has perf; then
	if perf record -N -q -e cpu-clock -o perf.data -g -- ./frames-pie.opt spin >/dev/null 2>perf.err &&
		perf script -i perf.data >perf.txt 2>perf.err; then
		grep -q "inner+0x" perf.txt || fail "perf script does not name moved code"
		share=$(perf report -i perf.data --no-children -g none --stdio 2>/dev/null |
			awk '/ inner/ { print int($1); exit }')
		[ "${share:-0}" -ge 50 ] || fail "perf report gives inner ${share:-0} %"
		# Lines and bytes of copies. perf assumes that the difference between address and
		# file offset is the same for all code as for .text.
		line=$(grep -n 'sink += i' "$data/frames.c" | cut -d: -f1)
		for v in "pie" "nopie -fno-pie -no-pie" "lld -fuse-ld=lld -Wl,-z,separate-loadable-segments"; do
			read -ra flags <<<"$v"
			name=lines-${flags[0]}
			gcc -g -O2 "${flags[@]:1}" -Wl,--build-id -o "$name" "$data/frames.c" 2>cc.err ||
				{ echo "note: $name: $(head -n 1 cc.err)"; continue; }
			"$BUILD/morph-optimize" --all "$name" -o "$name.opt" >opt.log 2>&1 ||
				{ fail "$name: $(tail -n 1 opt.log)"; continue; }
			in_moved_code "$name.opt" inner || fail "$name: inner does not lie in moved code"
			perf record -N -q -e cpu-clock -o lines.data -- "./$name.opt" spin >/dev/null 2>perf.err
			perf script -i lines.data -F ip,sym,srcline 2>perf.err |
				grep -A1 ' inner$' | grep -c "frames.c:$line\$" >lines.txt
			[ "$(cat lines.txt)" -ge 5 ] || fail "$name: perf script knows no line of copies"
			perf annotate -i lines.data --stdio inner 2>perf.err >annotate.txt
			grep -q 'sink += i' annotate.txt ||
				fail "$name: perf annotate shows no copy"
		done
	else
		echo "note: perf cannot record here: $(head -n 1 perf.err)"
	fi
else
	echo "note: no perf"
fi

echo "$nr_failed failures"
[ $nr_failed = 0 ]
