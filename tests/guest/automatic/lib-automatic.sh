# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Shared by the stages about what Morph does by itself; sourced behind lib.sh.
programs='spread plain answerd'
originals=/root/originals

# unpack VERSION: the files of that version of morph-trial, in $originals/VERSION
unpack() { mkdir -p "$originals" && dpkg-deb -x "$files/trial/morph-trial_$1_amd64.deb" "$originals/$1"; }
original() { echo "$originals/$1/usr/bin/$2"; }

listed() { morph list --all --json | jq -r --arg p "/usr/bin/$1" ".programs[] | select(.path == \$p) | $2"; }
state_of() { listed "$1" .state; }
# in_state PROGRAM STATES: the job's state is one of them
in_state() {
	local state
	state=$(state_of "$1")
	[[ " $2 " == *" $state "* ]] || { echo "$1 is $state: $(listed "$1" .reason)"; return 1; }
}
# The steps of PROGRAM's round ROUND in their order, with verdicts.
steps() {
	morph history --json "/usr/bin/$1" | jq -r --argjson r "$2" \
		'[.decisions[] | select(.round == $r)] | map(.step + ":" + .verdict) | join(" ")'
}
has_steps() { # PROGRAM ROUND PATTERN
	local all
	all=$(steps "$1" "$2")
	[[ "$all" =~ ^$3$ ]] || { echo "$1: '$all' is not '$3'"; return 1; }
}
each_step_once() {
	local twice
	twice=$(morph history --json | jq -r '.decisions | group_by([.path, .round, .step])[] |
		select(length > 1) | .[0] | "\(.path) \(.round) \(.step)"')
	[ -z "$twice" ] || { echo "twice: $twice"; return 1; }
}
is_original() { cmp "/usr/bin/$1" "$(original "$2" "$1")"; } # PROGRAM VERSION
# The file in place is proved again, against the package's original.
is_verified() { morph-optimize verify "$(original "$2" "$1")" "/usr/bin/$1"; }
# In place there is either a proved output, if the state says so, or the original.
fits_its_state() { # PROGRAM VERSION
	case $(state_of "$1") in
	adopted | kept) ! is_original "$1" "$2" >/dev/null && is_verified "$1" "$2" ;;
	*) is_original "$1" "$2" ;;
	esac
}
all_have_ended() {
	local p
	for p in $programs; do
		in_state "$p" 'advised kept undone not-faster undecided refused failed adopted' >/dev/null ||
			return 1
	done
}
# What happened, for the reader of a failed test.
show_rounds() {
	morph history
	journalctl -q -b -o cat -u morph-optimize | tail -n 20
}
