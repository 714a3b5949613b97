#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: several readers of debug information at every instruction
# Stripped programs with their debug information in a separate file: --debug-file makes such a file
# for the output. Debuggers find the file, and it describes the copies.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/e2e/debug/lib-readers.sh
. "$root/tests/e2e/debug/lib-readers.sh"
need objcopy strip readelf jq
scratch debug-file
optimize=$BUILD/morph-optimize

build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }

# ship NAME COMPILER FLAGS...: NAME.full as built, NAME stripped, NAME.debug beside it
ship() {
	local name=$1
	shift
	"$@" -Wl,--build-id -o "$name.full" "$src" 2>cc.err || return 1
	objcopy --only-keep-debug "$name.full" "$name.debug"
	strip --strip-unneeded -o "$name" "$name.full"
	objcopy --add-gnu-debuglink="$name.debug" "$name"
}

# rewrite NAME [OPTIONS]: NAME.opt with its NAME.opt.debug
rewrite() {
	local name=$1
	shift
	command_ends 0 "$name" "$optimize" --all --json "${@:---debug-file=auto}" "$name" -o "$name.opt"
	json "$name" '.debug.present and .debug.units_extended > 0 and .debug.units_left == 0 and
		.debug.scopes > 3 and .debug.scopes_left == 0 and .debug.output == "'"$name.opt.debug"'" and
		.debug.size_before > 0 and .debug.size_after > 0'
	[ -e "$name.opt" ] && [ -e "$name.opt.debug" ] || { fail "$name: $(cat err.txt)"; return 1; }
	[ "$(build_id "$name.opt")" = "$(build_id "$name.opt.debug")" ] ||
		fail "$name: program and debug file have two build-ids"
	[ "$(build_id "$name")" != "$(build_id "$name.opt")" ] || fail "$name: the original's build-id"
	readelf -p .gnu_debuglink "$name.opt" | grep -q " $name.opt.debug\$" ||
		fail "$name: no link to the debug file"
	[ ! -x "$name.opt.debug" ] || fail "$name: a debug file that can be executed"
	[ "$("./$name" 20)" = "$("./$name.opt" 20)" ] || fail "$name: another output"
	command_ends 0 "$name, verified again" "$optimize" verify "$name" \
		"${@:---debug-file=auto}" "$name.opt"
}

variants=(
	"g5 g++ -g -gdwarf-5 -O2"
	"g4 g++ -g -gdwarf-4 -O2 -fno-pie -no-pie"
	"g5-relocs g++ -g -O2 -Wl,--emit-relocs"
)
has clang++ && variants+=(
	"c5 clang++ -g -gdwarf-5 -O2"
	"c4 clang++ -g -gdwarf-4 -O2 -fno-pie -no-pie"
)
for v in "${variants[@]}"; do
	read -r name command <<<"$v"
	read -ra words <<<"$command"
	ship "$name" "${words[@]}" || { fail "$name: $(head -n 1 cc.err)"; continue; }
	rewrite "$name" || continue
	readers "$name" "$name.opt"
	no_new_errors "$name.debug" "$name.opt.debug"
	stops "$name.opt" "$name"
done

# Variants: compressed; stripped by other tools; without a debug link; another name and directory.
objcopy --compress-debug-sections g5.debug g5-gz.debug
cp g5 g5-gz
rewrite g5-gz --debug-file=g5-gz.debug && stops g5-gz.opt g5-gz
readelf -SW g5-gz.opt.debug 2>/dev/null | grep ' \.debug_info ' | grep -q ' C ' || fail "g5-gz: not compressed now"
if has eu-strip; then
	eu-strip -f g5-eu.debug -o g5-eu g5.full
	rewrite g5-eu && readers g5-eu g5-eu.opt 7 && stops g5-eu.opt g5-eu
	has eu-unstrip && { eu-unstrip -o whole g5-eu.opt g5-eu.opt.debug && stops whole "eu-unstrip"; }
fi
cp g5 g5-full
rewrite g5-full --debug-file=g5.full && stops g5-full.opt g5-full
[ "$(stat -c %s g5-full.opt.debug)" -lt "$(stat -c %s g5.full)" ] ||
	readelf -SW g5-full.opt.debug 2>/dev/null | grep ' \.text ' | grep -q NOBITS || fail "g5-full: code in it"
mkdir debug
command_ends 0 "elsewhere" "$optimize" --all --lab=stress-layout=3 g5 -o g5-far --debug-file=g5.debug \
	--debug-output=debug/g5-far.dbg
readelf -p .gnu_debuglink g5-far | grep -q ' g5-far.dbg$' || fail "the name of --debug-output"
command_ends 0 "elsewhere, verified" "$optimize" verify g5 --debug-file=g5.debug \
	--debug-output=debug/g5-far.dbg g5-far
mv debug/g5-far.dbg . && readers g5 g5-far 3

# Found by build-id alone, in the directory tree of distributions.
id=$(build_id g5.opt)
mkdir -p "global/.build-id/${id:0:2}" elsewhere
cp g5.opt.debug "global/.build-id/${id:0:2}/${id:2}.debug"
objcopy --remove-section .gnu_debuglink g5.opt elsewhere/g5.opt
timeout 600 gdb -q -nx -batch -ex 'set debuginfod enabled off' \
	-iex "set debug-file-directory $PWD/global" -ex "break scopes.cc:$line" -ex 'run 400' -ex bt \
	elsewhere/g5.opt >gdb.txt 2>&1
says gdb.txt "^#0 .*leaf (x=33[0-9]) at .*scopes.cc:$line" "by build-id"

# Two programs with a common file of debug information (dwz).
if has dwz; then
	for n in dz1 dz2; do ship $n g++ -g -gdwarf-4 -O2 "-DN=$n"; done
	dwz -m "$PWD/common.dwz" -M "$PWD/common.dwz" dz1.full dz2.full 2>dwz.err
	objcopy --only-keep-debug dz1.full dz1.debug
	strip --strip-unneeded -o dz1 dz1.full
	objcopy --add-gnu-debuglink=dz1.debug dz1
	if readelf -SW dz1.debug 2>/dev/null | grep -q '\.gnu_debugaltlink'; then
		rewrite dz1 && readers dz1 dz1.opt && stops dz1.opt dwz
		for f in dz1.debug dz1.opt.debug; do
			objcopy -O binary --only-section=.gnu_debugaltlink \
				--set-section-flags .gnu_debugaltlink=alloc $f $f.alt
		done
		cmp dz1.debug.alt dz1.opt.debug.alt || fail "dwz: another link to what is shared"
	else
		echo "note: dwz shared nothing: $(cat dwz.err)"
	fi
fi

# Units of an assembler, each with one narrow range.
cat >sum.S <<'S'
	.text
	.globl	sum
	.type	sum, @function
sum:	.cfi_startproc
	xorl	%eax, %eax
	testl	%edi, %edi
	jle	2f
1:	addl	%edi, %eax
	decl	%edi
	jne	1b
2:	ret
	.cfi_endproc
	.size	sum, . - sum
	.section .note.GNU-stack,"",@progbits
S
echo 'int sum(int); int main(int c, char **v) { (void)v; return sum(c) != 1; }' >main.c
gcc -g -Wl,--build-id -o sum.full main.c sum.S
objcopy --only-keep-debug sum.full sum.debug && strip -o sum sum.full
command_ends 0 "assembly" "$optimize" --all --lab=no-inline --json --debug-file=sum.debug sum -o sum.opt
json "assembly" '.debug.units_left == 0 and .debug.units_extended >= 2'
objcopy --add-gnu-debuglink=sum.debug sum
readers sum sum.opt
debugger sum.opt 'break sum' run bt
says gdb.txt '^#0 .*sum.*at sum.S:5' "assembly"

# The distribution's libc, if its debug file is installed.
libc=$(ldd g5 | awk '$1 == "libc.so.6" { print $3 }')
id=$(build_id "$libc")
if [ -e "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ] && has eu-addr2line; then
	# Code in place of a call has the caller's line and frame: all words are the original's without such code.
	command_ends 0 "libc" "$optimize" --all --lab=no-inline --json --debug-file=auto "$libc" -o libc.so.6
	json "libc" '.debug.units_left == 0 and .debug.units_extended > 500'
	"$moved" libc.so.6 499 >pairs.txt
	same eu-addr2line "$libc" libc.so.6 eu-addr2line -i -f
	[ "$(grep -c ':[1-9]' now.txt)" -gt 400 ] || fail "libc: lines of few copies only"
else
	echo "note: no debug file of $libc"
fi

# Killed at any moment: a new program is never without its debug file.
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || fail "kill_at does not compile"
if ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 ./kill-at 999999 true; then
	mkdir killed
	for ((n = 1; n < 200; n++)); do
		rm -rf killed/* killed/.morph.*
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 ./kill-at $n "$optimize" --all --report=none \
			--debug-file=auto g5 -o killed/g5 >/dev/null 2>err.txt
		rc=$?
		if [ -e killed/g5 ]; then
			"$optimize" verify g5 --debug-file=auto --report=none killed/g5 2>err.txt ||
				fail "killed at $n: $(cat err.txt)"
		fi
		[ $rc = 137 ] || break
	done
	[ $rc = 0 ] && [ -e killed/g5 ] && [ $n -gt 8 ] || fail "killed: $n moments, then $rc"
else
	left_out="$left_out being killed"
fi

# ---- refusals, which leave no file behind ----

refused() { # STATUS WHAT MESSAGE OPTIONS...
	local status=$1 what=$2 message=$3
	shift 3
	command_ends "$status" "$what" "$optimize" --all "$@"
	says err.txt "$message" "$what"
	[ ! -e no.opt ] && [ ! -e no.opt.debug ] || { fail "$what: a file appeared"; rm -f no.opt*; }
	[ -z "$(find . -name '.morph.*')" ] || fail "$what: a temporary file stays"
}
refused 4 "another program's" 'another build-id' g5 -o no.opt --debug-file=g4.debug
refused 4 "its own" 'carries its debug information itself' g5.full -o no.opt --debug-file=g5.debug
refused 4 "none" 'no debug information' g5 -o no.opt --debug-file=g5
refused 1 "absent" 'No such file' g5 -o no.opt --debug-file=absent
refused 1 "no directory" 'No such file' g5 -o no.opt --debug-file=g5.debug --debug-output=absent/x
refused 1 "the input's" "is the input g5.debug itself" g5 -o no.opt --debug-file=g5.debug \
	--debug-output=./g5.debug
refused 1 "the input" 'is the input g5 itself' g5 -o no.opt --debug-file=g5.debug --debug-output=./g5
for command in restore "instrument --kind=edges" "instrument --lab=kind=none"; do
	# shellcheck disable=SC2086
	command_ends 2 "$command" "$optimize" $command g5 --debug-file=auto
	says err.txt 'unrecognized option' "$command"
done
refused 2 "output twice" 'is the output itself' g5 -o no.opt --debug-file=auto --debug-output=no.opt
refused 2 "output alone" 'needs --debug-file' g5 -o no.opt --debug-output=x
command_ends 0 "dry run" "$optimize" --all -n --debug-file=auto g5
says out.txt 'g5.debug (nothing written)' "dry run"

# Without a debug file, auto is no error, but the report says so.
strip -o alone g5.full
command_ends 0 "none found" "$optimize" --all --debug-file=auto alone -o alone.opt
says out.txt 'no separate file was found' "none found"
[ ! -e alone.opt.debug ] || fail "none found, but written"
command_ends 0 "embedded" "$optimize" --all --debug-file=auto g5.full -o embedded.opt
[ ! -e embedded.opt.debug ] || fail "embedded, but written"

# Verification fails: with a damaged debug file, with the original's, and without --debug-file.
cp g5.opt.debug good
printf '\377' | dd of=g5.opt.debug bs=1 seek=3000 conv=notrunc 2>/dev/null
command_ends 4 "damaged" "$optimize" verify g5 --debug-file=auto g5.opt
cp g5.debug g5.opt.debug
command_ends 4 "the original's" "$optimize" verify g5 --debug-file=auto g5.opt
cp good g5.opt.debug
command_ends 4 "the link alone" "$optimize" verify g5 g5.opt
says err.txt 'gnu_debuglink' "the link alone"

finish
