#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages of what is committed build, outside of the source tree, and are as they
# should be.
. "$(dirname "$0")/lib.sh"
need git dpkg-buildpackage dh dh_dkms lintian
cd "$root" || exit 1
git rev-parse -q --verify HEAD >/dev/null || {
	echo "skip: no git here"
	exit 77
}
before=$(git status --porcelain --ignored debian kmod)
# As from `make O=outside deb`: the package is built in its own tree, and the other one stays.
mkdir -p "$TMPDIR/outside/obj"
MAKEFLAGS=" -- O=$TMPDIR/outside" scripts/deb --output="$TMPDIR/deb" || {
	echo "FAIL: the packages do not build"
	exit 1
}
[ "$(ls "$TMPDIR/outside")" = obj ] || fail "the packages were built in another tree"
[ "$(git status --porcelain --ignored debian kmod)" = "$before" ] || fail "the source tree was written to"
scripts/deb-check "$TMPDIR/deb" || fail "they are not as they should be"
finish
