<?php
// SPDX-License-Identifier: Apache-2.0
// Test work for PHP: objects, JSON, a small parser with recursion, integers and floats. Argument: how much.
interface Area {
	public function area(): float;
}
class Shape implements Area {
	public function __construct(protected array $sides) {}
	public function area(): float { return array_product($this->sides); }
}
class Cube extends Shape {
	public function area(): float { return 6 * parent::area() / max(1, $this->sides[0]); }
}
class Expression {
	private array $tokens;
	private int $at = 0;
	public function __construct(string $text) { $this->tokens = preg_split('/\s+/', $text); }
	public function sum(): int {
		$sum = $this->product();
		while (($this->tokens[$this->at] ?? '') === '+') {
			$this->at++;
			$sum += $this->product();
		}
		return $sum;
	}
	private function product(): int {
		$first = $this->tokens[$this->at++];
		if ($first === '(') {
			$value = $this->sum();
			$this->at++;
		} else {
			$value = (int)$first;
		}
		if (($this->tokens[$this->at] ?? '') !== '*') return $value;
		$this->at++;
		return $value * $this->product() % 100003;
	}
}
function permutations(array $rest, int $least): int {
	if (!$rest) return $least;
	$sum = 0;
	foreach ($rest as $k => $v) {
		$others = $rest;
		unset($others[$k]);
		$sum += permutations($others, $least ^ $v);
	}
	return $sum;
}
$rounds = (int)($argv[1] ?? 10);
$total = 0.0;
for ($round = 0; $round < $rounds; $round++) {
	for ($i = 1; $i <= 60; $i++) {
		$shape = $i % 2 ? new Shape([$i % 7, $round % 5 + 1, 3]) : new Cube([$i % 7, $round % 5 + 1, 3]);
		$total += $shape->area();
		$parts[$i] = $i % 6 ? "$i * $round" : "( $i + $round * 2 )";
	}
	$total += (new Expression(implode(' + ', $parts)))->sum();
	for ($i = 0, $x = 0.5; $i < 300; $i++) $x = 3.7 * $x * (1 - $x) + $i * 1e-9;
	$total += floor($x * 1000) + permutations([1, 2, 3, 4, $round], 0);
	$said = json_decode(json_encode(['round' => $round, 'parts' => $parts, 'x' => [$total, true, null]]), true);
	$total = fmod($total + count($said['parts']), 1000000007);
}
printf("%.3f\n", $total);
