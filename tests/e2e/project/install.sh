#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: it expects the header of code markers
# make install puts every program, manual page, the unit and its files in the right place, and
# nothing into /var/lib. The installed programs answer --version and --help. systemd accepts the
# unit and rates it as confined. The installed configuration is valid.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
dest=$TMPDIR/dest
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

cd "$root" || exit 1
make --no-print-directory O="$BUILD" DESTDIR="$dest" PREFIX=/usr install || {
	echo "FAIL: make install"
	exit 1
}

declare -A where=([daemon/morphd/morphd.c]=sbin/morphd [daemon/stats/morph_stats.c]=bin/morph-stats
	[daemon/worker/morph_worker.c]=sbin/morph-worker [daemon/morph/morph.c]=bin/morph
	[editor/cli/morph_optimize.c]=bin/morph-optimize [editor/cli/morph_audit.c]=bin/morph-audit)
# Without libpq, everything else is built and installed.
[ ! -x "$BUILD/morph-fleet" ] || where[daemon/fleet/morph_fleet.c]=bin/morph-fleet
nr=0
for src in "${!where[@]}"; do
	[ -e "$src" ] || continue
	nr=$((nr + 1))
	bin=$dest/usr/${where[$src]}
	[ -x "$bin" ] || { fail "$bin was not installed"; continue; }
	version=$("$bin" --version 2>&1) || fail "$bin --version: exit $?"
	[ -n "$version" ] || fail "$bin --version says nothing"
	help=$("$bin" --help 2>"$TMPDIR/err") || fail "$bin --help: exit $?"
	[ -n "$help" ] || fail "$bin --help says nothing on stdout"
	"$bin" --no-such-option >/dev/null 2>"$TMPDIR/err"
	[ $? = 2 ] || fail "$bin: an unknown option is not a usage error (2)"
	[ -s "$TMPDIR/err" ] || fail "$bin: an unknown option goes without a message"
done
for page in Documentation/*.[1458]; do
	[ -e "$page" ] || continue
	[ "$page" != Documentation/morph-fleet.1 ] || [ -x "$BUILD/morph-fleet" ] || continue
	[ -e "$dest/usr/share/man/man${page##*.}/$(basename "$page")" ] ||
		fail "$page was not installed"
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W warning "$page" || fail "$page: mandoc finds something"
	fi
done
# Files of the service and the module; nothing else is installed beside the programs.
{
	printf '%s\n' etc/morph/morphd.conf etc/morph/morph.conf usr/lib/systemd/system/morphd.service \
		usr/lib/systemd/system/morph-optimize.{service,socket,timer,path} \
		usr/lib/systemd/system-preset/60-morph.preset \
		usr/lib/systemd/user/morph-optimize.{service,timer} \
		usr/share/doc/morph/examples/morph.conf \
		usr/lib/sysusers.d/morph.conf usr/lib/udev/rules.d/99-morphmon.rules \
		usr/lib/modprobe.d/morphmon.conf usr/share/doc/morph/examples/morphd.conf \
		usr/share/doc/morph/examples/morphmon.modules-load.conf \
		usr/include/morph_marker.h "${where[@]/#/usr/}"
	[ ! -e "$BUILD/morph_marker.so" ] || echo usr/lib/morph/morph_marker.so
	[ ! -x "$BUILD/morph-fleet" ] || printf '%s\n' usr/lib/systemd/system/morph-fleet{,-builds,-canary}.{service,timer} \
		usr/share/doc/morph/examples/fleet.conf
	for page in Documentation/*.[1458]; do
		[ "$page" != Documentation/morph-fleet.1 ] || [ -x "$BUILD/morph-fleet" ] || continue
		echo "usr/share/man/man${page##*.}/$(basename "$page")"
	done
	for program in "${where[@]}"; do
		echo "usr/share/bash-completion/completions/${program#*/}"
	done
} | sort >"$TMPDIR/wanted"
(cd "$dest" && find . -type f | sed 's,^\./,,' | sort) >"$TMPDIR/got"
cmp -s "$TMPDIR/wanted" "$TMPDIR/got" ||
	fail "installed (>) is not what should be (<): $(diff "$TMPDIR/wanted" "$TMPDIR/got")"
# modes DIRECTORY: list files with wrong modes. Everyone may read, only root
# may write, and only programs are executable.
modes() {
	find "$1" \( -type d ! -perm 755 \) -o \( -type f -path '*bin/*' ! -perm 755 \) \
		-o \( -type f ! -path '*bin/*' ! -perm 644 \)
}
wrong=$(modes "$dest")
[ -z "$wrong" ] || fail "wrong modes: $wrong"
# An odd program that needs too much memory ends morph-optimize, and not the worker with all of its work.
for unit in "$dest"/usr/lib/systemd/{system,user}/morph-optimize.service; do
	grep -q '^OOMPolicy=continue$' "$unit" || fail "$unit: too little memory ends the worker"
done
unit=$dest/usr/lib/systemd/system/morphd.service
grep -q '^ExecStart=/usr/sbin/morphd --wait --config=/etc/morph/morphd.conf$' "$unit" ||
	fail "the unit does not start /usr/sbin/morphd with its configuration"
! grep -qE '@[A-Z]+@' "$unit" || fail "the unit holds an unfilled @NAME@"

# An administrator's changes stay. A package can choose other directories.
echo "rate = 7" >"$dest/etc/morph/morphd.conf"
make --no-print-directory O="$BUILD" DESTDIR="$dest" PREFIX=/usr install >/dev/null || fail "make install, again"
[ "$(cat "$dest/etc/morph/morphd.conf")" = "rate = 7" ] || fail "a changed configuration is overwritten"
make --no-print-directory O="$BUILD" DESTDIR="$TMPDIR/other" PREFIX=/opt SYSCONFDIR=/e UNITDIR=/u \
	SYSUSERSDIR=/s UDEVDIR=/d MODPROBEDIR=/m EXAMPLEDIR=/x install >/dev/null || fail "make install elsewhere"
for file in e/morph/morphd.conf u/morphd.service s/morph.conf d/rules.d/99-morphmon.rules \
	m/morphmon.conf x/morphd.conf opt/sbin/morphd; do
	[ -s "$TMPDIR/other/$file" ] || fail "$file: not where it was wanted"
done
grep -q '^ExecStart=/opt/sbin/morphd --wait --config=/e/morph/morphd.conf$' "$TMPDIR/other/u/morphd.service" ||
	fail "the unit elsewhere: $(grep ExecStart "$TMPDIR/other/u/morphd.service")"

# The installed configuration is valid, and shows the default of each key.
conf=$TMPDIR/other/e/morph/morphd.conf
"$dest/usr/sbin/morphd" --check-config --config="$conf" || fail "the installed configuration is wrong"
! grep -q '^[^#]' "$conf" || fail "the installed configuration sets something"
sed -n 's/^#\([a-z-]* = .*\)/\1/p' "$conf" >"$TMPDIR/all.conf"
"$dest/usr/sbin/morphd" --check-config --config="$TMPDIR/all.conf" ||
	fail "the defaults in the configuration are wrong"
keys=$(sed -n 's/^\.It Cm //p' Documentation/morphd.conf.5 | sort | tr '\n' ' ')
[ "$keys" = "$(cut -d' ' -f1 "$TMPDIR/all.conf" | sort | tr '\n' ' ')" ] ||
	fail "morphd.conf(5) has the keys $keys; the file has others"
[ "$keys" = "database interval no-kernel rate registers source stacks " ] || fail "keys: $keys"

# The same of the manager's: without its comments, each default is accepted.
policy=$TMPDIR/policy
mkdir -p "$policy"
cp "$TMPDIR/other/e/morph/morph.conf" "$policy/"
! grep -q '^[^#]' "$policy/morph.conf" || fail "the installed policy sets something"
"$dest/usr/sbin/morph-worker" --check --config="$policy" || fail "the installed policy is wrong"
sed -i 's/^#\([a-z-]* = .*\)/\1/' "$policy/morph.conf"
"$dest/usr/sbin/morph-worker" --check --config="$policy" || fail "the defaults in the policy are wrong"
# It shows each key with its default; lists of patterns have none.
sed -n '/main_keys\[\]/,/^}/s/^\t{"\([a-z-]*\)".*/\1/p' daemon/policy/policy_keys.c | grep -vxe exclude -e only | sort >"$TMPDIR/keys"
[ "$(wc -l <"$TMPDIR/keys")" -gt 10 ] || fail "the keys of the policy were not found"
sed -n 's/^\([a-z-]*\) = .*/\1/p' "$policy/morph.conf" | sort | diff "$TMPDIR/keys" - >&2 ||
	fail "the policy shows other keys than morph-worker knows"

# The module has each parameter of the example.
while IFS== read -r parameter _; do
	grep -q "^module_param($parameter," kmod/main.c || fail "the module has no parameter $parameter"
done < <(sed -n 's/^#options morphmon //p' kmod/morphmon.modprobe.conf)

# The collector is enabled by preset, the worker is not.
preset=$dest/usr/lib/systemd/system-preset/60-morph.preset
for pair in enable:morphd.service disable:morph-optimize.service disable:morph-optimize.timer \
	disable:morph-optimize.path disable:morph-optimize.socket; do
	grep -qx "${pair%:*} ${pair#*:}" "$preset" || fail "the preset does not ${pair%:*} ${pair#*:}"
done

# The worker's AppArmor profile is one that the parser takes, and the unit names it.
profile=$(sed -n 's/^AppArmorProfile=-//p' "$dest/usr/lib/systemd/system/morph-optimize.service")
grep -q "^profile $profile " daemon/worker/morph-worker.apparmor || fail "no AppArmor profile '$profile'"
if command -v apparmor_parser >/dev/null; then
	apparmor_parser -QT daemon/worker/morph-worker.apparmor || fail "apparmor_parser refuses the profile"
else
	echo "apparmor_parser is missing: the profile was not parsed"
fi

# ---- systemd's own checks
if command -v systemd-analyze >/dev/null; then
	# At most 3.0; the scale of --threshold is in tenths.
	units='morphd morph-optimize'
	[ ! -x "$BUILD/morph-fleet" ] || units="$units morph-fleet morph-fleet-builds morph-fleet-canary"
	for u in $units; do
		systemd-analyze security --no-pager --offline=true --threshold=30 \
			"$dest/usr/lib/systemd/system/$u.service" >"$TMPDIR/exposure" 2>&1 ||
			fail "exposure of $u: $(grep -v ✓ "$TMPDIR/exposure")"
		tail -n 1 "$TMPDIR/exposure"
	done
	# Check that the threshold has an effect: no unit can reach this one.
	! systemd-analyze security --no-pager --offline=true --threshold=1 "$unit" >/dev/null 2>&1 ||
		fail "systemd-analyze does not look at the threshold"
	mkdir -p "$dest/bin" && touch "$dest/bin/kill" && chmod +x "$dest/bin/kill"
	for target in sysinit basic shutdown multi-user local-fs timers paths sockets network-online; do
		printf '[Unit]\nDescription=%s\n' $target >"$dest/usr/lib/systemd/system/$target.target"
	done
	systemd-analyze verify --man=no --root="$dest" morphd.service >"$TMPDIR/verify" 2>&1 ||
		fail "systemd-analyze verify: $(cat "$TMPDIR/verify")"
	! grep -i 'morphd' "$TMPDIR/verify" || fail "systemd-analyze verify complains"
	names=$(cd "$dest/usr/lib/systemd/system" && ls morph-optimize.* morph-fleet* 2>/dev/null)
	for u in $names; do
		systemd-analyze verify --man=no --root="$dest" "$u" >"$TMPDIR/verify" 2>&1 &&
			[ ! -s "$TMPDIR/verify" ] || fail "systemd-analyze verify: $(cat "$TMPDIR/verify")"
	done
	sed -i 's/^WatchdogSec=.*/WatchdogSecs=2min/' "$unit"
	systemd-analyze verify --man=no --root="$dest" morphd.service 2>&1 | grep -q WatchdogSecs ||
		fail "systemd-analyze verify sees no mistake"
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers --root="$dest" >"$TMPDIR/users" 2>&1 || fail "sysusers: $(cat "$TMPDIR/users")"
		grep -q '^morph:.*:/var/lib/morph:/usr/sbin/nologin$' "$dest/etc/passwd" &&
			grep -q '^morph:' "$dest/etc/group" || fail "sysusers: $(cat "$dest/etc/passwd")"
	fi
else
	echo "systemd-analyze is missing: the unit was not judged"
fi
[ ! -e "$dest/var" ] || fail "install made $dest/var: that is the unit's StateDirectory"
if [ $nr = 0 ]; then
	echo "skip: no program exists"
	exit 77
fi
echo "$nr programs, $nr_failed failures"
[ $nr_failed = 0 ]
