#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each script that measures or tests explains itself with --help, and does nothing else then. Files of the
# repository that scripts and shell tests name are there. Documentation/lab/benchmarks.md names every benchmark.
. "$(dirname "$0")/../lib.sh"
need python3 git
scratch scripts
# A script that does its work all the same must not install packages, and not work for long.
export MORPH_NO_SETUP=1 BUILD

# scripts/bench also has parts that another script runs: they have no options of their own.
mapfile -t scripts < <(find "$root"/scripts/bench/* "$root"/scripts/check/{check-guest,check-self,distribution,fuzz,hazards,run} \
	"$root"/scripts/check/{runtimes,rust-program,stress-inline,survey,sweep,torture} "$root"/scripts/{demo,setup} \
	-type f -perm -u+x | grep -vE '\.py$|/(markbyhand|objects-cc)$')
[ ${#scripts[@]} -ge 60 ] || fail "only ${#scripts[@]} scripts found"
for script in "${scripts[@]}"; do
	command_ends 0 "${script#"$root"/} --help" timeout 600 "$script" --help </dev/null
	[ -s out.txt ] || fail "${script#"$root"/} --help says nothing"
	[[ $script != */bench-* ]] || grep -q "^| .*scripts/bench/${script##*/}[\` ]" "$root/Documentation/lab/benchmarks.md" ||
		fail "benchmarks.md lacks ${script##*/}"
done

# misnamed DIRECTORY: names of files, with variables and patterns, that stand for none
misnamed() {
	python3 - "$1" <<'PY'
import glob, os, re, sys
TOPS = "daemon|debian|Documentation|editor|kmod|libprof|scripts|tests"
VARIABLE = r"\$\w+|\$\{[^}]*\}"
NAME = re.compile(rf"""(?:^|[\s"'`=(])(?:"?\$\{{?(?:root|ROOT)\}}?"?/|(?:\.\./)+)?((?:{TOPS})/(?:[\w./*-]|{VARIABLE})+)""", re.M)
PLACEHOLDER = re.compile(r"NAME")
os.chdir(sys.argv[1])
nr = 0
for top in ("scripts", "tests"):
    for where, _, files in os.walk(top):
        for path in (os.path.join(where, f) for f in sorted(files)):
            # This test's own examples, and those of layers.sh and links.sh, name nothing.
            if top == "tests" and not path.endswith((".sh", ".py")) or path.endswith(("project/layers.sh", "project/links.sh", "project/scripts.sh")):
                continue
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            for m in NAME.finditer(text):
                nr += 1
                pattern = re.sub(VARIABLE, "*", m[1]).rstrip(".,:-")
                # The end of a name may be missing, as in "tests/e2e/fleet/lib-".
                if not PLACEHOLDER.search(m[1]) and not glob.glob(pattern) and not glob.glob(pattern + "*"):
                    line = text.count("\n", 0, m.start(1)) + 1
                    print(f"{path}:{line}: no file {m[1]}")
print(f"{nr} names")
PY
}
misnamed "$root" >names.txt
! grep 'no file' names.txt || fail "scripts name files that are not there"
[ "$(sed -n 's/ names$//p' names.txt)" -ge 500 ] || fail "the check of names found $(tail -n 1 names.txt)"

# The check sees a pattern without a file and a variable's name in a folder without such files.
mkdir -p there/{scripts,tests,libprof/elf}
touch there/libprof/elf/elf.c
printf '%s\n' 'cat libprof/*.c' 'cc "libprof/$f.c"' 'cat libprof/*/*.c' 'cc "libprof/elf/$f.c"' 'cc libprof/NAME.c' >there/scripts/some
misnamed there >seen.txt
[ "$(grep -c 'no file' seen.txt)" = 2 ] && grep -q 'some:1: no file libprof/\*\.c' seen.txt &&
	grep -q 'some:2: no file libprof/\$f\.c' seen.txt || fail "the check of names says: $(cat seen.txt)"
finish
