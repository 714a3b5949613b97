#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A user enables the user's own timer: a program of the user's is optimised, audited and adopted, with nobody's
# rights but the user's.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh

check "the machine starts" is_sound
unpack 1

# ---- a user's manager, as user@.service starts one; there is no dbus here, so logind does not
uid=$(id -u alice)
runtime=/run/user/$uid
install -d -o alice -g alice -m 700 "$runtime"
start_manager() {
	systemd-run -q --unit=manager-of-alice --uid=alice --gid=alice -p Type=notify -p Delegate=yes -E HOME=/home/alice \
		-E USER=alice -E XDG_RUNTIME_DIR="$runtime" /lib/systemd/systemd --user
}
# as USER COMMAND...: in the user's session, with the defaults of a user
as() {
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
		HOME="/home/$user" USER="$user" XDG_RUNTIME_DIR="/run/user/$(id -u "$user")" "$@"
}
check "the user's manager starts" start_manager
check "it answers the user" as alice systemctl --user --no-pager list-timers
check "the user's timer is there, and disabled" test "$(as alice systemctl --user is-enabled morph-optimize.timer)" = disabled
as alice mkdir -p /home/alice/.config/morph
as alice tee /home/alice/.config/morph/morph.conf >/dev/null <<'CONF'
share = 0
min-samples = 500
load = 1000
busy = 100%
audit-time = 3m
probation = 1m
CONF
check "the user names a program" as alice morph watch --mode=adopt add /home/alice/bin/spread -- /home/alice/bin/spread 300000
check "the user enables the timer" as alice systemctl --user -q enable --now morph-optimize.timer
listed_of() { as "$1" morph list --all --json 2>/dev/null | jq -r --arg p "$2" ".programs[] | select(.path == \$p).state"; }
state_of_alice() { [[ " $1 " == *" $(listed_of alice /home/alice/bin/spread) "* ]]; }
within 900 state_of_alice 'adopted kept not-faster undecided refused failed advised'
show_alice() { as alice morph history 2>&1; journalctl -q -b -o cat _UID="$uid" | tail -n 20; }
adopted() { state_of_alice 'adopted kept' || { show_alice; false; }; }
check "the program is adopted" adopted
check "the unit's last run succeeded" test "$(as alice systemctl --user show -P Result morph-optimize.service)" = success
proved() { morph-optimize verify "$(original 1 spread)" /home/alice/bin/spread; }
check "what is in place is a proved version" proved
check "it prints what it printed" test "$(as alice /home/alice/bin/spread 777)" = "$("$(original 1 spread)" 777)"
check "it is the user's" test "$(stat -c %U:%a /home/alice/bin/spread)" = alice:755
backups() { [ -n "$(find /home/alice/.local/state/morph/backup -type f)" ]; }
check "the original is in the user's own directory" backups
elsewhere() {
	local all
	all=$(find / -xdev -newer /home/alice/.config/morph/morph.conf -user alice -not -path '/home/alice/*' -not -path '/proc/*' \
		-not -path "$runtime/*" -not -path /home/alice 2>/dev/null)
	[ -z "$all" ] || { echo "$all"; false; }
}
check "nothing of the user's is written elsewhere" elsewhere

# ---- who sees what
# Another program than the user's copy of spread, which has the same build-id.
has_samples() { plain 200000 >/dev/null; more_of /usr/bin/plain 0; }
check "the machine's store has programs" within 300 has_samples
sees() { # USER PATH: the page or the list of the user names it
	as "$1" morph list --all --json 2>&1 | grep -qF "$2" || as "$1" morph 2>&1 | grep -qF "$2"
}
check "the user's list has the user's own program" sees alice /home/alice/bin/spread
check "and no program of the machine" fails sees alice /usr/bin/plain
sees_neither() { ! sees bob /usr/bin/plain && ! sees bob /home/alice/bin/spread; }
check "another user sees neither" sees_neither
check "not even by the name of the user's store" fails as bob morph --db=/home/alice/.local/state/morph/morph.db list --all
check "nor by the name of the machine's" fails as bob morph --db=$db list --all

# ---- files of root's stay
cp /usr/bin/spread /root/spread.was
as alice morph watch --mode=adopt --name=root add /usr/bin/spread -- /usr/bin/spread 300000 >/dev/null
tried() { [[ " refused failed advised undecided not-faster " == *" $(listed_of alice /usr/bin/spread) "* ]]; }
check "a rule for root's program ends without a change" within 900 tried
check "root's program is as it was" cmp /usr/bin/spread /root/spread.was
check "the user undoes" as alice morph undo /home/alice/bin/spread
check "the original is back" cmp /home/alice/bin/spread "$(original 1 spread)"
systemctl -q stop manager-of-alice
show_alice 2>&1 | cut -c1-160 | sed 's/^/note  /'

check "nothing is wrong in the kernel's log" kernel_is_well
