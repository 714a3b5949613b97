#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# What debug information says of copies: for every instruction of moved code, lines, functions and
# inlined calls are those of the original's instruction. Asked by several readers, over versions,
# compilers and ways to keep it; and gdb stops and looks there.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
need addr2line gcc g++ gdb
moved=$BUILD/tools/moved
[ -x "$moved" ] || { echo "skip: $moved is not built"; exit 77; }
src=$root/tests/data/scopes.cc
line=$(grep -n 'the breakpoint' "$src" | cut -d: -f1)
scratch debuginfo
export DEBUGINFOD_URLS=

has() { command -v "$1" >/dev/null 2>&1; }

# same READER IN OUT COMMAND...: it says the same of OUT's copies as of IN's instructions. Symbols
# tell parts of functions apart: foo.cold before, foo.morph.warm now. Code without debug information
# is guessed to come from the file whose symbols stand before.
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

# readers IN OUT [STEP]: all that there are
readers() {
	"$moved" "$2" "${3:-1}" >pairs.txt || { fail "$2: no copies"; return; }
	# Of some files in version 5 binutils 2.40 tells the wrong file, of the original too.
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

# What readelf objects to, in the original and in the output. That old lists are not used any more it
# calls a hole, and a warning.
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
	timeout 60 gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set width 0' "${args[@]}" \
		"$file" >gdb.txt 2>&1
}

# The range of .morph.text, as the program is loaded without randomisation.
in_copies() { # FILE PC
	local start size base=0
	read -r start size < <(readelf -SW "$1" | sed 's/\[ *[0-9]*\]//' |
		awk '$1 == ".morph.text" { print $3, $5 }')
	readelf -h "$1" | grep -q 'DYN' && base=$((0x555555554000))
	[ $(($2 - base)) -ge $((0x$start)) ] && [ $(($2 - base)) -lt $((0x$start + 0x$size)) ]
}

# A breakpoint on a line of an inlined call, hit in a copy, seen with its callers.
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
	# A value, where there is one, is the right one: x is i + 2, y is 3 x.
	if grep -q '^i = [0-9]' gdb.txt; then
		says gdb.txt '^i = 33[0-9]' "$2: variable of a copy"
	fi
	[ "$2" = g5-shuffled ] && return # the entry is not the first of the copy
	debugger "$1" 'break outer<int>' 'run 3' 'print/x $pc' finish
	pc=$(sed -n 's/^\$1 = //p' gdb.txt)
	[ -n "$pc" ] && in_copies "$1" "$pc" || fail "$2: break outer<int> stopped at '$pc'"
	says gdb.txt '^Value returned' "$2: finish"
}

order= # of blocks and functions: as they were
# build NAME COMPILER FLAGS...
build() {
	local name=$1
	shift
	"$@" -o "$name" "$src" 2>cc.err || { echo "note: $name: $(head -n 1 cc.err)"; return 1; }
	# shellcheck disable=SC2086 # no word, or one
	command_ends 0 "$name" "$BUILD/morph-optimize" --all $order --json "$name" -o "$name.opt"
	json "$name" '.debug.present and .debug.units_extended > 0 and .debug.units_left == 0 and
		.debug.scopes > 3 and .debug.scopes_left == 0'
	[ -e "$name.opt" ]
}

variants=(
	"g5 g++ -g -gdwarf-5 -O2 -Wl,--emit-relocs"
	"g4 g++ -g -gdwarf-4 -O2 -Wl,--emit-relocs -fno-pie -no-pie"
	"g5-O0 g++ -g -gdwarf-5 -O0"
	"g3 g++ -g -gdwarf-3 -gstrict-dwarf -O1 -Wl,--emit-relocs"
	"g5-gz g++ -g -gz=zlib -O2 -Wl,--emit-relocs"
	"g5-lto g++ -g -flto -O2 -Wl,--emit-relocs"
	"g5-sections g++ -g -O2 -ffunction-sections -Wl,--emit-relocs -Wl,--gc-sections"
	"g5-shuffled g++ -g -gdwarf-5 -O2"
	"g5-split g++ -g -gsplit-dwarf -O2 -Wl,--emit-relocs"
)
has clang++ && variants+=(
	"c5 clang++ -g -gdwarf-5 -O2 -Wl,--emit-relocs"
	"c4 clang++ -g -gdwarf-4 -O2 -Wl,--emit-relocs"
	"c5-O0 clang++ -g -gdwarf-5 -O0 -Wl,--emit-relocs"
	"c5-aranges clang++ -g -gdwarf-5 -gdwarf-aranges -O1 -ffunction-sections -Wl,--emit-relocs"
)
for v in "${variants[@]}"; do
	read -r name command <<<"$v"
	read -ra words <<<"$command"
	case $name in
	g5-split) # What is in .dwo files cannot change: lines only.
		"${words[@]}" -o $name "$src" || { fail "$name: does not compile"; continue; }
		command_ends 0 $name "$BUILD/morph-optimize" --all --json $name -o $name.opt
		json $name '.debug.units_extended == 1'
		[ "$(./$name 20)" = "$(./$name.opt 20)" ] || fail "$name: another output"
		continue
		;;
	esac
	order=
	[ $name = g5-shuffled ] && order=--stress-layout=7
	build $name "${words[@]}" || { fail "$name: $(cat err.txt)"; continue; }
	readers $name $name.opt
	no_new_errors $name $name.opt
	[ $name = g3 ] || stops $name.opt $name
	[ "$(./$name 20)" = "$(./$name.opt 20)" ] || fail "$name: another output"
done

# Compressed sections stay compressed.
readelf -SW g5-gz.opt | grep ' \.debug_info ' | grep -q ' C ' || fail "g5-gz: not compressed now"

# gdb's index knows the copies, too.
if has gdb-add-index; then
	cp g5 g5-index
	gdb-add-index g5-index 2>/dev/null
	if readelf -SW g5-index | grep -q '\.gdb_index'; then
		command_ends 0 index "$BUILD/morph-optimize" --all g5-index -o g5-index.opt
		stops g5-index.opt index
	fi
fi

# Tools that take debug information off and keep it elsewhere.
objcopy --only-keep-debug g5.opt g5.opt.debug || fail "objcopy --only-keep-debug"
strip -g -o g5.stripped g5.opt || fail "strip -g"
[ "$(./g5.stripped 20)" = "$(./g5 20)" ] || fail "strip -g: another output"
readelf -SW g5.stripped | grep -q '\.debug_' && fail "strip -g left debug information"
objcopy --add-gnu-debuglink=g5.opt.debug g5.stripped && stops g5.stripped "separate debug file"

# What a distribution ships: the program stripped, its debug information in a file of its own. Put
# together before, taken apart behind.
if has eu-unstrip; then
	objcopy --only-keep-debug g5 g5.debug
	strip --strip-unneeded -o g5.shipped g5
	eu-unstrip -o g5.whole g5.shipped g5.debug || fail "eu-unstrip"
	command_ends 0 "together" "$BUILD/morph-optimize" --all g5.whole -o g5.whole.opt
	objcopy --only-keep-debug g5.whole.opt g5.whole.opt.debug
	strip --strip-unneeded -o g5.again g5.whole.opt
	objcopy --add-gnu-debuglink=g5.whole.opt.debug g5.again
	stops g5.again "taken apart"
	objcopy --add-gnu-debuglink=g5.debug g5.shipped
	command_ends 0 "shipped" "$BUILD/morph-optimize" --all g5.shipped -o g5.shipped.opt
	says out.txt 'debug  *in a separate file' "a file without its debug information"
fi

finish
