# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Samples of a program that never ran, as text of perf; sourced.

# samples_as_perf FILE SAMPLES FUNCTION: as if FILE had run and spent its time in the function
samples_as_perf() {
	readelf -lW "$1" | awk -v file="$1" '$1 == "LOAD" && / R E / {
		printf "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%s(%s) @ %s 00:00 0 0]: r-xp %s\n", $3, $5, $2, file }'
	objdump -d --no-show-raw-insn --disassemble="$3" "$1" |
		awk -v file="$1" -v n="$2" '/^ +[0-9a-f]+:/ { sub(":", "", $1); at[k++] = $1 }
		END { for (i = 0; i < n; i++) printf "p 7/7 1.1: cycles:u: %s f (%s)\n", at[i % k], file }'
}
