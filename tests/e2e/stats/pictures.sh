#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-stats heat and flame: the pictures are well-formed and load nothing, their numbers equal
# query's, and those of an output are what its own run counts. Also hostile names, exit statuses, and no incomplete files.
. "$(dirname "$0")/../lib.sh"
scratch pictures
cc=${CC:-gcc}
need "${cc%% *}" valgrind python3 jq readelf

# ends STATUS WHAT ARGS: no message after success, one line after failure
ends() {
	command_ends "$1" "$2" "$BUILD/morph-stats" "${@:3}"
	if [ "$1" = 0 ]; then
		[ ! -s err.txt ] || fail "$2: says $(head -2 err.txt)"
	elif [ "$1" != 2 ]; then
		one_line "$2"
	fi
}

# The picture is well-formed. A browser would fetch nothing and run nothing,
# except for Morph's own script.
sound() {
	python3 - "$1" <<'PY' || fail "$1: unsound"
import re, sys
import xml.etree.ElementTree as ET
path = sys.argv[1]
data = open(path, "rb").read()
data.decode("utf-8")
root = ET.fromstring(data)
scripts = 0
for e in root.iter():
    tag = e.tag.split("}")[1]
    if tag == "script":
        scripts += 1
    if tag in ("image", "use", "foreignObject", "a", "iframe", "link", "object", "embed", "img"):
        raise SystemExit(f"{path}: <{tag}>")
    for name, value in e.attrib.items():
        name = name.split("}")[-1]
        if name.startswith("on") or name in ("href", "src"):
            raise SystemExit(f"{path}: {tag} {name}")
        for url in re.findall(r"url\(([^)]*)\)", value):
            if not url.startswith("#"):
                raise SystemExit(f"{path}: {url}")
if scripts != 1:
    raise SystemExit(f"{path}: {scripts} scripts")
for what in re.findall(rb"https?://[^\"' <>)]*", data):
    if what not in (b"http://www.w3.org/2000/svg", b"http://www.w3.org/1999/xhtml"):
        raise SystemExit(f"{path}: {what}")
if b"@import" in data or b"<!ENTITY" in data:
    raise SystemExit(f"{path}: refers to more")
if len(data) > 1000000:
    raise SystemExit(f"{path}: {len(data)} bytes")
# No two texts overlap, where horizontal texts are measured with a narrow font.
texts = []
for e in root.iter():
    if e.tag.endswith("}text") and "transform" not in e.attrib and e.text:
        size = float(e.attrib["font-size"])
        width = 0.45 * size * len(e.text)
        x, y = float(e.attrib["x"]), float(e.attrib["y"])
        how = e.attrib.get("class", "").split()
        x -= width if "e" in how else width / 2 if "m" in how else 0
        texts.append((x, y, width, size, e.text))
for i, a in enumerate(texts):
    for b in texts[:i]:
        if abs(a[1] - b[1]) < 0.6 * min(a[3], b[3]) and a[0] < b[0] + b[2] and b[0] < a[0] + a[2]:
            raise SystemExit(f"{path}: {a[4]!r} over {b[4]!r}")
    if a[0] < 0 or a[0] + a[2] > 1600:
        raise SystemExit(f"{path}: {a[4]!r} sticks out")
PY
}

cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) long quiet(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += i % 7 ? (i * 7) % 13 : i;
	return s;
}
__attribute__((noinline)) long evil(long n) __asm__("<script>alert(1)</script>&\"'\001\002\377\342\200\256");
__attribute__((noinline)) long evil(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += i % 3 ? (i * 5) % 11 : -i;
	return s;
}
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2000;
	long s = 0;

	for (int i = 0; i < 20; i++)
		s += evil(n) + quiet(n / 2);
	printf("%ld\n", s);
	return 0;
}
C
# An assembler may refuse such a name. Then compile another name, and replace it in the file.
# shellcheck disable=SC2086
$cc -O2 -Wl,--build-id,--emit-relocs prog.c -o prog 2>cc.txt || {
	sed -i 's/__asm__(.*);/__asm__("EVILNAME_0123456789_EVILNAME_0123456789");/' prog.c
	$cc -O2 -Wl,--build-id,--emit-relocs prog.c -o prog || exit 1
	python3 - <<'PY'
data = open("prog", "rb").read()
old = b"EVILNAME_0123456789_EVILNAME_0123456789"
evil = b"<script>alert(1)</script>&\"'\x01\x02\xff\xe2\x80\xae"
assert old in data and len(evil) <= len(old)
open("prog", "wb").write(data.replace(old, evil + b"\0" * (len(old) - len(evil))))
PY
}
chmod +x prog
valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg.out ./prog >/dev/null 2>&1 ||
	{ echo "skip: valgrind does not run here"; exit 77; }

# ---- usage, no profile
ends 2 "heat of nothing" heat
ends 2 "heat of two" heat prog prog
ends 2 "heat to a .png" heat prog -o x.png
ends 2 "heat since never" heat prog --since=never
ends 2 "flame of something" flame prog
ends 2 "flame to a .html" flame -o x.html
ends 3 "heat without a database" --db none.db heat prog
ends 3 "flame without a database" --db none.db flame
"$BUILD/morph-stats" --db p.db import cg.out >/dev/null || fail "import"
ends 3 "heat of what never ran" --db p.db heat /bin/true
ends 1 "heat of no program" --db p.db heat prog.c
ends 1 "heat of no file" --db p.db heat nothing
ends 1 "after: no output" --db p.db heat prog --after prog
says err.txt 'was not written by morph-optimize' "after: no output"
ends 3 "flame of no module" --db p.db flame -m nothing

# ---- before
ends 0 "heat" --db p.db heat prog -o before.svg
[ ! -s out.txt ] || fail "heat -o prints"
sound before.svg
ends 0 "heat to standard output" --db p.db heat prog
cmp -s out.txt before.svg || fail "standard output is not what -o writes"
ends 0 "heat --json" --db p.db heat prog --json
cp out.txt heat.json
grep -q '<script>alert' before.svg && fail "a name became markup"
grep -q '&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;' before.svg || fail "a name was lost"

# ---- the numbers equal query's
"$BUILD/morph-stats" --db p.db query --binary=prog --json >query.json || fail "query"
same=$(jq -n --slurpfile h heat.json --slurpfile q query.json '
	($q[0].rows | map({key: (.address // "none"), value: .samples}) | from_entries) as $rows |
	($h[0].samples == ($q[0].rows | map(.samples) | add)) and
	($h[0].functions | map(select(.address)) | all(.samples == ($rows[.address] // 0))) and
	(($h[0].functions | map(.share) | add) as $s | $s > 0.999999 and $s < 1.000001)')
[ "$same" = true ] || fail "heat's samples are not query's"
jq -e '.schema == 1 and .command == "heat" and (.before | .lines.p90 <= .lines.p99 and
	.lines.p99 <= .lines.all and .pages.all <= .lines.all and .taken_per_1000 > 0) and
	(has("after") | not)' heat.json >/dev/null || fail "heat.json: $(head -c 600 heat.json)"
# The picture has the same number.
grep -q ">Now: 99 % of what was executed lies in $(jq .before.pages.p99 heat.json) page" before.svg ||
	fail "the picture's pages are not --json's"

# ---- after
"$BUILD/morph-optimize" --db p.db --exact-profile -o prog.morph prog >opt.txt 2>&1 || {
	fail "morph-optimize: $(tail -1 opt.txt)"
}
if [ -e prog.morph ]; then
	ends 0 "heat --after" --db p.db heat prog --after prog.morph -o after.svg
	sound after.svg
	ends 0 "heat to .html" --db p.db heat prog --after=prog.morph -o after.html
	sound after.html
	grep -q '^<!DOCTYPE html>' after.html || fail "after.html is no HTML"
	ends 0 "heat --after --json" --db p.db heat prog --after prog.morph --json
	jq -e '.before.functions == .after.functions and .after.lines.all > 0 and
		.predicted_taken_ratio > 0 and .predicted_taken_ratio <= 1' out.txt >/dev/null ||
		fail "--after --json: $(head -c 900 out.txt)"
	ends 0 "--json with -o" --db p.db heat prog --after prog.morph --json -o both.svg
	cmp -s both.svg after.svg || fail "--json changes the picture"
	# The original is found beside its output, and nowhere else.
	ends 0 "an output beside its original" --db p.db heat prog.morph -o beside.svg
	sound beside.svg
	mkdir apart && cp prog.morph apart/
	ends 1 "an output apart from its original" --db p.db heat apart/prog.morph
	says err.txt 'name its original' "an output apart from its original"
	sed 's/quiet(n \/ 2)/quiet(n \/ 4)/' prog.c >other.c
	$cc -O1 -Wl,--build-id other.c -o other 2>/dev/null || $cc -O1 -Wl,--build-id -xc - -o other \
		<<<'int main(void) { return 0; }'
	ends 1 "after: of another program" --db p.db heat other --after prog.morph
	# A damaged file: a message, no crash, no picture.
	for at in 10 40 70 90; do
		size=$(stat -c %s prog.morph)
		head -c $((size * at / 100)) prog.morph >cut.morph
		rm -f cut.svg
		ends 1 "cut at $at %" --db p.db heat prog --after cut.morph -o cut.svg
		[ ! -e cut.svg ] || fail "cut at $at %: a picture all the same"
	done
fi

# ---- after, where calls go through slots and small functions stand in place of calls. Counts of the output's
# own run say what is right.
cat >calls.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define LEAF __attribute__((noinline, noclone, noipa))
static int table[64];
LEAF static int add(int a, int b) { return a + b; }
LEAF static int pick(int n)
{
	if (n % 5 == 0)
		return 7;
	if (n & 1)
		return table[n & 63];
	return n * 3;
}
LEAF static void note(int n)
{
	if (n % 3)
		table[n & 63] += n;
}
LEAF static void nothing(void) {}
LEAF static int looped(int n)
{
	int s = 0;
	for (int i = 0; i < n % 7; i++)
		s += add(pick(i + n), i);
	return s;
}
LEAF static int work(int n)
{
	char text[32];
	int s = 0;
	for (int i = 0; i < n; i++) {
		text[i % 20] = 'x';
		text[i % 20 + 1] = 0;
		s += (int)strlen(text);
		note(s);
		if (i % 4 == 0)
			s = add(s, pick(i));
		else
			nothing();
		s ^= looped(s & 0xff);
		s += abs(strcmp(text, "xxx"));
	}
	return s;
}
int main(int argc, char **argv)
{
	int s = 0;
	for (int i = 0; i < 3; i++)
		s ^= work(argc > 1 ? atoi(argv[1]) : 1000 + i);
	printf("%d\n", s);
	return 0;
}
C

# counted FILE: executed instructions and taken branches of FILE's own code in cg.FILE
counted() {
	valgrind -q --tool=callgrind --skip-plt=no --dump-instr=yes --collect-jumps=yes \
		--callgrind-out-file="cg.$1" "./$1" \
		>/dev/null 2>&1 || fail "callgrind of $1"
	python3 - "$1" <<'PY'
import re, subprocess, sys
# Callgrind knows no file for an output's copies. Nothing but the program lies that low. Stubs of the PLT have no
# file either, so they have no counts.
LOW, BASES = 0x4000000, (0, 0x108000)
sections = subprocess.run(["readelf", "-SW", sys.argv[1]], capture_output=True, text=True).stdout
stubs = [(int(at, 16), int(size, 16)) for at, size in
         re.findall(r" \.plt\S*\s+PROGBITS\s+(\w+) \w+ (\w+)", sections)]
names, unknown, ours, low, insns, taken, skip = {}, False, False, False, 0, 0, False
for line in open("cg." + sys.argv[1]):
    m = re.match(r"(c?)ob=(\(\d+\))(?: (.*))?$", line)
    if m:
        if m[3]:
            names[m[2]] = m[3]
        if not m[1]:
            ours = names.get(m[2], "").endswith("/" + sys.argv[1])
            unknown = names.get(m[2]) == "???"
    elif line.startswith("calls="):
        skip = True
    elif re.match(r"(jump|jcnd)=", line):
        taken += (ours or unknown and low) * int(re.match(r"\w+=(\d+)", line)[1])
    elif re.match(r"[0-9+*-]", line):
        cost = line.split()
        if cost[0].startswith("0x"):
            at = int(cost[0], 16)
            low = at < LOW and not any(0 <= at - base - start < size for base in BASES for start, size in stubs)
        if not skip and len(cost) > 2:
            insns += (ours or unknown and low) * int(cost[2])
        skip = False
print(insns, taken)
PY
}

# drawn SIDE: the same figures in out.txt
drawn() { jq -r ".before.executed as \$all | .$1 | \"\(.executed) \(.taken_per_1000 * \$all / 1000)\"" out.txt; }

# near WHAT A B SHARE: each figure of A and B differs by this share at most
near() {
	python3 - "$2" "$3" "$4" <<'PY' || fail "$1: $2, not $3"
import sys
a, b = ([float(x) for x in s.split()] for s in sys.argv[1:3])
sys.exit(any(abs(x - y) > float(sys.argv[3]) * y for x, y in zip(a, b, strict=True)))
PY
}

for flags in "-fPIE -pie" "-fno-pie -no-pie -fcf-protection -Wl,-z,lazy"; do
	# shellcheck disable=SC2086
	$cc -O2 -fno-builtin $flags -Wl,--build-id calls.c -o calls || fail "calls $flags"
	rm -f c.db
	before=$(counted calls)
	"$BUILD/morph-stats" --db c.db import cg.calls >/dev/null || fail "import $flags"
	for layout in no-slots,no-inline no-inline no-slots functions=auto; do
		"$BUILD/morph-optimize" --db c.db --exact-profile --lab="$layout" --report=json -o calls.out calls \
			>opt.json 2>err.txt || fail "calls $flags $layout: $(tail -1 err.txt)"
		after=$(counted calls.out)
		ends 0 "heat of $layout" --db c.db heat calls --after calls.out --json -o calls.svg
		sound calls.svg
		# Jumps that were left out still count as executed.
		near "calls $flags, before" "$(drawn before)" "$before" 0.001
		near "calls $flags, $layout" "$(drawn after)" "$after" 0.006
		[[ $layout == *no-inline* ]] || [ "$(jq .code.inlined opt.json)" -ge 2 ] ||
			fail "$layout: no function in place of calls"
		[[ $layout == *no-slots* ]] || [ "$(jq .code.via_slot opt.json)" -ge 2 ] ||
			fail "$layout: no call through a slot"
	done
done

# ---- no incomplete files
echo old >keep.svg
ends 1 "into a directory that is not there" --db p.db heat prog -o no/such/x.svg
if [ -e /dev/full ]; then
	got=0
	"$BUILD/morph-stats" --db p.db heat prog >/dev/full 2>err.txt || got=$?
	[ $got = 1 ] || fail "a full disk: status $got"
	got=0
	"$BUILD/morph-stats" --db p.db flame >/dev/full 2>err.txt || got=$?
	[ $got = 1 ] || fail "flame, a full disk: status $got"
fi
mkdir dir.svg
ends 1 "onto a directory" --db p.db heat prog -o dir.svg
ends 0 "over an old file" --db p.db heat prog -o keep.svg
cmp -s keep.svg before.svg || fail "the old file is still there"
[ -z "$(find . -name '*.tmp')" ] || fail "left behind: $(find . -name '*.tmp')"

# ---- flame
ends 0 "flame" --db p.db flame -o flame.svg
sound flame.svg
grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' flame.svg || fail "flame: a name was lost"
ends 0 "flame --json" --db p.db flame --json
cp out.txt flame.json
"$BUILD/morph-stats" --db p.db query --json >modules.json || fail "query"
jq -n --slurpfile f flame.json --slurpfile q modules.json '
	def sums: if has("children") then (.children | map(.samples) | add) == .samples and
		(.children | all(sums)) else true end;
	($f[0].tree.samples == $f[0].total_samples) and ($f[0].total_samples == $q[0].total_samples)
	and ($f[0].tree | sums) and
	(($f[0].tree.children | map(.samples)) == ($q[0].rows | map(.samples)))' | grep -q true ||
	fail "flame's samples are not query's"
ends 0 "flame of one module" --db p.db flame --binary=prog --json
[ "$(jq '.tree.samples' out.txt)" = "$(jq '[.rows[].samples] | add' query.json)" ] ||
	fail "flame of one module: not query's samples"
ends 0 "flame of one module, drawn" --db p.db flame --binary=prog -o one.svg
sound one.svg
# The boxes below a parent add up to the parent's samples and percentage, as drawn.
python3 - flame.svg one.svg <<'PY' || fail "the boxes do not add up"
import re, sys
import xml.etree.ElementTree as ET
ns = "{http://www.w3.org/2000/svg}"
for path in sys.argv[1:]:
    boxes = []
    for g in ET.parse(path).getroot().iter(ns + "g"):
        lines = g.find(ns + "title").text.split("\n")
        samples, tenths = re.match(r"([\d,]+) samples, ([\d.]+) %", lines[1]).groups()
        boxes.append((float(g.attrib["data-d"]), float(g.attrib["data-x"]),
                      float(g.attrib["data-w"]), int(samples.replace(",", "")),
                      round(10 * float(tenths)), lines[0]))
    if len(boxes) < 5 or boxes[0][4] != 1000:
        raise SystemExit(f"{path}: {boxes[:2]}")
    for d, x, w, samples, tenths, name in boxes:
        below = [b for b in boxes if b[0] == d + 1 and x - .02 <= b[1] and b[1] + b[2] <= x + w + .02]
        if below and (sum(b[3] for b in below) != samples or sum(b[4] for b in below) != tenths):
            raise SystemExit(f"{path}: below {name}: {below}")
PY

[ $nr_failed = 0 ] || exit 1
echo "pictures are sound"
