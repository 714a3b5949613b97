#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The check of the tree's layers sees a call upwards, a circle of calls, and maps that do not match the tree.
. "$(dirname "$0")/../lib.sh"
need python3
scratch layers

# tree: a small tree of three folders in which all is right
tree() {
	rm -rf libprof Documentation
	mkdir -p libprof/{base,elf,cfg/known} Documentation
	for folder in base elf cfg cfg/known; do
		printf '# %s\n- `file_%s`: a file\n' "$folder" "${folder//\//_}" >"libprof/$folder/README.md"
		printf 'void mp_%s(void)\n{\n}\n' "${folder//\//_}" >"libprof/$folder/file_${folder//\//_}.c"
	done
	{
		printf '## The tree\n\n| folder of `libprof/` | what it does |\n|---|---|\n'
		sed -n '/"libprof": \[/,/\]/p' "$root/scripts/check/layers" | grep -o '"[a-z/]*"' | tr -d '"' |
			while read -r folder; do
				mkdir -p "libprof/$folder"
				echo "| \`$folder/\` | something |"
			done
		printf '\n## Next\n'
	} >Documentation/architecture.md
}
calls() {
	local from=$1 to=$2
	printf '#include "x"\nvoid mp_%s(void)\n{\n\tmp_%s(); /* mp_other() */\n}\n' "$from" "$to"
}
passes() {
	"$root/scripts/check/layers" . >out.txt 2>&1 || fail "$1: $(cat out.txt)"
}
sees() {
	"$root/scripts/check/layers" . >out.txt 2>&1 && fail "not seen: $1"
	says out.txt "$2" "$1"
}

tree
passes "a small tree"
calls elf base | sed 1d >libprof/elf/file_elf.c
passes "a call downwards"
calls cfg cfg_known | sed 1d >libprof/cfg/file_cfg.c
passes "a call into a folder inside"
calls base elf | sed 1d >libprof/base/file_base.c
sees "a call upwards" 'libprof/base/file_base.c: calls libprof/elf/file_elf.c: base may not call elf'
tree
printf 'void mp_base(struct mp_elf *elf)\n{\n}\n' >libprof/base/file_base.c
passes "a structure with the name of a function"

# More circles than the limit: two files each.
tree
for i in {1..20}; do
	calls "a$i" "b$i" | sed 1d >"libprof/base/a$i.c"
	calls "b$i" "a$i" | sed 1d >"libprof/base/b$i.c"
done
echo '`a*`, `b*`' >>libprof/base/README.md
sees "circles" '20 circles of calls'
# A circle of many files
tree
for i in {1..20}; do
	calls "a$i" "a$((i % 20 + 1))" | sed 1d >"libprof/base/a$i.c"
done
echo '`a*`' >>libprof/base/README.md
sees "a large circle" '20 files call each other'

tree
: >libprof/elf/elf.h
echo '`elf`, `user*`' >>libprof/elf/README.md
: >libprof/elf/other.h
for i in {1..30}; do
	echo '#include "libprof/elf/other.h"' >"libprof/elf/user$i.c"
done
sees "a file that the README does not name" 'libprof/elf/README.md: does not name other.h'
sees "a header that many include" 'libprof/elf/other.h: 30 files include it'

tree
echo '`gone.c`' >>libprof/elf/README.md
sees "a README that names no file" 'names gone.c, which does not exist'

tree
printf '\nIncludes: elf, base. No more.\n' >>libprof/cfg/README.md
: >libprof/elf/elf.h
echo '`elf`' >>libprof/elf/README.md
echo '#include "libprof/elf/elf.h"' >>libprof/cfg/file_cfg.c
sees "a README that names a folder too many" 'libprof/cfg/README.md: must be: Includes: elf.'
"$root/scripts/check/layers" --write . >out.txt
passes "a mended README"
says libprof/cfg/README.md 'Includes: elf. No more.'
: >libprof/base/base.h
echo '`base`' >>libprof/base/README.md
echo '#include "libprof/base/base.h"' >>libprof/cfg/file_cfg.c
sees "a README that lacks a folder" 'libprof/cfg/README.md: must be: Includes: elf, base.'
tree
sed -i '/`elf/d' Documentation/architecture.md
sees "a folder that the page does not name" 'does not name elf/'

tree
for i in {1..50}; do : >"libprof/elf/many$i.c"; done
echo '`many*`' >>libprof/elf/README.md
sees "a folder of many files" 'libprof/elf: 51 files'
tree
{ printf 'void mp_elf(void)\n{\n'; seq -f '\t%g;' 90; echo '}'; } >libprof/elf/file_elf.c
sees "a long function" 'file_elf.c:2: a function of 92 lines'
tree
seq -f '// %g' 900 >>libprof/elf/file_elf.c
sees "a long file" 'file_elf.c: 903 lines'
tree
seq 20 >>libprof/elf/README.md
sees "a long README" 'libprof/elf/README.md: 22 lines'
tree
mkdir -p tests/unit/libprof/gone
: >tests/unit/libprof/gone/test_gone.c
sees "a test of no folder" 'there is no folder libprof/gone'
finish
