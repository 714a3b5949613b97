#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: programs are linked again by every linker, and gdb steps through them
#
# Objects with debug information: after they are rewritten and linked again by every linker, each instruction has
# the line that it had, gdb shows the same frames with the same variables, and readers of DWARF find nothing wrong.
# The code is the same as without debug information. verify refuses objects whose debug information was changed.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib-objects.sh"
need gcc ld readelf addr2line python3
scratch objdebug

# complaints FILE: what readelf says about its debug information
complaints() {
	readelf --debug-dump=info,decodedline,Ranges,loc,aranges,addr "$1" 2>&1 >/dev/null | grep -E '^readelf: (Warn|Err)' |
		grep -v -e 'start at' -e 'unsupported reloc' | sort | uniq -c
}

# dwarfdump FILE: llvm-dwarfdump's verdict. It takes minutes for gcc's files.
dwarfdump() {
	timeout 600 llvm-dwarfdump --verify "$1" 2>&1 | grep -e '^error' -e '^warning' -e '^No errors'
}

# frames PROGRAM FUNCTION: gdb's frames and variables where the function is called for the third time
frames() {
	gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set confirm off' -ex "break $2" -ex 'ignore 1 2' \
		-ex 'run 300' -ex 'bt full' "$1" 2>&1 | sed -n '/^#0/,$p' |
		sed -e 's/0x[0-9a-f]*/ADDRESS/g' -e 's/ADDRESS in //' -e 's/<[^>]*>//g' -e 's/= ".*/= TEXT/'
}

# compared PROGRAM NEW FUNCTION BREAKS: the lines of all functions, the frames at each break
compared() {
	local function got want_frames
	# shellcheck disable=SC2086
	python3 "$here/debug-lines.py" "$1" "$2" $3 >lines.txt 2>err.txt ||
		fail "lines ($what): $(head -n 5 err.txt)"
	read -r nr nr_lines <lines.txt
	[ "${nr:-0}" -gt 20 ] && [ "${nr_lines:-0}" -gt 10 ] || fail "only ${nr:-0} instructions, ${nr_lines:-0} lines ($what)"
	command -v gdb >/dev/null || return
	for function in $4; do
		want_frames=$(frames "$1" "$function")
		got=$(frames "$2" "$function")
		[ "$got" = "$want_frames" ] || fail "frames at $function ($what):
$(diff <(echo "$want_frames") <(echo "$got") | head -n 6)"
		case $want_frames in *main*) ;; *) fail "no frames at $function ($what): $want_frames" ;; esac
	done
}

# One set of flags is compared in full with all linkers, the others with lld.
# linked CC BREAKS OBJECT...: relink OBJECT.new.o with every linker, compare with the program
linked() {
	local cc=$1 breaks=$2 l object new=() functions
	shift 2
	for object; do
		new+=("${object%.o}.new.o")
		[ "$(complaints "$object")" = "$(complaints "${object%.o}.new.o")" ] ||
			fail "readelf ($what): $(complaints "${object%.o}.new.o" | head -n 3)"
	done
	functions=$(nm --defined-only "$@" | awk '$2 ~ /[tTW]/ { print $3 }')
	for l in $linkers; do
		what="$flags, $l"
		$cc -fuse-ld="$l" "${new[@]}" -o relinked 2>link.txt || {
			fail "$l: $(head -n 3 link.txt)"
			continue
		}
		[ "$(./relinked 300 2>&1)" = "$want" ] || fail "other output ($what)"
		case $all-$l in yes-* | *-lld) compared ./program ./relinked "$functions" "$breaks" ;; esac
		[ "$(complaints ./program)" = "$(complaints ./relinked)" ] ||
			fail "readelf ($what): $(complaints ./relinked | head -n 3)"
	done
	case $cc in clang*) ;; *) return ;; esac
	command -v llvm-dwarfdump >/dev/null || return
	[ "$(dwarfdump ./program)" = "$(dwarfdump ./relinked)" ] || fail "llvm-dwarfdump ($what): $(dwarfdump ./relinked | head)"
}

# same_code FILE NEW PROGRAM SEED: without debug information, the rewritten object has the same code
same_code() {
	objcopy --strip-debug "$1" stripped.o
	rm -f stripped.new.o
	command_ends 0 "rewrite stripped.o ($what)" "$optimize" stripped.o --program="$3" --lab=stress-layout="$4" -o stripped.new.o
	diff <(objdump -d "$2" | tail -n +3) <(objdump -d stripped.new.o | tail -n +3) >diff.txt ||
		fail "other code than without debug information ($what): $(head -n 4 diff.txt)"
}

all=yes
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for flags in "-gdwarf-5 -O2" "-gdwarf-4 -O2" "-gdwarf-5 -O2 -fno-pie -no-pie -ffunction-sections" "-gdwarf-3 -O1"; do
		what="$cc $flags"
		# shellcheck disable=SC2086
		$cc -w $flags -c "$here/hot.c" -o hot.o && $cc -w $flags -c "$here/other.c" -o other.o || continue
		# shellcheck disable=SC2086
		$cc -w $flags hot.o other.o -o program
		want=$(./program 300 2>&1)
		for seed in 1 2; do
			rewritten $seed program hot.o hot.new.o
			rewritten $seed program other.o other.new.o
		done
		same_code hot.o hot.new.o program 2
		case $flags in *no-pie*) cc_link="$cc -no-pie" ;; *) cc_link=$cc ;; esac
		flags="$cc $flags"
		linked "$cc_link" "dispatch other_step" hot.o other.o
		all=
		flags=${flags#* }
	done
done

for cc in g++ clang++; do
	command -v $cc >/dev/null || continue
	for flags in "-gdwarf-5" "-gdwarf-4 -ffunction-sections" "-gdwarf-5 -fdebug-types-section"; do
		what="$cc $flags"
		# shellcheck disable=SC2086
		$cc -w -std=c++14 -O2 $flags -c "$here/../optimize/exceptions.cc" -o cc.o && $cc cc.o -o program || continue
		want=$(./program 300 2>&1)
		rewritten 3 program cc.o cc.new.o
		flags="$cc $flags"
		linked "$cc" "deep thrower" cc.o
	done
done

# The sum of all objects, with one unit for each
what="ld -r"
gcc -g -O2 -c "$here/hot.c" -o hot.o
gcc -g -O2 -c "$here/other.c" -o other.o
ld -r hot.o other.o -o both.o
gcc both.o -o program
want=$(./program 300 2>&1)
rewritten 2 program both.o both.new.o
flags=$what
linked gcc "dispatch other_step" both.o

# Objects whose debug information is not understood are refused, with a plain reason.
gcc -g -gz -O2 -c "$here/hot.c" -o packed.o
command_ends 4 "compressed" "$optimize" packed.o --program=program --all -o x.o
says err.txt "debug_[a-z]* is compressed"
one_line "compressed"
(mkdir -p split && cd split && gcc -g -gsplit-dwarf -O2 -c "$here/hot.c" -o hot.o)
command_ends 4 "split" "$optimize" split/hot.o --program=program --all -o x.o
says err.txt "debug information is split"
[ ! -e x.o ] || fail "x.o was written"
finish
