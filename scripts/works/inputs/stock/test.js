// SPDX-License-Identifier: Apache-2.0
// Test work for node: many short functions that are compiled, objects that are collected, buffers. Argument: how much.
const zlib = require('zlib');
const rounds = Number(process.argv[2] || 10);
let total = 0;
class Tree {
	constructor(depth, seed) {
		this.value = seed % 1009;
		this.left = depth ? new Tree(depth - 1, seed * 3 + 1) : null;
		this.right = depth ? new Tree(depth - 1, seed * 5 + 2) : null;
	}
	sum() { return this.value + (this.left ? this.left.sum() + this.right.sum() : 0); }
}
for (let round = 0; round < rounds; round++) {
	const source = [];
	for (let i = 0; i < 60; i++)
		source.push(`function f${i}(a, b) { let s = ${round}; for (let i = 0; i < a; i++) { s = (s * ${i + 3} + b) % 65521; }
			switch (s % 4) { case 0: return { s }; case 1: return [s, b]; default: return String(s); } }`);
	const made = new Function(`${source.join('\n')} return [${source.map((_, i) => `f${i}`).join()}];`)();
	for (const f of made) total = (total + JSON.stringify(f(round % 17 + 3, total)).length) % 1000003;
	total = (total + new Tree(10, round).sum()) % 1000003;
	const packed = zlib.deflateSync(Buffer.from(source.join('')));
	total = (total + zlib.inflateSync(packed).length + packed.toString('base64').length % 7) % 1000003;
}
console.log(total);
