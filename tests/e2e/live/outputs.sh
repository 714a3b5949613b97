#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs long where the machine is busy
# Outputs of --live-at: of every kind, for programs and libraries, at several addresses. They verify, run as files, and
# run when they are put into running originals, where only code and constant tables change. Counters count the same in
# both. verify refuses such outputs that break the rules for running processes; nothing takes one for an ordinary one.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-put.sh"
need gcc python3 readelf jq objcopy
scratch live-outputs
needs_lookup
build_put || exit 1
src=$root/tests/e2e/live
nr_run=0
optimize=$BUILD/morph-optimize

# same WHAT WANT COMMAND...: COMMAND prints what the file WANT has
same() {
	nr_run=$((nr_run + 1))
	command_ends 0 "$1" timeout 100 "${@:3}"
	cmp -s "$2" out.txt || { fail "$1: other output:"; diff "$2" out.txt | head -5 | sed 's/^/    /'; }
}

# ---- programs, of every kind
while read -r name flags; do
	# shellcheck disable=SC2086
	gcc -w $flags -DNR=4 -o "$name" "$src/work.c" || exit 1
	"./$name" >want.$name || exit 1
	for address in 0x8000000 0x12345000 0x70000000; do
		what="$name at $address"
		command_ends 0 "$what" "$optimize" --all --live-at=$address --report=json -o out "$name"
		json "$what" ".functions.moved > 5"
		command_ends 0 "$what: verify" "$optimize" verify --kind=live "$name" out
		# The segment has the alignment of the others.
		align=$(readelf -lW "$name" | awk '$1 == "LOAD" && $NF > most { most = $NF } END { print most }')
		segment=$(((address + align - 1) / align * align))
		readelf -lW out | grep -q "LOAD .* 0x0*$(printf %x $segment) " || fail "$what: the segment lies elsewhere"
		"$src/changes" "$name" out >changes.txt || fail "$what: $(cat changes.txt)"
		same "$what, as a file" want.$name ./out
		put_in "$name" out
		same "$what, put in" want.$name "${put[@]}" "./$name"
		same "$what, put in and out" want.$name "${put[@]}" PUT_TOGGLE_US=500 PUT_REPORT=report "./$name"
		read -r changes _ <report
		[ "$changes" -gt 1 ] || fail "$what: put in and out $changes times"

		for kind in edges,plain edges,atomic edges; do
			rm -f counts counters
			command_ends 0 "$what, $kind" "$optimize" instrument --kind=$kind --all --live-at=$address \
				--counts="$PWD/counts" --report=none -o out "$name"
			command_ends 0 "$what, $kind: verify" "$optimize" verify --kind=live+edges "$name" out
			"$src/changes" "$name" out >changes.txt || fail "$what, $kind: $(cat changes.txt)"
			same "$what, $kind, as a file" want.$name ./out
			put_in "$name" out
			same "$what, $kind, put in" want.$name "${put[@]}" PUT_COUNTERS=counters "./$name"
			"$src/changes" --counters counts counters >changes.txt || fail "$what, $kind: $(cat changes.txt)"
		done
	done
	# a meter of the first counter that counted
	vaddr=$(readelf -sW "$name" | awk '$8 == "kinds" { print "0x" $2; exit }')
	echo "$vaddr" >meter
	for how in "" --layout=original; do
		rm -f counts counters
		# shellcheck disable=SC2086
		command_ends 0 "$name: meter $how" "$optimize" instrument --kind=meter --meter=meter --all $how \
			--live-at=0x20000000 --counts="$PWD/counts" --report=none -o out "$name"
		command_ends 0 "$name: meter $how: verify" "$optimize" verify --kind=live+meter "$name" out
		same "$name: meter $how, as a file" want.$name ./out
		put_in "$name" out
		same "$name: meter $how, put in" want.$name "${put[@]}" PUT_COUNTERS=counters "./$name"
		"$src/changes" --counters counts counters >changes.txt || fail "$name: meter $how: $(cat changes.txt)"
	done
done <<'END'
pie -O2 -fPIE -pie
nopie -O2 -fno-pie -no-pie
relinkable -O2 -fno-pie -no-pie -Wl,--emit-relocs
relinkable-pie -O2 -fPIE -pie -Wl,--emit-relocs
large-pages -O2 -fno-pie -no-pie -Wl,-z,max-page-size=0x200000
END

# ---- libraries
gcc -w -O2 -fPIC -shared -DNR=4 -Dmain=work -o libwork.so "$src/work.c" &&
	echo 'int work(int, char **); int main(int c, char **v) { return work(c, v); }' |
	gcc -w -O1 -x c - -x none -L. -lwork -Wl,-rpath,"\$ORIGIN" -o library || exit 1
./library >want.library || exit 1
mkdir -p moved && cp library moved/
for address in 0x8000000 0x12345000 0x70000000; do
	"$optimize" --all --live-at=$address --report=none -o moved/libwork.so libwork.so || fail "libwork.so at $address"
	same "libwork.so at $address, as a file" want.library moved/library
done
# Above a library there is free memory, but perhaps not everywhere.
for address in 0x8000000 0x1000000 0x12345000; do
	"$optimize" --all --live-at=$address --report=none -o out libwork.so || fail "libwork.so at $address"
	put_in libwork.so out
	"${put[@]}" ./library >got 2>err.txt
	grep -q '^put: segment' err.txt && continue
	same "libwork.so at $address, put in" want.library "${put[@]}" ./library
done

# ---- refusals
command_ends 2 "no address" "$optimize" --all --live-at=0x12345 -o out pie
command_ends 2 "no number" "$optimize" --all --live-at=12x -o out pie
command_ends 2 "in place" "$optimize" --all --live-at=0x8000000 --in-place pie
for kind in pep pep,poll calls audit edges,threads; do
	command_ends 2 "$kind" "$optimize" instrument --kind=$kind --all --live-at=0x8000000 -o out pie
done
command_ends 4 "in the program" "$optimize" --all --live-at=0x1000 -o out pie
says err.txt "first free one"
command_ends 4 "too far" "$optimize" --all --live-at=0x7ff00000 -o out pie
says err.txt "reach"
for how in -static -static-pie; do
	gcc -w -O2 $how -DNR=4 -o static "$src/work.c" || exit 1
	command_ends 4 "$how" "$optimize" --all --live-at=0x20000000 -o out static
	says err.txt "statically linked"
done

# ---- a table whose words are not aligned stays: who writes it into a process goes by aligned words
cat >packed.c <<'C'
__attribute__((noinline)) static int pick(unsigned x)
{
	int r;

	__asm__ volatile("lea 9f(%%rip), %%rcx\n\tmov %k1, %%eax\n\tand $3, %%eax\n\t"
			 "movslq (%%rcx,%%rax,4), %%rax\n\tadd %%rcx, %%rax\n\tjmp *%%rax\n"
			 ".pushsection .rodata\n.balign 4\n.byte 1\n9: .long 1f-9b, 2f-9b, 3f-9b, 4f-9b\n.popsection\n"
			 "1: mov $11, %0\n\tjmp 5f\n2: mov $22, %0\n\tjmp 5f\n"
			 "3: mov $33, %0\n\tjmp 5f\n4: mov $44, %0\n5:"
			 : "=r"(r) : "r"(x) : "rax", "rcx", "cc");
	return r;
}
int main(int argc, char **argv) { (void)argv; return pick(argc) + pick(argc + 1) + pick(argc + 7); }
C
gcc -O1 -Wl,--emit-relocs -o packed packed.c || exit 1
command_ends 0 "a table that is not aligned" "$optimize" --all --live-at=0x20000000 --report=none -o packed.live packed
for file in packed packed.live; do
	objcopy -O binary -j .rodata $file $file.rodata
done
cmp packed.rodata packed.live.rodata || fail "a table that is not aligned has changed"
command_ends 66 "a table that is not aligned" ./packed.live

# ---- what breaks the rules
"$optimize" --all --live-at=0x20000000 --report=none -o live pie
command_ends 4 "adopt" "$optimize" adopt --backup-dir="$PWD/backup" pie live
"$optimize" --all --report=none -o ordinary pie
"$optimize" --all --live-at=0x20000000 --report=none -o live.so libwork.so
"$optimize" --all --report=none -o ordinary.so libwork.so
for how in mark return entry symbol; do
	files=(pie live ordinary)
	[ $how != symbol ] || files=(libwork.so live.so ordinary.so)
	"$src/changes" --break=$how "${files[@]}" broken >changes.txt || { fail "$how: $(cat changes.txt)"; continue; }
	command_ends 4 "breaks the rule: $how" "$optimize" verify "${files[0]}" broken
	case $how in
	mark) says err.txt "right above all others" ;;
	return) says err.txt "return into the middle of a patch" ;;
	entry) says err.txt "a patch over the first instruction of a function" ;;
	symbol) says err.txt "a dynamic symbol moved" ;;
	esac
done
echo "$nr_run runs, $nr_failed failures"
[ $nr_failed = 0 ] && [ $nr_run -ge 150 ]
