#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: several readers of debug information at every instruction
# Debug information of copies: every instruction of moved code has the lines, functions and inlined
# calls of the original's instruction. Tested with several readers, DWARF versions, compilers and
# ways to store it. gdb stops in copies and shows variables.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
scratch debuginfo

order= # options for the order of blocks and functions; empty: the original order
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
	g5-split) # .dwo files cannot be changed: only lines cover the copies.
		"${words[@]}" -o $name "$src" || { fail "$name: does not compile"; continue; }
		command_ends 0 $name "$BUILD/morph-optimize" --all --json $name -o $name.opt
		json $name '.debug.units_extended == 1'
		[ "$(./$name 20)" = "$(./$name.opt 20)" ] || fail "$name: another output"
		continue
		;;
	esac
	order=
	[ $name = g5-shuffled ] && order=--lab=stress-layout=7
	build $name "${words[@]}" || { fail "$name: $(cat err.txt)"; continue; }
	readers $name $name.opt
	no_new_errors $name $name.opt
	[ $name = g3 ] || stops $name.opt $name
	[ "$(./$name 20)" = "$(./$name.opt 20)" ] || fail "$name: another output"
done

# Compressed sections stay compressed.
readelf -SW g5-gz.opt | grep ' \.debug_info ' | grep -q ' C ' || fail "g5-gz: not compressed now"

# gdb's index contains the copies, too.
if has gdb-add-index; then
	cp g5 g5-index
	gdb-add-index g5-index 2>/dev/null
	if readelf -SW g5-index | grep -q '\.gdb_index'; then
		command_ends 0 index "$BUILD/morph-optimize" --all g5-index -o g5-index.opt
		stops g5-index.opt index
	fi
fi

# Tools that move debug information to another file.
objcopy --only-keep-debug g5.opt g5.opt.debug || fail "objcopy --only-keep-debug"
strip -g -o g5.stripped g5.opt || fail "strip -g"
[ "$(./g5.stripped 20)" = "$(./g5 20)" ] || fail "strip -g: another output"
readelf -SW g5.stripped | grep -q '\.debug_' && fail "strip -g left debug information"
objcopy --add-gnu-debuglink=g5.opt.debug g5.stripped && stops g5.stripped "separate debug file"

# A distribution ships a stripped program and a file with its debug information. They are joined
# before the optimisation and separated afterwards.
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
