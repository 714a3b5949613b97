#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: it writes objects
# Whatever stands in place of a file: no command waits, or damages an input or a device, or leaves
# something behind; one line names the file. The devices are those of a /dev of this test's own.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-files.sh"
need gcc objdump
if [ "${1:-}" != inside ]; then
	if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
		echo "skip: no mounts of its own without root"
		exit 77
	fi
	exec unshare -m "$BASH" "$0" inside
fi
scratch bad-files
mount --make-rprivate / && mkdir dev && mount -t tmpfs none dev || exit 1
mknod -m 666 dev/null c 1 3 && mknod -m 666 dev/zero c 1 5 && mknod -m 666 dev/full c 1 7 &&
	mknod -m 444 dev/urandom c 1 9 && ln -s /proc/self/fd dev/fd && mount --move dev /dev || exit 1
export PATH=$BUILD:$PATH TMPDIR=$dir/tmp LC_ALL=C
mkdir tmp folder
make_files
morph-optimize --report=none --db=s.db --program=prog -o fast.o prog.o &&
	morph-optimize instrument --report=none -o counting prog || exit 1
mkfifo fifo && ln -s nowhere dangling && ln -s loop loop && : >empty && truncate -s 5G holes || exit 1
ln prog hard && ln -s s.db soft && printf 'pair,a_ns\n' >some.csv

# All names, and what is in them. SQLite's -wal and -shm files come and go.
state() {
	find . -path ./tmp -prune -o ! -name out.txt ! -name err.txt ! -name '*-wal' ! -name '*-shm' \
		-printf '%p %y %s %l\n' | sort
	cksum prog prog.o fast fast.o s.db cg.out some.csv
	ls tmp
	stat -c '%n %F' /dev/null /dev/zero /dev/full
}
before=$(state)
# bad NAME COMMAND...: refused at once, with one line that has NAME
bad() {
	local name=$1 got=0
	shift
	timeout -k 1 30 "$@" >out.txt 2>err.txt </dev/null || got=$?
	case $got in
	1 | 2 | 3 | 4) ;;
	*) fail "$*: status $got: $(head -n 2 err.txt)" ;;
	esac
	grep -qF -e "$name" err.txt || fail "$*: $name is not named: $(head -n 2 err.txt)"
	# Usage errors tell where the help is; without a profile, advice follows.
	[ $got = 3 ] || [ "$(grep -vc '^Try \|^for more' err.txt)" = 1 ] || fail "$*: not one line: $(cat err.txt)"
	[ "$(state)" = "$before" ] || {
		fail "$*: $(diff <(echo "$before") <(state))"
		before=$(state)
	}
}

# ---- inputs: COMMAND with % in place of the file
audit="morph-audit --warmup=0 --pairs=2:2"
while read -r kinds command; do
	for name in ${kinds//,/ }; do
		# shellcheck disable=SC2086
		bad $name ${command//%/$name}
	done
done <<'LIST'
/dev/zero,fifo,holes,folder,loop,dangling morph-stats -d none.db import %
/dev/zero,fifo,holes morph-stats -d none.db import --format=perf %
fifo,folder,/dev/zero morph-stats -d none.db import --format=counters --binary=counting %
/dev/zero,fifo,holes,folder morph-optimize --db=s.db -o none --skip=@% prog
fifo,/dev/zero,folder,empty morph-optimize verify prog.o %
/dev/zero,fifo,holes,folder,empty morph-optimize adopt --break-links --backup-dir=none prog %
/dev/zero,fifo,folder,holes,empty morph-audit prog %
holes morph-optimize refine --db=s.db -o none % -- ./prog
fifo,/dev/zero,holes,folder,empty morph-audit --continue=% prog fast
fifo,folder morph-audit --stdin=% prog fast
/dev/null,/dev/zero,fifo,folder,prog,hard,./fast morph-audit --compare-file=% prog fast
fifo,/dev/zero,holes,folder,loop,empty morphd --input=% -d none.db
fifo,folder,loop,dangling morphd --config=%
fifo,folder,prog,loop morphd run -d % -- true
fifo,folder,prog,holes morph-stats -d % query
LIST

# ---- outputs: COMMAND with % in place of the file
while read -r kinds command; do
	for name in ${kinds//,/ }; do
		# shellcheck disable=SC2086
		bad $name ${command//%/$name}
	done
done <<'LIST'
prog,hard,s.db,soft,/dev/null,fifo,folder,dangling,none/x morph-optimize --report=none --db=s.db -o % prog
prog,prog.o,s.db,/dev/null,folder morph-optimize --report=none --db=s.db --program=prog -o % prog.o
prog,hard,s.db,soft,folder,none/x morph-optimize --report=none --db=s.db -o none --lab=list-patches=% prog
prog,hard,/dev/null,fifo,folder,dangling,none/x morph-optimize train -o % -- ./prog 5
prog,s.db,/dev/null,folder morph-optimize refine --db=s.db -o % prog -- ./prog 5
s.db,soft,folder,fifo,none/x morph -d s.db report -o %
s.db,soft,folder,none/x morphd run -d s.db --record=% -- true
LIST
ln -s prog prog.svg && ln s.db db.svg && mkfifo fifo.svg && ln prog prog.json && ln fast fast.csv && mkdir folder.csv && before=$(state)
for name in prog.svg db.svg fifo.svg none/x.svg; do
	bad $name morph-stats -d s.db heat -o $name prog
done
for name in prog.svg prog.json fast.csv folder.csv none/x.md; do
	bad $name morph-audit --export=$name prog fast
done

# ---- what is not bad: pipes of a shell, a list that names nothing, a filter that ends early
command_ends 0 "import from a pipe" morph-stats -d pipe.db import <(cat cg.out)
command_ends 3 "an empty --only" morph-optimize --db=s.db -o none --only=@empty prog
[ ! -e none ] || fail "an empty --only moved something"
# shellcheck disable=SC2086
command_ends 5 "a filter that ends early" $audit --filter='head -n 1' /usr/bin/seq /usr/bin/seq -- 200000
# One page is taken by the former export, and there is no second one.
mkdir small && mount -t tmpfs -o size=4k none small && cp some.csv small || exit 1
# shellcheck disable=SC2086
command_ends 1 "exports without room" $audit --export=small/some.csv prog fast
says err.txt "small/some.csv: No space left on device"
[ "$(cat small/some.csv)" = "pair,a_ns" ] || fail "an export without room replaced the former one"
[ "$(ls small)" = some.csv ] || fail "an export without room leaves $(ls small)"
umount small
# Messages go to a pipe, which has no limit.
for c in "morph-optimize --db=s.db -o none prog" "morph-stats -d s.db heat -o none.svg prog" \
	"morph-stats merge none.db s.db"; do
	bash -c "ulimit -f 1; exec $c" 2>&1 | cat >err.txt
	says err.txt "^${c%% *}: .*File too large" "a limit on files: $c"
	[ -z "$(find . -name 'none*' -o -name '*.tmp' -o -name '.morph*')" ] || fail "a limit on files: $c leaves $(find . -name 'none*')"
done
for p in "morph-stats -d" "morphd run -d" "morph -d"; do
	# shellcheck disable=SC2086
	command_ends 2 "$p ''" $p '' query
done

# Memory for a table of labels grows with its words and the operands that name it, not with their product.
awk 'BEGIN {
	print ".globl main\nmain: .cfi_startproc\nret\n.cfi_endproc\nf: .cfi_startproc"
	for (i = 0; i < 40000; i++) print "lea table(%rip), %rax"
	print "jmp *(%rax, %rdi, 8)\nlabel: ret\n.cfi_endproc\n.section .data.rel.ro, \"aw\"\ntable:"
	for (i = 0; i < 4096; i++) print ".quad label"
	print ".section .note.GNU-stack"
}' >labels.s
gcc labels.s -o labels || fail "gcc labels.s"
for c in "--all -o labels.out labels" "verify labels labels.out"; do
	bash -c "ulimit -d 1000000; exec morph-optimize $c" >out.txt 2>&1 || fail "many labels: $c: $(cat out.txt)"
done
finish
