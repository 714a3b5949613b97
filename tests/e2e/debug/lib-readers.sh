# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of debug information: each installed reader gets the same questions about
# original and output, and a debugger stops in a copy. Sourced after lib.sh.
need addr2line gcc g++ gdb
moved=$BUILD/tools/moved
[ -x "$moved" ] || { echo "skip: $moved is not built"; exit 77; }
src=$root/tests/data/scopes.cc
line=$(grep -n 'the breakpoint' "$src" | cut -d: -f1)
export DEBUGINFOD_URLS=

has() { command -v "$1" >/dev/null 2>&1; }

# same READER IN OUT COMMAND...: COMMAND prints the same for OUT's copies as for IN's instructions.
# Symbols name parts of functions: foo.cold in IN, foo.morph.warm in OUT. Readers guess the file of
# code without debug information from the symbols in front.
same() {
	local reader=$1 in=$2 out=$3 parts='s/ *(\?\.\(cold\|morph\.warm\)\b)\?//; s/^[^ ]*:0:0$/??:0:0/'
	shift 3
	cut -d' ' -f2 pairs.txt | sed 's/^/0x/' | "$@" -e "$in" 2>&1 | sed "$parts" >was.txt
	cut -d' ' -f1 pairs.txt | sed 's/^/0x/' | "$@" -e "$out" 2>&1 | sed "$parts" >now.txt
	cmp -s was.txt now.txt || {
		fail "$in: $reader: $(diff was.txt now.txt | grep -c '^>') lines of other words"
		diff was.txt now.txt | head -4
	}
}

# readers IN OUT [STEP]: ask all readers
readers() {
	"$moved" "$2" "${3:-1}" >pairs.txt || { fail "$2: no copies"; return; }
	# For some files in DWARF version 5, binutils 2.40 prints a wrong
	# file, also for the original.
	case $1 in
	g3 | g5-lto) cut -d' ' -f1 pairs.txt | addr2line -e "$2" >now.txt ;;
	*) same addr2line "$1" "$2" addr2line -i -f ;;
	esac
	if [ "$(grep -c ':[1-9]' now.txt)" -lt "$(wc -l <pairs.txt)" ]; then
		fail "$1: addr2line does not know the lines of all $(wc -l <pairs.txt) instructions"
	fi
	has eu-addr2line && same eu-addr2line "$1" "$2" eu-addr2line -i -f
	has llvm-symbolizer && same llvm-symbolizer "$1" "$2" llvm-symbolizer
}

# readelf's errors must be the same for original and output. It calls unused old lists a hole, which
# is only a warning.
no_new_errors() { # IN OUT
	local file
	for file in "$1" "$2"; do
		readelf --debug-dump "$file" 2>&1 >/dev/null | grep -i error >"$(basename "$file").err"
	done
	cmp -s "$(basename "$1").err" "$(basename "$2").err" ||
		fail "$1: $(diff "$(basename "$1").err" "$(basename "$2").err" | tail -n 3)"
}

debugger() { # FILE COMMAND...: to gdb.txt
	local file=$1 args=() cmd
	shift
	for cmd; do args+=(-ex "$cmd"); done
	timeout 600 gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set width 0' "${args[@]}" \
		"$file" >gdb.txt 2>&1
}

# Whether PC lies in .morph.text of the program when loaded without randomisation.
in_copies() { # FILE PC
	local start size base=0
	read -r start size < <(readelf -SW "$1" | sed 's/\[ *[0-9]*\]//' |
		awk '$1 == ".morph.text" { print $3, $5 }')
	readelf -h "$1" | grep -q 'DYN' && base=$((0x555555554000))
	[ $(($2 - base)) -ge $((0x$start)) ] && [ $(($2 - base)) -lt $((0x$start + 0x$size)) ]
}

# A breakpoint on a line of an inlined call stops in a copy, with the right callers.
stops() { # FILE WHAT
	local pc
	debugger "$1" "break scopes.cc:$line" 'run 400' 'print/x $pc' bt 'frame 2' 'info locals'
	pc=$(sed -n 's/^\$1 = //p' gdb.txt)
	[ -n "$pc" ] || { fail "$2: gdb meets no breakpoint: $(tail -n 3 gdb.txt)"; return; }
	in_copies "$1" "$pc" || fail "$2: gdb stopped at $pc, which is no copy"
	for frame in "^#0 .*leaf (x=33[0-9]) at .*scopes.cc:$line" '^#1 .*Sum<int>::add' \
		'^#2 .*outer<int> (n=' '^#3 .*main (argc='; do
		says gdb.txt "$frame" "$2: gdb's backtrace"
	done
	# If gdb prints a value, the value is right: x is i + 2, y is 3 x.
	if grep -q '^i = [0-9]' gdb.txt; then
		says gdb.txt '^i = 33[0-9]' "$2: variable of a copy"
	fi
	[ "$2" = g5-shuffled ] && return # the entry is not the copy's first block
	debugger "$1" 'break outer<int>' 'run 3' 'print/x $pc' finish
	pc=$(sed -n 's/^\$1 = //p' gdb.txt)
	[ -n "$pc" ] && in_copies "$1" "$pc" || fail "$2: break outer<int> stopped at '$pc'"
	says gdb.txt '^Value returned' "$2: finish"
}
