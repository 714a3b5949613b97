// SPDX-License-Identifier: Apache-2.0
// Training work for node: words, maps, sorting, regular expressions, JSON. Argument: how much.
const rounds = Number(process.argv[2] || 10);
let state = 1, total = 0;
const next = () => (state = (state * 48271) % 2147483647);
for (let round = 0; round < rounds; round++) {
	const words = Array.from({ length: 2000 }, (_, i) => `word${next() % 97}-${i.toString(16)}`);
	const count = new Map();
	for (const w of words) {
		const key = /^word(\d+)/.exec(w)[1];
		count.set(key, (count.get(key) || 0) + w.length);
	}
	const best = [...count].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 10);
	const text = words.join(' ').replace(/d(\d)-/g, (_, d) => `<${d}>`);
	const again = JSON.parse(JSON.stringify({ best, words, round }));
	total = (total * 31 + text.length + again.words.length + best[0][1]) % 1000003;
}
console.log(total);
