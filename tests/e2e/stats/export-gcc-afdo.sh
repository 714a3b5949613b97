#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gcc-afdo: gcc 12 reads the profile without a word, takes its counts, and the program stays the same. So do
# programs that gcc compiled with a profile. The format is binary: a terminal gets a message.
. "$(dirname "$0")/lib-compilers.sh"
need gcc g++ valgrind
case $(g++ -dumpversion) in
12*) ;;
*) echo "skip: the format is that of gcc 12"; exit 77 ;;
esac
flags="-O2 -no-pie"

for how in -gdwarf-5 -gdwarf-4 "-gdwarf-5 -gsplit-dwarf" "-g1"; do
	# shellcheck disable=SC2086
	g++ $flags $how "so urce/pgo.cc" -o prog || exit 1
	rm -f s.db* again.*
	counted prog s.db
	ends 0 "$how" out.afdo --db s.db export --format=gcc-afdo --binary=prog
	# shellcheck disable=SC2086
	g++ $flags -g -fauto-profile=out.afdo -fdump-ipa-inline-details=again.txt "so urce/pgo.cc" -o again 2>warnings.txt ||
		fail "$how: gcc: $(head -3 warnings.txt)"
	[ -s warnings.txt ] && fail "$how: gcc warns: $(head -3 warnings.txt)"
	[ "$(./again)" = "$(./prog)" ] || fail "$how: the program prints something else"
	# 20,000 rounds of work() call unrolled() 313 times and rare() 20 times; the unit is 1000.
	says again.txt ' _Z8unrolledPKi/[0-9]* (313000 (auto FDO)' "$how"
	says again.txt ' _ZL4rarel/[0-9]* (20000 (auto FDO)' "$how"
	says again.txt 'Indirect call(20000000 (auto FDO)' "$how"
done
rm -f s.db*
counted again s.db
ends 0 "compiled again" out.afdo --db s.db export --format=gcc-afdo --binary=again
# shellcheck disable=SC2086
g++ $flags -g -fauto-profile=out.afdo "so urce/pgo.cc" -o third 2>warnings.txt || fail "gcc: $(head -3 warnings.txt)"
[ "$(./third)" = "$(./prog)" ] || fail "compiled again: the program prints something else"
if command -v script >/dev/null; then
	script -qec "'$BUILD/morph-stats' --db s.db export --format=gcc-afdo" /dev/null >out.txt </dev/null
	[ $? = 2 ] || fail "to a terminal: $(head -c 200 out.txt)"
fi
finish
