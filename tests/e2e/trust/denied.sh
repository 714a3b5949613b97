#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AppArmor profile of the worker forbids what no policy can allow: one line for each pattern of
# daemon/policy/deny.c, which asks in the worker itself.
. "$(dirname "$0")/../lib.sh"
scratch denied
profile=$root/daemon/worker/morph-worker.apparmor

# A * of fnmatch() matches slashes, too; /usr may be missing in front of a path.
sed -n '/^static const struct denial denials/,/^};/s/^\t{"\([^"]*\)".*/\1/p' "$root/daemon/policy/deny.c" |
	sed 's/\*/**/g; s|^\*\*|/**|; s|^/usr/|/{usr/,}|; s|.*|  deny & wl,|' >want.txt
[ "$(wc -l <want.txt)" -gt 60 ] || fail "only $(wc -l <want.txt) patterns in deny.c"
sed -n '/# What no policy can allow/,/^$/p' "$profile" | grep '^  deny' >have.txt
diff want.txt have.txt || fail "the profile has not the lines of deny.c"
finish
