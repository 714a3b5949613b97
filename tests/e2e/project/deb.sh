#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: the packages are a build of their own
# The Debian packages of the committed tree build outside of the source tree
# and pass scripts/package/deb-check.
. "$(dirname "$0")/../lib.sh"
need git dpkg-buildpackage dh dh_dkms lintian
cd "$root" || exit 1
git rev-parse -q --verify HEAD >/dev/null || {
	echo "skip: no git here"
	exit 77
}
before=$(git status --porcelain --ignored debian kmod)
# Called like by `make O=outside deb': the package builds in its own tree
# and leaves "outside" as it is.
mkdir -p "$TMPDIR/outside/obj"
# How well the programs are optimised, and their debug packages, do not matter here.
export DEB_CFLAGS_APPEND=-O0 DEB_CPPFLAGS_STRIP=-D_FORTIFY_SOURCE=2 DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym"
MAKEFLAGS=" -- O=$TMPDIR/outside" scripts/package/deb --output="$TMPDIR/deb" || {
	echo "FAIL: the packages do not build"
	exit 1
}
[ "$(ls "$TMPDIR/outside")" = obj ] || fail "the packages were built in another tree"
[ "$(git status --porcelain --ignored debian kmod)" = "$before" ] || fail "the source tree was written to"
scripts/package/deb-check "$TMPDIR/deb" || fail "they are not as they should be"
finish
