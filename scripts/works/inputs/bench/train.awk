# SPDX-License-Identifier: Apache-2.0
# Training work for awk, over prose: words counted, text rewritten, fields joined,
# lines sorted, a letter's neighbours tabulated, an index of first words printed.

function join(parts, n, by,   i, s) {
	s = parts[1]
	for (i = 2; i <= n; i++) s = s by parts[i]
	return s
}

function heap_push(x,   i, p) {
	for (i = ++nr_heap; i > 1; i = p) {
		p = int(i / 2)
		if (heap[p] <= x) break
		heap[i] = heap[p]
	}
	heap[i] = x
}

function heap_pop(   top, x, i, c) {
	top = heap[1]
	x = heap[nr_heap--]
	for (i = 1; (c = 2 * i) <= nr_heap; i = c) {
		if (c < nr_heap && heap[c + 1] < heap[c]) c++
		if (x <= heap[c]) break
		heap[i] = heap[c]
	}
	heap[i] = x
	return top
}

function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }

BEGIN {
	print "fib", fib(20)
	for (i = 2; i <= 60000; i++) {
		if (i in composite) continue
		primes++
		for (j = i * i; j <= 60000; j += i) composite[j]
	}
	print "primes", primes
}

{
	words += NF
	for (i = 1; i <= NF; i++) {
		count[tolower($i)]++
		letters += length($i)
	}
}

/\. [A-Z]/ { sentences += gsub(/\. /, ".\n") }
/^(ba|be|bi)[a-z]*/ { starts[substr($1, 1, 4)]++ }
$1 ~ /[aeiou]{2}/ || $NF ~ /(ka|ki|ko)$/ { matched++ }
NR % 5 == 0 {
	n = split($0, part, /[ ,.]+/)
	line = join(part, n, "-")
	if (match(line, /-[a-z]o[a-z]e/)) at += RSTART + RLENGTH
	kept = sprintf("%06d %-20.20s|%8.3f|%x", NR, line, NR / 7, NR)
	sum += length(kept) + index(kept, "|")
}
NR % 40 == 0 {
	heap_push(length($0) * 1000 + NR % 1000)
	$3 = toupper($2)
	$2 = ""
	rebuilt += length($0)
}
NR > limit && limit { exit }

END {
	for (w in count) if (count[w] > 50) { often++; total += count[w] * length(w) }
	print words, letters, sentences, matched, at, sum, rebuilt, often, total
	n = asorti(starts, order)
	for (i = 1; i <= n; i++) printf "%s %d ", order[i], starts[order[i]]
	print ""
	while (nr_heap > 0) last = last * 3 % 1000003 + heap_pop()
	print "heap", last
}
