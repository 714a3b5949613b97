#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A function whose address is in data is left alone if counts alone suggest calls through the pointer, and
# moves if the stacks of its samples show direct calls. Without stacks, nothing changes.
set -u
. "$(dirname "$0")/../lib.sh"
need gcc nm objdump
scratch arrivals

cat >p.c <<'EOF'
int work(int);
/* At 0 the entry, at 8 what falls through, at 12 where the branch goes. */
__asm__(".text\n.p2align 4\n.globl work\n.type work, @function\nwork: .cfi_startproc\n"
	"test $1, %edi\njne 1f\nlea 3(%rdi), %eax\nret\n"
	"1: lea 5(%rdi), %eax\nimul $3, %eax, %eax\nret\n"
	".cfi_endproc\n.size work, . - work\n");
int (*volatile pointer)(int) = work;
int main(int argc, char **argv)
{
	int sum = 0;

	(void)argv;
	for (int i = 0; i < 1000; i++)
		sum += work(2 * i + argc);
	return (sum + pointer(3)) & 1;
}
EOF
gcc -O2 -o p p.c || exit 1
work=$((0x$(nm p | awk '$3 == "work" { print $1 }')))
next=$(objdump -d --no-show-raw-insn p | awk '/call .*<work>/ { getline; sub(":", "", $1); print $1; exit }')
pointed=$(objdump -d --no-show-raw-insn p | awk '/call +\*%r/ && main { getline; sub(":", "", $1); print $1; exit }
	/<main>:/ { main = 1 }')
[ -n "$next" ] && [ -n "$pointed" ] || fail "no calls in the program"

# 600 samples of work(), all in the way of the taken branch, called from the return address $1.
samples() {
	echo "module $PWD/p"
	for offset in 0 6 12 15 18 0; do
		for _ in {1..100}; do
			printf 'sample 1 0 %x c:0:%s:7ffff000\n' $((work + offset)) "$1"
		done
	done
}
samples "$next" | "$BUILD/tools/contexts-store" direct.db || fail "direct.db"
samples "$pointed" | "$BUILD/tools/contexts-store" pointer.db || fail "pointer.db"

# Return: does a version by database $1 move work()?
moves() {
	"$BUILD/morph-optimize" --db="$1" --min-samples=1 --report=json -o "$1.out" p >"$1.json" 2>"$1.err"
	case $? in
	0) ./"$1.out" && ! grep -q 'jumps from its old address' "$1.json" ;;
	*) false ;;
	esac
}
./p || fail "the program fails"
moves direct.db || fail "direct calls: $(cat direct.db.err) $(grep why direct.db.json)"
moves pointer.db && fail "calls through the pointer: work() moved"
grep -q 'jumps from its old address' pointer.db.json pointer.db.err ||
	fail "calls through the pointer: $(cat pointer.db.err)"

# A damaged tree is no profile.
python3 - <<'EOF' || fail "the databases cannot be changed"
import shutil, sqlite3
for name, change in (("without.db", "DELETE FROM context"), ("damaged.db", "UPDATE context SET data = x'ff00ff'")):
    shutil.copy("direct.db", name)
    with sqlite3.connect(name) as db:
        db.execute(change)
EOF
moves without.db && fail "without stacks: work() moved"
grep -q 'jumps from its old address' without.db.json without.db.err || fail "without stacks: $(cat without.db.err)"
moves damaged.db && fail "a damaged tree was read"
[ "$(wc -l <damaged.db.err)" = 1 ] && grep -q damaged damaged.db.err || fail "a damaged tree: $(cat damaged.db.err)"

finish
