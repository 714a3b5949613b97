#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone for half a minute
# alone: it samples and audits
# Each command of Documentation/tutorial.md ends as the document says, and prints what the document
# shows, but for figures that differ from machine to machine.
. "$(dirname "$0")/../lib.sh"
need gcc python3
export PATH="$BUILD:$PATH"
unset MORPH_DB
scratch tutorial
sampling

export TMPDIR=$dir
# Ports that another run of this test does not use.
port=$((20000 + $$ % 20000))
sed "s/\b7411\b/$port/g; s/\b7412\b/$((port + 1))/g" "$root/Documentation/tutorial.md" >tutorial.md
"$root/scripts/check/tutorial" tutorial.md || fail "the commands of the tutorial"

# The comparison itself: a wrong line, a wrong status and a missing line are seen.
sees() {
	printf '%s\n' "$2" >doc.md
	"$root/scripts/check/tutorial" doc.md >out.txt && fail "not seen: $1"
}
sees "another output" $'```console\n$ echo one\ntwo\n```'
sees "a line too few" $'```console\n$ echo one; echo two\none\n```'
sees "another status" $'<!-- run: any -->\n```console\n$ false\n```'
sees "a missing word" $'<!-- run: words -->\n```console\n$ echo one\none 1\ntwo 2\n```'
printf '%s\n' $'<!-- run: numbers -->\n```console\n$ echo one 5\none 6\n```' >doc.md
"$root/scripts/check/tutorial" doc.md >out.txt || fail "a number is compared"
finish
