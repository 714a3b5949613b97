# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of trust: root, who runs Morph's programs, and nobody, who attacks.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
need setpriv gcc
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, to be two users"
	exit 77
}

# trust_scratch NAME: a directory that both may enter: theirs/ is nobody's, rootdir/ is root's, and precious
# is a file of root's with the text "precious"
trust_scratch() {
	dir=$(mktemp -d "/tmp/$1.XXXXXX") || exit 1
	at_exit 'rm -rf "$dir"'
	cd "$dir" || exit 1
	chmod 755 "$dir"
	mkdir theirs rootdir
	chown nobody:nogroup theirs
	echo precious >precious
}

# as_nobody COMMAND...
as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs "$@"
}

# untouched WHAT: root's file and directory are as they were
untouched() {
	echo precious | cmp -s - precious || fail "$1: root's file was changed or removed"
	[ "$(stat -c %U:%a precious 2>&1)" = root:644 ] || fail "$1: root's file is $(stat -c %U:%a precious 2>&1)"
	[ -z "$(ls -A rootdir)" ] || fail "$1: in root's directory: $(ls -A rootdir)"
	rm -f precious
	echo precious >precious && chmod 644 precious && rm -rf rootdir && mkdir rootdir
}
