# SPDX-License-Identifier: Apache-2.0
# Test work for awk, over numbers with colons between: sums by group, a histogram,
# hexadecimal, a small stack machine, queens, a longest common subsequence.

function queens(row,   c, n) {
	if (row == size) return 1
	for (c = 0; c < size; c++) {
		if (column[c] || up[row + c] || down[row - c + size]) continue
		column[c] = up[row + c] = down[row - c + size] = 1
		n += queens(row + 1)
		column[c] = up[row + c] = down[row - c + size] = 0
	}
	return n
}

function lcs(a, b,   i, j, la, lb, best, prev) {
	la = length(a); lb = length(b)
	delete best
	for (i = 1; i <= la; i++)
		for (j = 1; j <= lb; j++)
			if (substr(a, i, 1) == substr(b, j, 1))
				best[i, j] = best[i - 1, j - 1] + 1
			else
				best[i, j] = best[i - 1, j] > best[i, j - 1] ? best[i - 1, j] : best[i, j - 1]
	return best[la, lb]
}

function run(program,   n, token, i, top, stack) {
	n = split(program, token, " ")
	for (i = 1; i <= n; i++)
		switch (token[i]) {
		case "+": top--; stack[top] += stack[top + 1]; break
		case "*": top--; stack[top] *= stack[top + 1]; break
		case "-": top--; stack[top] -= stack[top + 1]; break
		case "swap": x = stack[top]; stack[top] = stack[top - 1]; stack[top - 1] = x; break
		case /^[0-9.-]+$/: stack[++top] = token[i]; break
		default: bad++
		}
	return stack[1]
}

BEGIN {
	FS = ":"
	OFS = ","
	size = short ? 5 : 8
	print "queens", queens(0)
	print "lcs", lcs("the quick brown fox jumps over", "a lazy dog picks up brown oxen")
}

short && NR > 50000 { exit }
!short && NR > 600000 { exit }

{
	group[$1 % 31] += $2
	if ($2 + 0 < least) least = $2
	if ($2 > most) most = $2
	histogram[int($2 / 5000)]++
}
$4 ~ /K$/ { sub(/K$/, "", $4); kilo += $4 * 1024 }
$3 ~ /^id0+[1-9]/ { id = substr($3, 3) + 0; ids[id] = ids[id] " " NR; nr_ids++ }
NR % 9 == 0 {
	value = run($1 " " $4 " + 3 * " $1 " swap -")
	acc = (acc + value) % 1000003
	text = sprintf("%X", $1) sprintf("%o", NR)
	gsub(/[0-7]/, "&.", text)
	len += length(text)
}

END {
	for (g = 0; g < 31; g++) printf "%d=%.1f%s", g, group[g], g % 8 == 7 ? "\n" : " "
	print ""
	for (h = -20; h <= 20; h++) if (h in histogram) bars = bars h "|" histogram[h] ";"
	print bars
	for (id in ids) longest = length(ids[id]) > longest ? length(ids[id]) : longest
	print least, most, kilo, nr_ids, acc, len, bad + 0, longest
}
