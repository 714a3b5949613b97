#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: several debuggers, each on several programs
# Debug information of functions in place of calls: backtraces have the frame of the called function
# and the line of the call, by several readers; gdb stops in the called function wherever it stands.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
scratch inlined
need jq objdump

# Two units, since compilers inline such functions within a unit themselves.
cat >callee.c <<'C'
int table[64];
__attribute__((noinline)) int add(int a, int b) /* add */
{ /* add */
	return a + b; /* add */
} /* add */
__attribute__((noinline)) int pick(int n) /* pick */
{ /* pick */
	if (n % 5 == 0) /* pick */
		return 7; /* pick */
	if (n & 1) /* pick */
		return table[n & 63]; /* pick */
	return n * 3; /* pick */
} /* pick */
C
cat >caller.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int add(int, int);
int pick(int);
__attribute__((noinline)) int work(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++) {
		s += pick(i); /* calls pick */
		if (i & 3) {
			int t = add(s, i); /* calls add */

			s ^= t;
		}
	}
	return s;
}
int main(int argc, char **argv)
{
	printf("%d\n", work(argc > 1 ? atoi(argv[1]) : 1000));
	return 0;
}
C
cat >caller.cc <<'C'
#include <cstdio>
#include <cstdlib>
namespace far { int add(int, int); struct Box { int v; int pick(int n) const; }; }
namespace near {
struct Work { far::Box box; int work(int n); };
__attribute__((noinline)) int Work::work(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++) {
		s += box.pick(i); /* calls pick */
		if (i & 3) {
			int t = far::add(s, i); /* calls add */

			s ^= t;
		}
	}
	return s;
}
}
int main(int argc, char **argv)
{
	near::Work work = {{4}};

	std::printf("%d\n", work.work(argc > 1 ? std::atoi(argv[1]) : 1000));
	return 0;
}
C
cat >callee.cc <<'C'
namespace far {
struct Box { int v; int pick(int n) const; };
__attribute__((noinline)) int add(int a, int b) /* add */
{ /* add */
	return a + b; /* add */
} /* add */
__attribute__((noinline)) int Box::pick(int n) const /* pick */
{ /* pick */
	if (n > 7) /* pick */
		return v; /* pick */
	return v + n; /* pick */
} /* pick */
}
C

# lines FILE WORD: the numbers of the lines that have the comment WORD
lines() { grep -n "/\* $2 \*/" "$1" | cut -d: -f1; }

# told NAME CALLER CALLEE FUNCTION READER...: at each instruction of FUNCTION's code in place of a call, READER names
# a line of FUNCTION, and then the line of its call
told() {
	local name=$1 caller=$2 callee=$3 function=$4 own call
	shift 4
	# Compilers give line 0 to code that no line stands for.
	own=$(lines "$callee" "$function" | paste -sd '|')'|0|[?]'
	call=$(lines "$caller" "calls $function")
	while read -r at; do
		"$@" -e "$name.out" "0x$at" </dev/null 2>/dev/null | paste -sd ' ' |
			grep -qE "$function.*$callee:($own)[^0-9].*work.*$caller:$call\b" ||
			{ fail "$name: $1 at $at: $("$@" -e "$name.out" "0x$at" </dev/null | paste -sd ' ')"; return; }
	done < <(awk -v f="$function" '$1 == f { print $2 }' places.txt)
}

# The addresses of code in place of calls, by readelf: FUNCTION ADDRESS for each instruction
places() {
	objdump -d --no-show-raw-insn -j .morph.text "$1" | sed -n 's/^ *\([0-9a-f]*\):.*/\1/p' >insns.txt
	python3 - "$1" <<'PY'
import re, subprocess, sys
dump = subprocess.run(["readelf", "--debug-dump=info", "-W", sys.argv[1]], capture_output=True, text=True).stdout
names, ranges, now = {}, [], None
for line in dump.splitlines():
    m = re.match(r" *<\w+><(\w+)>: .*\((\w+)\)", line)
    if m:
        now = {"at": m[1], "tag": m[2]}
        names[m[1]] = now
        if m[2] == "DW_TAG_inlined_subroutine":
            ranges.append(now)
        continue
    m = re.match(r" *<\w+> +(DW_AT_\w+) *: *(.*)", line)
    if m and now:
        now[m[1]] = m[2].rsplit("): ", 1)[-1].strip()
def name(e, depth=0):
    if "DW_AT_name" in e or depth > 4:
        return e.get("DW_AT_name", "?").split()[-1]
    to = e.get("DW_AT_abstract_origin", e.get("DW_AT_specification", ""))
    return name(names.get(to.split()[-1].strip("<>").removeprefix("0x") if to else "", {}), depth + 1)
insns = [int(x, 16) for x in open("insns.txt")]
for e in ranges:
    if "DW_AT_call_column" in e and "DW_AT_entry_pc" not in e and "DW_AT_high_pc" in e:
        low, high = (int(e[a].split()[-1], 16) for a in ("DW_AT_low_pc", "DW_AT_high_pc"))
        for at in insns:
            if low <= at < high:
                print(name(e), f"{at:x}")
PY
}

# check NAME CALLER CALLEE COMPILER FLAGS...
check() {
	local name=$1 caller=$2 callee=$3
	shift 3
	"$@" -o "$name" "$caller" "$callee" 2>cc.err || { echo "note: $name: $(head -n 1 cc.err)"; return; }
	optimised "$name" "$caller" "$callee"
}

# apart NAME CALLER CALLEE COMPILER FLAGS...: each file is compiled in a directory of its own
apart() {
	local name=$1 caller=$2 callee=$3
	shift 3
	mkdir -p one two/three
	(cd one && "$@" -c -o ../one.o "../$caller") && (cd two/three && "$@" -c -o ../../two.o "../../$callee") &&
		"$@" -o "$name" one.o two.o || { fail "$name: cannot be built"; return; }
	optimised "$name" "$caller" "$callee"
}

# optimised NAME CALLER CALLEE
optimised() {
	local name=$1 caller=$2 callee=$3
	command_ends 0 "$name" "$BUILD/morph-optimize" --all --report=json -o "$name.out" "$name"
	jq -e ".code.inlined == 2 and .debug.units_left == 0 and .debug.inlined == 2 and .debug.inlined_left == 0" \
		out.txt >/dev/null || fail "$name: $(jq -c '.code.inlined, .debug' out.txt)"
	[ "$("./$name" 77)" = "$("./$name.out" 77)" ] || fail "$name: another output"
	places "$name.out" >places.txt
	[ "$(cut -d' ' -f1 places.txt | sort -u | paste -sd ' ')" = "add pick" ] ||
		fail "$name: entries for '$(cut -d' ' -f1 places.txt | sort -u | paste -sd ' ')'"
	for function in add pick; do
		told "$name" "$caller" "$callee" $function addr2line -i -f -C
		# clang writes no .debug_aranges, without which this reader finds no unit.
		has eu-addr2line && [ "${name#c}" = "$name" ] && told "$name" "$caller" "$callee" $function eu-addr2line -i -f -C
		has llvm-symbolizer && told "$name" "$caller" "$callee" $function llvm-symbolizer
	done
	no_new_errors "$name" "$name.out"
	stops_inside "$name" "$caller" "$callee"
}

# gdb stops in functions in place of calls, and sees their frames.
stops_inside() {
	local name=$1 caller=$2 callee=$3 function break
	for function in add pick; do
		case $caller:$function in
		*.cc:add) break=far::add ;;
		*.cc:pick) break=far::Box::pick ;;
		*) break=$function ;;
		esac
		# gdb finds qualified names in units that it has read, as it has at a stop in one.
		debugger "$name.out" 'break work' 'run 30' delete "break $break" continue bt up 'print n'
		says gdb.txt "^#0 .*$function (.*) at .*$callee:" "$name: gdb's backtrace in $function"
		says gdb.txt "^#1 .*work (.*) at .*$caller:$(lines "$caller" "calls $function")" "$name: gdb's backtrace"
		says gdb.txt '^#2 .*main (argc=' "$name: gdb's backtrace"
		says gdb.txt '^\$1 = \(30\|<optimized out>\)' "$name: a variable of the caller"
	done
}

for version in ${VERSIONS:-5 4 3}; do
	check g$version caller.c callee.c gcc -g -gdwarf-$version -O2
	check gxx$version caller.cc callee.cc g++ -g -gdwarf-$version -O2
	if has clang; then
		check c$version caller.c callee.c clang -g -gdwarf-$version -O2
		check cxx$version caller.cc callee.cc clang++ -g -gdwarf-$version -O2
	fi
done
check fixed caller.c callee.c gcc -g -O2 -fno-pie -no-pie
check compressed caller.c callee.c gcc -g -gz=zlib -O2
check relocations caller.cc callee.cc g++ -g -O2 -Wl,--emit-relocs

for version in 5 4; do
	apart apart$version caller.c callee.c gcc -g -gdwarf-$version -O2
	has clang && apart capart$version caller.cc callee.cc clang++ -g -gdwarf-$version -O2
done

# gdb finds the added units by .gdb_index.
if has gdb-add-index; then
	cp g5 indexed
	cp gxx5 cindexed
	for name in indexed cindexed; do
		gdb-add-index $name 2>/dev/null
		readelf -SW $name | grep -q '\.gdb_index' || { echo "note: no .gdb_index"; continue; }
		ending=$([ $name = indexed ] && echo c || echo cc)
		optimised $name caller.$ending callee.$ending
		readelf --debug-dump=gdb_index -W $name.out >index.txt 2>index.err
		[ -s index.err ] && fail "$name: $(head -n 2 index.err)"
		# work() has code in the added unit only.
		says index.txt '\] .*work.*: 0 \[.*function\], 2 \[.*function\]\|work.*:$' "$name: the index"
	done
fi

# An index .debug_names would lack the added units, so there are none.
if has clang && clang -g -gdwarf-5 -gpubnames -O2 -o named caller.c callee.c 2>/dev/null &&
	readelf -SW named | grep -q '\.debug_names'; then
	command_ends 0 "names" "$BUILD/morph-optimize" --all --report=json -o named.out named
	jq -e '.debug.inlined == 0 and .debug.inlined_left == 2 and .debug.units_left == 0' out.txt >/dev/null ||
		fail "names: $(jq -c .debug out.txt)"
fi

finish
