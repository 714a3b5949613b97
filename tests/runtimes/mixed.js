// SPDX-License-Identifier: Apache-2.0
const counts = new Map();
for (let i = 0; i < 300000; i++) counts.set("k" + i % 1000, (counts.get("k" + i % 1000) || 0) + i);
console.log(counts.size, counts.get("k5"));
try { null.x; } catch (e) { console.log(e.message); }
class A { #p = 1; get p() { return this.#p; } }
console.log(new A().p, [3, 1, 2].sort(), JSON.stringify({a: [1, {b: 2}]}), /a(b+)c/.exec("xabbbc")[1]);
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
console.log(fib(25), new Float64Array([1.5, 2]).map(x => x * x).join(), 2n ** 100n);
(async () => { for await (const x of (async function* () { yield 1; yield 2; })()) console.log(x); })();
