#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: large programs of the distribution, with real work
# The distribution's own programs and libraries as they are: stripped, linked without --emit-relocs.
# All movable code is moved and shuffled; real work gives the same output and status. An output
# still works after strip.
. "$(dirname "$0")/../lib.sh"
scratch stock
need gcc g++ jq strip sqlite3 readelf
export LC_ALL=C
unset LD_LIBRARY_PATH
nr_run=0 nr_files=0
mkdir in tool a b

# ---- inputs
awk 'BEGIN { for (i = 1; i <= 6000; i++) { x = (x * 69069 + 12345) % 2147483648
	printf "%d word%d %s\n", x, x % 977, substr("abcdefghijklmnopqrstuvwxyz", x % 20 + 1, 6) } }' >in/text
cat >in/prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { int key; char name[12]; double weight; };
static int order(const void *a, const void *b)
{
	return ((const struct item *)a)->key - ((const struct item *)b)->key;
}
int pick(int x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	default: return ~x;
	}
}
int main(int argc, char **argv)
{
	static struct item items[64];
	double sum = 0;

	for (int i = 0; i < 64; i++) {
		items[i].key = pick(i * 37 + argc);
		items[i].weight = i / 3.0;
		snprintf(items[i].name, sizeof(items[i].name), "n%d", i);
	}
	qsort(items, 64, sizeof(items[0]), order);
	for (int i = 0; i < 64; i++)
		sum += items[i].weight * (items[i].key > 3) + strlen(items[i].name);
	printf("%.3f %s\n", sum, argv[0] ? items[5].name : "");
	return 0;
}
END
gcc -O1 -g -c -o in/prog.o in/prog.c && gcc -S -O1 -o in/prog.s in/prog.c && gcc -O1 -g -o in/prog in/prog.c || exit 1
cat >in/work.sh <<'END'
declare -A count
fib() { local n=$1; if ((n < 2)); then echo "$n"; else echo $(($(fib $((n - 1))) + $(fib $((n - 2))))); fi; }
while read -r n word rest; do
	count[$word]=$((${count[$word]:-0} + n % 13))
	case $rest in *c*e*) rest=${rest//c/[C]} ;; a*) rest=${rest^^} ;; esac
	[[ $rest =~ ^([a-k]+)(.*)$ ]] && last=${BASH_REMATCH[2]}:${BASH_REMATCH[1]}
done < <(head -n 400 in/text)
for k in "${!count[@]}"; do printf '%s=%d\n' "$k" "${count[$k]}"; done | sort
fib 7; echo "$last"; printf '%q %5.2f %(%Y)T\n' "a b'c" 3.14159 0
trap 'echo bye' EXIT; (exit 3); echo $?; nosuchcommand 2>/dev/null; echo $?; exit 5
END
cat >in/work.py <<'END'
import re, json, zlib, collections, functools, itertools
@functools.lru_cache(None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
class Base:
    def __init__(self, v): self.v = v
    def __lt__(self, o): return self.v < o.v
def gen(n):
    for i in range(n):
        try:
            if i % 7 == 3: raise ValueError(i)
            yield i * i
        except ValueError as e:
            yield -e.args[0]
text = open('in/text').read()
c = collections.Counter(re.findall(r'word(\d+)', text))
print(c.most_common(5), fib(150), sum(gen(1000)), 2 ** 300 % 10007)
print(json.dumps(sorted(c.items())[:9]), zlib.crc32(text.encode()))
print([x.v for x in sorted(map(Base, itertools.islice(gen(60), 20)))], f"{1/3:.17g} {10**25:e}")
raise SystemExit(4)
END
cat >in/work.pl <<'END'
use strict; my (%n, @w);
open my $f, '<', 'in/text' or die;
while (<$f>) { chomp; my ($n, $w, $r) = split / /; $n{$w} += $n % 13; push @w, scalar reverse $r if $r =~ /^(?:a|b)(\w)\1?/; s/(\d)(\d)/$2$1/g; }
print map { "$_ $n{$_}\n" } sort { $n{$a} <=> $n{$b} || $a cmp $b } keys %n;
print join(',', sort @w), "\n"; my $s = sprintf "%.5f %s %x", 22 / 7, 'q' x 5, 48879; print "$s\n";
eval { die { code => 7 } }; print "caught $@->{code}\n"; local $_ = pack 'NnC', 1, 2, 3; print unpack('H*', $_), "\n"; exit 6;
END
cat >in/work.sql <<'END'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
 insert into t select i, 'w' || (i * 7919 % 1009), i / 3.0 from n;
create index tb on t(b);
select b, count(*), round(sum(c), 3), group_concat(a) from t group by b having count(*) > 2 order by 2 desc, 1 limit 40;
select sum(x.a * y.a) from t x join t y on x.b = y.b where x.a < y.a;
update t set c = c * 2 where b like 'w1%'; delete from t where a % 5 = 0;
select a, row_number() over (partition by b order by c) from t order by 1 limit 20;
select json_extract('{"a":[1,2,{"b":3}]}', '$.a[2].b'), printf('%08.3f', avg(c)), hex(zeroblob(3)) from t;
select no_such_column from t;
END
printf '%s\n' 'all: x y' 'x: y' '	@echo x $(words $(foreach i,$(L),$(i)$(i))) $(patsubst %a,%b,a ba ca)' \
	'y:' '	@echo y $(sort c b a) $(if $(filter a%,ab),yes)' 'L := $(shell seq 99)' >in/Makefile
cat >in/cxx.cc <<'END'
#include <fstream>
#include <iostream>
#include <iomanip>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
int main()
{
	std::ifstream in("in/text");
	std::map<std::string, long> sums;
	std::string word, rest;
	long n, caught = 0;

	while (in >> n >> word >> rest) {
		sums[word] += n % 13;
		try {
			if (n % 11 == 3)
				(void)word.at(100 + n % 7);
			if (n % 11 == 4)
				(void)std::stoi(rest);
		} catch (const std::out_of_range &) {
			caught++;
		} catch (const std::invalid_argument &e) {
			caught += e.what()[0];
		}
	}
	std::ostringstream out;
	out << std::setprecision(12) << std::scientific << caught / 7.0 << std::hex << ' ' << caught;
	for (auto &s : sums)
		out << s.first << '=' << std::setw(6) << s.second << '\n';
	std::cout << out.str();
	return 3;
}
END
g++ -O1 -o in/cxx in/cxx.cc || exit 1
(cd in && gcc -g -O0 -o debugged prog.c)

# moves FILE OUT SEED FLOOR: at least FLOOR percent of the file's functions move. Three are not
# counted, because they come from no compiler: _init, _fini, the PLT.
moves() {
	local moved in_file
	"$BUILD/morph-optimize" --lab=stress-layout="$3" --report=json "$1" -o "$2" >report 2>err.txt || {
		fail "$1: status $?: $(cat err.txt)"
		return 1
	}
	moved=$(jq .functions.moved report) in_file=$(jq .functions.in_file report)
	[ "$seen" = "$1" ] || echo "$1: $moved of $in_file functions"
	seen=$1
	[ $((moved * 100)) -ge $(((in_file - 3) * $4)) ] || fail "$1: only $moved of $in_file functions moved"
}
seen=

# works WORK OUT: write WORK's output and status to OUT
works() {
	timeout 120 bash -c "$1" >"$2" 2>"$2.err" </dev/null
	echo "status $?" >>"$2"
	sed 's/0x[0-9a-f]*//g' "$2.err" >>"$2"
}

same() { # WHAT
	nr_run=$((nr_run + 1))
	[ "$(wc -l <want)" -gt 1 ] || fail "$1: the original prints nothing"
	cmp -s want got || fail "$1: $(diff want got | head -n 4)"
}

# program FILE FLOOR WORK: in WORK, $P is the program under its own name
program() {
	local file=$1 name=${1##*/} seed
	[ -x "$file" ] && [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || return 0
	readelf -SW "$file" | grep -q '\.rela\.text' && return 0
	nr_files=$((nr_files + 1))
	cp "$file" "a/$name"
	P=$dir/a/$name works "$3" want
	for seed in 1 2; do
		rm -f "b/$name"
		moves "$file" "b/$name" $seed "$2" || continue
		# Run the second output after strip.
		[ $seed = 1 ] || strip "b/$name" || fail "$file: strip"
		P=$dir/b/$name works "${3//'$dir/a'/$dir/b}" got
		sed -i "s,$dir/b/,$dir/a/,g" got
		same "$file seed $seed"
	done
	rm -f "a/$name" "b/$name"
}

# library NAME FLOOR WORK: the loader's library NAME; LD_LIBRARY_PATH is set for WORK
library() {
	local file seed
	file=$(/sbin/ldconfig -p | awk -v n="$1" '$1 == n && /x86-64/ { print $NF; exit }')
	[ -n "$file" ] && [ -r "$file" ] || return 0
	file=$(readlink -f "$file")
	nr_files=$((nr_files + 1))
	works "$3" want
	for seed in 1 2; do
		rm -rf lib && mkdir lib
		moves "$file" "lib/$1" $seed "$2" || continue
		[ $seed = 1 ] || strip "lib/$1" || fail "$file: strip"
		works "export LD_LIBRARY_PATH=$dir/lib; $3" got
		same "$1 seed $seed"
		LD_LIBRARY_PATH=$dir/lib LD_TRACE_LOADED_OBJECTS=1 "$(readlink -f "$4")" 2>&1 |
			grep -q "$dir/lib/$1" || fail "$1: $4 does not use it"
	done
	rm -rf lib
}

# ---- programs
program /usr/bin/sort 90 '"$P" in/text; "$P" -k2,2V -k1,1nr in/text; "$P" -u -t" " -k3 in/text; "$P" --nonsense'
program /usr/bin/gzip 90 '"$P" -9nc in/text | cksum; "$P" -1nc in/text | "$P" -dc | cksum; "$P" -dc in/text'
program /usr/bin/xz 90 '"$P" -6ec -T1 in/text | cksum; "$P" -c in/text | "$P" -dc | cksum; "$P" -dc in/text'
program /usr/bin/bash 90 '"$P" in/work.sh'
program /usr/bin/perl 90 '"$P" in/work.pl'
program /usr/bin/python3.11 90 '"$P" -I in/work.py'
program /usr/bin/git 90 'rm -rf repo; "$P" init -q -b main repo; cd repo; cp ../in/text ../in/prog.c .; "$P" add .
	export GIT_AUTHOR_DATE=@1700000000\ +0000 GIT_COMMITTER_DATE=@1700000000\ +0000 HOME=/nonexistent
	i="-c user.name=n -c user.email=e@f"; "$P" $i commit -qm one; sed -i s/word1/other/ text; "$P" diff --stat
	"$P" $i commit -qam two; "$P" log -p --format="%H %an %s" | cksum; "$P" repack -qad; "$P" fsck --strict; "$P" show nothing
	"$P" blame -s text | cksum; "$P" checkout -q -b side HEAD~1; sed -i "1s/^/x/" prog.c; "$P" $i commit -qam three
	"$P" $i merge -q --no-edit main; "$P" rev-parse HEAD; "$P" ls-tree -r HEAD; "$P" archive HEAD | cksum'
program /usr/bin/mawk 90 '"$P" "{ n[\$2] += \$1 % 13; s = s substr(\$3, 2, 1) } END { for (k in n) t += n[k] * length(k); print t, length(s); gsub(/a+[bc]?/, \"<&>\", s); print substr(s, 1, 500), sin(1), index(s, \"fg\") }" in/text'
program /usr/bin/as 90 '"$P" -o as.o in/prog.s && cksum <as.o; "$P" in/text -o as.o | head -n 5'
program /usr/bin/ld 90 '"$P" -r -o ld.o in/prog.o in/prog.o -z muldefs && cksum <ld.o; "$P" -o ld.out in/prog.o -e main; "$P" --gc-sections -shared -o ld.so in/prog.o && cksum <ld.so'
program /usr/bin/objdump 90 '"$P" -dr in/prog.o; "$P" --dwarf=info,decodedline in/prog.o; "$P" -x in/text'
program /usr/bin/sqlite3 90 '"$P" :memory: <in/work.sql'
program /usr/bin/jq 90 '"$P" -cn "[range(500) | {a: ., b: (. * 7 % 13 | tostring)}] | group_by(.b) | map({(.[0].b): (map(.a) | add)}) | add, (\"a1b22\" | [scan(\"[0-9]+\")]), error(\"x\")"'
program /usr/bin/grep 90 '"$P" -nE "word(1|2)[0-9]+ [a-h]{3}" in/text; "$P" -cP "(\\d)\\1\\1" in/text; "$P" -vwFf in/work.sh in/text | cksum; "$P" "\\(" in/text; "$P" -o "word9.*" in/text'
program /usr/bin/openssl 90 '"$P" dgst -sha256 in/text; "$P" enc -aes-128-cbc -K 0011 -iv 00 -in in/text | cksum; "$P" dgst -md5 -hmac k in/text; "$P" prime 1000003; "$P" nonsense; "$P" asn1parse -genstr UTF8:abc'
program /usr/bin/tar 90 '"$P" --mtime=@0 --owner=0 --group=0 --sort=name -cf t.tar in/text in/prog.c in/work.sh && cksum <t.tar; "$P" -tvf t.tar --full-time; mkdir -p out; "$P" -C out -xf t.tar; diff -r in/text out/in/text; "$P" -xf in/text'
program /usr/bin/find 90 '"$P" in -type f -size +1k \( -name "*.c" -o -regex ".*/work.*" \) -printf "%p %s\n" | sort; "$P" in -newer in/text -maxdepth 0 -exec echo {} +; "$P" in -nonsense'
program /usr/bin/sed 90 '"$P" -E "s/([0-9])([a-z])?/\\2<\\1>/g; /word9/{h;d}; \${G;y/abc/xyz/}; 100q" in/text; "$P" -n "/a/,/b/{=;p}" in/text | cksum; "$P" "s/x"'
program /usr/bin/make 90 '"$P" -s -f in/Makefile; "$P" -n -f in/Makefile nothing; "$P" -pqf in/Makefile | grep -v "^#" | grep -c .'
program /usr/bin/gdb 90 '"$P" -nx -batch -ex "info functions pick" -ex "list main" -ex "ptype struct item" -ex "print sizeof(struct item) * 7 + 0x10" -ex "disassemble pick" in/debugged'
program "$(gcc -print-prog-name=cc1)" 90 '"$P" -quiet -O2 in/prog.c -o - ; "$P" -quiet -O1 -g0 -Wall in/work.sql -o -'

# ---- libraries
library libz.so.1 90 'python3.11 -I -c "import zlib
d = open(\"in/text\", \"rb\").read()
for l in 0, 1, 6, 9: c = zlib.compress(d, l); print(len(c), zlib.crc32(c), zlib.adler32(d), zlib.decompress(c) == d)"' /usr/bin/python3.11
library liblzma.so.5 90 'xz -6ec -T1 in/text | cksum; xz -c in/text | xz -dc | cksum; xz -dc in/text; xz --format=lzma -c in/text | cksum' /usr/bin/xz
library libsqlite3.so.0 90 'sqlite3 :memory: <in/work.sql' /usr/bin/sqlite3
library libstdc++.so.6 90 'gdb -nx -batch -ex "ptype struct item" -ex "info line main" in/debugged; ./in/cxx' in/cxx
library libc.so.6 70 'sort in/text | cksum; bash in/work.sh; perl in/work.pl; ./in/prog; awk "{ s += \$1 } END { printf \"%.3f\n\", s }" in/text' /bin/bash

# ---- a profile of samples
if "$BUILD/morphd" run --record probe -- true 2>err.txt; then
	if [ -x /usr/bin/perl ]; then
		cp /usr/bin/perl tool/perl
		sampled db tool/perl 1000 ./tool/perl -e \
			'my %h; for my $i (1 .. 1500000) { $h{$i % 977} .= "x" if $i =~ /7$/; } print scalar keys %h'
		"$BUILD/morph-optimize" --db db --min-samples=100 --report=json tool/perl -o b/perl >report 2>err.txt ||
			fail "perl, sampled: $(cat err.txt)"
		jq -e '.samples >= 100 and .samples_moved * 10 >= .samples * 5 and .functions.moved > 20' report >/dev/null ||
			fail "perl, sampled: $(head -c 600 report)"
		P=tool/perl works '"$P" in/work.pl' want
		P=b/perl works '"$P" in/work.pl' got
		same "perl, sampled"
	fi
else
	left_out=" a sampled profile ($(head -n 1 err.txt))"
fi

echo "$nr_files files, $nr_run runs, $nr_failed failures"
[ $nr_files -gt 0 ] || { echo "skip: no stock files here"; exit 77; }
finish
