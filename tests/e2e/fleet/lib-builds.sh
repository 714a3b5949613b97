# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of builds: a program, ./prog, whose profile two hosts have sent, two builders, and
# commands for them. Source it instead of lib-fleet.sh.
. "$(dirname "${BASH_SOURCE[0]}")/lib-fleet.sh"
need jq gcc objdump sqlite3

# builds_start: the database, the hosts alpha and beta, the builders maker and helper
builds_start() {
	local name
	fleet_start
	"$fleet" init >/dev/null || exit 1
	# Roll-outs have tests of their own, in canary.sh.
	fleet_sql "$ADMIN" 'UPDATE fleet.canary_policy SET rolls_out = false' || exit 1
	for name in alpha beta; do
		fleet_host $name
		echo $name >$name.id
		host_files $name
	done
	fleet_host maker --builder
	fleet_host helper --builder
	unset MORPH_FLEET
	mkdir tmp originals etc etc/watch.d
	echo 'share = 0' >etc/morph.conf
	export TMPDIR=$dir/tmp
	make_program prog
	mkdir originals/deep
	cp prog originals/deep/
	id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
	callgrind_counts prog hot 50000 >one.out
	callgrind_counts prog pick 700 >two.out
	"$BUILD/morph-stats" -d alpha.db import one.out >/dev/null && "$BUILD/morph-stats" -d beta.db import two.out >/dev/null || exit 1
	send_store alpha
	send_store beta
}

# host_files NAME: the directory of a host's files
host_files() {
	mkdir "$1" "$1/state" && chmod 755 "$1"
}

# make_program FILE [FLAG...]
make_program() {
	[ -e prog.c ] || cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int pick(int x)
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
__attribute__((noinline)) long hot(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s = i % 7 == 3 ? s ^ pick((int)i) : s + (i * 5) % 11;
	return s;
}
int main(int argc, char **argv)
{
	printf("%ld\n", hot(argc > 1 ? atol(argv[1]) : 1000));
	return 0;
}
C
	gcc -g -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs "${@:2}" prog.c -o "$1" || exit 1
}

# send_store NAME: sends the host's store
send_store() {
	command_ends 0 "push of $1" "$fleet" push -d "$(<"$1.conn")" --db="$1.db" --machine-id="$1.id" --give-up=0
}

# request STATUS WHAT ARGUMENT...: as the operator
request() {
	command_ends "$1" "$2" "$fleet" request -d "$ADMIN" "${@:3}"
}

# build STATUS WHAT BUILDER OPTION...: one job
build() {
	command_ends "$1" "$2" "$fleet" build -d "$(<"$3.conn")" --once --originals=originals --give-up=0 "${@:4}"
}

# install_as NAME OPTION...: the command alone
install_as() {
	"$fleet" install -d "$(<"$1.conn")" --db="$1.db" --policy=etc --backup-dir="$dir/$1/backup" \
		--state-dir="$dir/$1/state" "${@:2}"
}

# install STATUS WHAT NAME OPTION...: on a host
install() {
	command_ends "$1" "$2" install_as "${@:3}"
}

# build_is STATE WHAT [OPTIONS]: the state of the build of ./prog
build_is() {
	local now
	now=$(fleet_sql "$ADMIN" "SELECT state FROM fleet.build WHERE substr(module, 9) = '\\x$id' AND options = '${3:-}'")
	[ "$now" = "$1" ] || fail "$2: the build is $now, not $1: $(fleet_sql "$ADMIN" 'SELECT detail FROM fleet.build')"
}

# host_is NAME STATE WHAT: what the host has reported
host_is() {
	local now
	now=$(fleet_sql "$ADMIN" "SELECT b.state FROM fleet.build_host b JOIN fleet.host h ON h.id = b.host
		WHERE h.name = '$1' AND module = (SELECT module FROM fleet.build LIMIT 1)")
	[ "$now" = "$2" ] || fail "$3: $1 is $now, not $2"
}

# is_original NAME WHAT, is_output NAME WHAT: what is in place on a host, and that it runs
is_original() {
	cmp -s prog "$1/prog" || fail "$2: not the original is in place"
}
is_output() {
	cmp -s "${3:-output}" "$1/prog" || fail "$2: not the build is in place"
	[ "$("$1/prog" 12345)" = "$(./prog 12345)" ] || fail "$2: the build prints something else"
}
