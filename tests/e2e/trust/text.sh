#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: each hostile text in each output of each program
# Whatever stands in stores, files, symbols, processes, policies and recordings: no program prints what controls a
# terminal or the direction of writing, or is no text. Output in JSON stays JSON.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../manager/lib-manager.sh"
need gcc jq objdump objcopy nm readelf sqlite3 iconv
manager_scratch trust-text

# Escape sequences, by ESC and by C1 as UTF-8 and as a byte; BEL, DEL, a carriage return, a backspace; two ways to
# change the direction; no UTF-8
hostile=$'\e]0;owned\a\e[2J\xc2\x9b31m\x9b31m\r\b\x7f\xe2\x80\xae\xe2\x81\xa6\xff\xc0\xaf'
bad='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c|\xef\xbb\xbf'
nr_runs=0 nr_seen=0

# harmless WHAT COMMAND...: run it, and look at what it prints; any exit status but one of a signal
harmless() {
	local what=$1 status
	shift
	timeout 600 "$@" >said.txt 2>said.err </dev/null
	status=$?
	nr_runs=$((nr_runs + 1))
	[ $status -lt 124 ] || [ $status = 127 ] || fail "$what: $*: status $status"
	for out in said.txt said.err; do
		! LC_ALL=C grep -q -a -P "$bad" $out || {
			fail "$what: ${*##*/}: control characters: $(LC_ALL=C grep -a -P "$bad" $out | head -n 2 | cut -c1-300 | cat -v)"
		}
		iconv -f UTF-8 -t UTF-8 $out >/dev/null 2>&1 || fail "$what: ${*##*/}: not UTF-8"
	done
	case " $* " in *" --json "*) [ $status != 0 ] || jq . said.txt >/dev/null 2>&1 || fail "$what: ${*##*/}: not JSON" ;; esac
	! grep -q 'owned' said.txt said.err || nr_seen=$((nr_seen + 1))
}

# ---- the store: each text of each table in turn
speed 120
rule "mode = adopt" "$(by_speed)"
work 0 "a round" --now
db "INSERT INTO process VALUES('name', 'unit.service', 0, 20000, 20000, 5)"
db "INSERT INTO output SELECT build_id, text_hash, build_id, text_hash, 0 FROM module LIMIT 1"
cp db kept.db
stats=$BUILD/morph-stats
all_commands() {
	for command in '' list 'history' 'report' "explain $dir/prog" "undo $dir/none" 'top --once' 'watch list'; do
		# shellcheck disable=SC2086
		harmless "$1" "$BUILD/morph" --db=db $command
	done
	harmless "$1" "$BUILD/morph" --db=db --json list
	for command in status 'status --json' 'query --by=module' 'query --by=function' 'query --by=block' 'query --by=path' \
		'query --by=copy' 'query --by=context' 'query --by=module --json' 'query --by=function --json' 'annotate hot' \
		'annotate hot --json' calls activity audit trials 'trials --json' 'diff db kept.db' heat flame \
		'export --format=json' remember; do
		# shellcheck disable=SC2086
		harmless "$1" "$stats" $command --db=db
	done
	harmless "$1" "$worker" --config=etc --db=db --state-dir=state --backup-dir=backup
	harmless "$1" "$BUILD/morph-optimize" --db=db -n prog
}
while IFS='|' read -r table column; do
	# A column at a time: most values must be what they are, or the store is damaged.
	cp kept.db db
	sqlite3 db "UPDATE $table SET $column = $column || cast(x'$(printf %s "$hostile" | od -An -tx1 | tr -d ' \n')' AS TEXT)" \
		2>/dev/null || continue
	all_commands "$table.$column"
done < <(sqlite3 kept.db "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p
	WHERE m.type = 'table' AND p.type = 'TEXT' AND m.name NOT LIKE 'sqlite_%'")
[ $nr_seen -gt 0 ] || fail "no text of the store was printed"
rm -rf db state backup && cp original prog

# ---- names of files and directories
odd=$dir/$'d\e[31m\xc2\x9b\xe2\x80\xae\xff'
mkdir "$odd" && cp original "$odd/prog" && cp "$odd/prog" "$odd/lib.so" || exit 1
for program in "morph --db=$odd/db" "morph optimize $odd/prog" "morph adopt $odd/prog" "morph undo $odd/prog" \
	"morph explain $odd/prog" "morph-stats status --db=$odd/db" "morph-stats import $odd/prog --db=x" \
	"morph-stats check --db=$odd/prog" "morph-stats merge -o $odd/all.db $odd/a.db" "morph-optimize --all $odd/prog" \
	"morph-optimize --all --report=json $odd/prog" "morph-optimize verify $odd/prog $odd/prog" \
	"morph-optimize adopt $odd/prog $odd/lib.so" "morph-optimize restore $odd/prog" \
	"morph-optimize instrument --kind=edges --counts=$odd/c --all -o $odd/out $odd/prog" \
	"morph-audit $odd/prog $odd/lib.so -- 1" "morph-audit --json $odd/none $odd/lib.so -- 1" \
	"morph-worker --config=$odd --now" "morph-worker --check --config=$odd/prog" "morph-fleet push --config=$odd/f" \
	"morphd --check-config --config=$odd/none" "morphd run --db=$odd/prog -- true" "morphd run -- $odd/none"; do
	IFS=' ' read -ra words <<<"$program"
	[ -x "$BUILD/${words[0]}" ] || continue
	rm -f "$odd/prog.morph"
	harmless "a file" env MORPH_DB="$dir/none.db" HOME="$dir" "$BUILD/${words[0]}" "${words[@]:1}"
done

# ---- symbols and process names, in a file and in a recording
objcopy --redefine-sym hot="hot$hostile" original oddly || exit 1
at=$(nm original | awk '$3 == "hot" { print "0x" $1 }')
{
	readelf -lW oddly | awk -v file="$dir/oddly" '$1 == "LOAD" && / R E / {
		printf "p\033[31m\302\233 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%s(%s) @ %s 00:00 0 0]: r-xp %s\n", $3, $5, $2, file }'
	objdump -d --no-show-raw-insn --disassemble=hot original | awk -v file="$dir/oddly" '
		/^ +[0-9a-f]+:/ { sub(":", "", $1); at[k++] = $1 }
		END { for (i = 0; i < 5000; i++) printf "p\033[31m\302\233 7/7 1.1: cycles:u: %s f (%s)\n", at[i % k], file }'
} >perf.text
harmless "symbols" "$stats" import --db=db perf.text
nr_seen=0
for command in 'query --by=function' 'query --by=function --json' 'query --by=block' calls heat flame 'diff db kept.db' \
	'export --format=json' "annotate $at" "annotate $at --json" status; do
	# shellcheck disable=SC2086
	harmless "symbols" "$stats" $command --db=db
done
for options in '' --explain --print=cfg --print=plan --report=json; do
	# shellcheck disable=SC2086
	harmless "symbols" "$BUILD/morph-optimize" --db=db $options -n oddly
done
[ $nr_seen -gt 3 ] || fail "symbols: the odd one was printed in $nr_seen runs"

# ---- what an audited program prints, and the policy
printf '#!/bin/sh\nprintf "one%s"\n' '\033[31m' >one && printf '#!/bin/sh\nprintf "two%s"\n' '\033[31m\233' >two
chmod 755 one two
harmless "audited" "$BUILD/morph-audit" ./one ./two --
printf 'program = %s\nno-such\e[31m\xc2\x9b = 1\n' "$dir/prog" >etc/watch.d/prog.conf
harmless "policy" "$worker" --config=etc --check
printf '%s' "$hostile" >etc/watch.d/$'odd\e[31m.conf'
harmless "policy" "$worker" --config=etc --check
rm etc/watch.d/odd*
printf 'rate = \e[31m\xc2\x9b\n' >odd.conf
harmless "settings" "$BUILD/morphd" --check-config --config=odd.conf
echo "$nr_runs runs, $nr_seen with a hostile text"
finish
