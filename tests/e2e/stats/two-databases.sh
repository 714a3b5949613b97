#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# While the service runs, a command uses a database of its own. A user without a database reads the
# service's. Both are reported. Runs in a mount namespace with its own /var/lib/morph.
. "$(dirname "$0")/../lib.sh"
TMPDIR=/tmp # another user must be able to look into it
scratch databases
need unshare setpriv flock
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo "skip: needs root and a mount namespace"
	exit 77
fi
if ! "$BUILD/morphd" run --db probe.db -- true 2>err.txt; then
	echo "skip: $(head -1 err.txt)"
	exit 77
fi
export BUILD nr_failed
chmod 755 "$dir"
cat >inside.sh <<'SH'
mkdir -p /var/lib/morph lib && mount --bind lib /var/lib/morph || exit 99
unset MORPH_DB XDG_STATE_HOME
export HOME=$PWD/home
mkdir -p home
exec 9>/var/lib/morph/morph.db.lock
flock -x 9
"$BUILD/morphd" run -- true 2>beside.txt 9>&-
echo $? >beside.status
"$BUILD/morphd" run --db /var/lib/morph/morph.db -- true 2>named.txt 9>&-
echo $? >named.status
exec 9>&-
# An ordinary user: without any database, with an unreadable one, with a readable one.
user() { setpriv --reuid=54321 --regid=54321 --clear-groups env HOME="$PWD/nobody" "$@"; }
user "$BUILD/morph-stats" status >/dev/null 2>none.txt
echo $? >none.status
"$BUILD/morphd" run -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done' 2>/dev/null
chmod 600 /var/lib/morph/morph.db
user "$BUILD/morph-stats" query >/dev/null 2>closed.txt
echo $? >closed.status
chmod 644 /var/lib/morph/morph.db
user "$BUILD/morph-stats" query >open.out 2>open.txt
echo $? >open.status
SH
unshare -m bash inside.sh
is() {
	[ "$(cat "$1.status" 2>/dev/null)" = "$2" ] || fail "$1: $(cat "$1.status"), not $2: $(cat "$1.txt")"
}
is beside 0
says beside.txt 'the running service uses .*morph.db: .*morph-stats query --db=.*home/.local/state/morph/morph.db'
[ -s home/.local/state/morph/morph.db ] || fail "no database of its own"
is named 1
says named.txt 'in use by another morphd'
is none 3
says none.txt 'nobody/.local/state/morph/morph.db.*the service has none either'
is closed 3
says closed.txt 'sudo morph-stats COMMAND --db=/var/lib/morph/morph.db'
is open 0
says open.txt 'does not exist: reading the service.s database, /var/lib/morph/morph.db'
says open.out 'Of all'
[ $nr_failed = 0 ] || exit 1
