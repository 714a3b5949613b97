#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# timeout: 1800
# Walks over Morph's unwind rows beside exact stacks, in a program for each hard case and in Morph's own
# outputs: no frame is wrong. Walks are complete, or end early for the reason that the case has.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}" g++ qemu-x86_64 python3 readelf gzip
scratch walks
export BUILD PYTHONDONTWRITEBYTECODE=1
contexts=$root/scripts/bench/contexts
rows=$BUILD/tools/contexts-rows

# traced DIR PERIOD PROGRAM ARGS
traced() {
	local out=$1 period=$2
	shift 2
	command_ends 0 "$out runs" "$contexts" run -o "$out" --singlestep --stack=1048576 --period="$period" "$@"
}

# walked DIR CONDITION...: the counts of DIR satisfy Python's conditions; no frame is wrong
walked() {
	local out=$1
	shift
	command_ends 0 "$out has no wrong frame" "$rows" "$out"
	echo "$out: $(cat out.txt)"
	python3 - "$out" out.txt "$@" <<'END' || fail "$out: other walks than expected"
import collections, json, sys
row = json.load(open(sys.argv[2]))
row["short"] = short = collections.Counter(row["short"])
row["share"] = 100 * row["right"] / row["samples"]
# First calls of a library's functions run the resolver, whose frame only rbx leads to.
row["done"] = 100 * (row["right"] + short["register"]) / row["samples"]
for condition in sys.argv[3:]:
    if not eval(condition, row):
        sys.exit(f"{sys.argv[1]}: not {condition}: {row['samples']} samples, {row['right']} right, "
                 f"{row['by_rbp']} by rbp, {row['other']} other, {row['changed']} changed, {dict(short)}")
END
}

# ---- cases of tests/data/walks.c
bare="$cc -O2 -fPIC -shared -nostartfiles -fno-asynchronous-unwind-tables -fno-unwind-tables"
bare="$bare -Wl,--no-ld-generated-unwind-info -Wl,-soname,libwalks_bare.so"
for kind in omit no-omit; do
	mkdir -p $kind
	$bare -f$kind-frame-pointer -o $kind/libwalks_bare.so "$root/tests/data/walks_bare.c" || exit 1
	readelf -SW $kind/libwalks_bare.so | grep -q eh_frame && fail "the library has unwind tables"
done
$cc -O2 -o walks "$root/tests/data/walks.c" omit/libwalks_bare.so || exit 1
export LD_LIBRARY_PATH=$PWD/omit
for case in rbp callbacks jit_framed jit_unset jit_leaf jit_frameless jit_misused no_rows; do
	traced $case 150 ./walks $case
done
traced depth 3000 ./walks depth
LD_LIBRARY_PATH=$PWD/no-omit traced no_rows_framed 150 ./walks no_rows
unset LD_LIBRARY_PATH

walked rbp 'samples > 700' 'done > 99' 'by_rbp == 0'
walked callbacks 'samples > 800' 'done > 99'
walked depth 'samples > 90' 'frames > 60000' 'done > 98'
# By rbp where it is set; not in the first and last instructions.
walked jit_framed 'samples > 700' 'done > 95' 'by_rbp > 80' '0 < short["no-rows"] < 40'
walked no_rows_framed 'samples > 1000' 'by_rbp > 80' 'short["no-rows"] > 50'
# A return address of an earlier call lies in the frame, where that of a leaf would: nothing tells them apart.
walked jit_unset 'samples > 700' 'short["no-rows"] > 100' 'by_rbp < 40'
# A leaf without a frame of its own: its caller must not be skipped.
walked jit_leaf 'samples > 600' 'short["no-rows"] > 60' 'right > 500'
walked jit_frameless 'samples > 700' 'short["no-rows"] > 100' 'by_rbp == 0'
walked jit_misused 'samples > 700' 'short["no-rows"] > 100' 'by_rbp == 0'
walked no_rows 'samples > 1000' 'short["no-rows"] > 400' 'by_rbp == 0'

# ---- cases of tests/data/contexts.c
$cc -O2 -fno-optimize-sibling-calls -Wl,-z,lazy -o prog "$root/tests/data/contexts.c" -pthread || exit 1
${CXX:-g++} -O2 -Wl,-z,lazy -o throws "$root/tests/data/contexts.cc" || exit 1
for case in recursion jumps signals contexts hands threads library; do
	traced $case 150 ./prog $case
done
traced exceptions 300 ./throws

walked recursion 'samples > 500' 'done > 99'
walked threads 'samples > 500' 'done > 99'
walked jumps 'samples > 500' 'done > 99'
walked library 'samples > 500' 'done > 99' 'short["register"] > 5'
# What a handler on an alternate stack interrupted is not in the copy. memcpy() in sigsetjmp()'s rows stops.
walked signals 'samples > 500' 'done > 98' '0 < short["copy"] < 20'
# makecontext()'s start has no row. Walks stop where rsp is that of the other stack already, and no FDE says so.
walked contexts 'samples > 500' 'done > 94' '0 < short["no-row"]' '0 < short["rule"]'
walked hands 'samples > 500' 'done > 98'
walked exceptions 'samples > 4000' 'done > 99' 'changed < 40'
for case in recursion jumps signals threads library contexts hands; do
	walked $case 'other == 0' 'changed == 0'
done

# ---- Morph's outputs: copies, in a hostile order, with counters and with paths in a register
head -c 40000 "$root/Documentation/lab/results.md" >text
for kind in edges pep pep,poll; do
	counts=
	[ $kind = pep ] || counts=--counts=$PWD/counts.%p
	# shellcheck disable=SC2086 # none or one
	command_ends 0 "$kind" "$BUILD/morph-optimize" instrument --all --kind=$kind --report=none $counts \
		-o gzip.$kind /usr/bin/gzip
done
command_ends 0 "all" "$BUILD/morph-optimize" --all --report=none -o gzip.all /usr/bin/gzip
command_ends 0 "stress" "$BUILD/morph-optimize" --all --lab=stress-layout=7 --report=none -o gzip.stress /usr/bin/gzip
command_ends 0 "throws" "$BUILD/morph-optimize" --all --report=none -o throws.all throws
for kind in edges pep pep,poll all stress; do
	traced gzip-$kind 20000 ./gzip.$kind -c text
	gzip -cd <gzip-$kind/stdout | cmp - text || fail "gzip.$kind: another output"
	walked gzip-$kind 'samples > 300' 'share > 99' 'other == 0' 'changed == 0'
	# The samples are in moved code.
	python3 - gzip-$kind gzip.$kind <<'END' || fail "gzip.$kind: few samples in moved code"
import subprocess, sys
parts = []
for line in subprocess.run(["readelf", "-SW", sys.argv[2]], capture_output=True, text=True).stdout.splitlines():
    word = line.replace("[ ", "[").split()
    if len(word) > 7 and word[1].startswith(".morph") and "X" in word[7]:
        parts.append((int(word[3], 16), int(word[5], 16)))
program = next(line.split()[1] for line in open(sys.argv[1] + "/contexts")
               if line.startswith("object ") and line.rstrip().endswith(sys.argv[2]))
moved = 0
for line in open(sys.argv[1] + "/samples"):
    word = line.split(" ", 5)
    if word[0] == "s" and word[3] == program:
        moved += any(start <= int(word[4], 16) < start + size for start, size in parts)
if moved < 100:
    sys.exit(f"{moved} samples in {parts}")
END
done
traced throws-all 300 ./throws.all
walked throws-all 'samples > 4000' 'done > 99' 'changed < 40'

# ---- the comparison finds what is wrong: call sites that memory contradicts, and another stack pointer
mkdir -p false
sed 's/^\(site [0-9]* [0-9]*\) 0x\([0-9a-f]*\)/\1 0x1\2/' gzip-all/contexts >false/contexts
cp gzip-all/samples false/samples
command_ends 1 "other call sites" "$rows" false
python3 -c 'import json; r = json.load(open("out.txt")); assert r["changed"] > 0.9 * r["samples"], r' ||
	fail "other call sites: $(cat out.txt)"
cp gzip-all/contexts false/contexts
python3 - gzip-all/samples false/samples <<'END'
import sys
# The word above the stack pointer becomes that at the stack pointer, in the innermost frame and in no other.
with open(sys.argv[1]) as source, open(sys.argv[2], "w") as out:
    for line in source:
        word = line.split()
        if word[0] == "s" and len(word) > 22:
            word[13] = f"{int(word[13], 16) + 8:x}"
            word[22] = word[22][16:]
        print(*word, file=out)
END
"$rows" false >out.txt
python3 -c 'import json; r = json.load(open("out.txt")); assert r["right"] < 0.5 * r["samples"], r' ||
	fail "another stack pointer: $(cat out.txt)"
command_ends 1 "no run" "$rows" .
finish
