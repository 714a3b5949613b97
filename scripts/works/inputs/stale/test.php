<?php
// SPDX-License-Identifier: Apache-2.0
// Other work for PHP: objects, numbers, exceptions, serialisation. Usage: test.php ROUNDS
class Vec
{
	public function __construct(public float $x, public float $y)
	{
	}

	public function add(Vec $o): Vec
	{
		return new Vec($this->x + $o->x, $this->y + $o->y);
	}
}

function collatz(int $n): int
{
	for ($steps = 0; $n != 1; $steps++)
		$n = $n % 2 ? 3 * $n + 1 : intdiv($n, 2);
	return $steps;
}

$sum = new Vec(0, 0);
$failed = $longest = 0;
for ($i = 1; $i <= (int)$argv[1] * 10; $i++) {
	$longest = max($longest, collatz($i));
	try {
		if ($i % 5 == 0)
			throw new InvalidArgumentException("five");
		$sum = $sum->add(new Vec($i, sqrt($i)));
	} catch (InvalidArgumentException $e) {
		$failed += strlen($e->getMessage());
	}
}
$tree = json_decode(json_encode(["a" => range(1, 50), "b" => ["c" => $longest]]), true);
printf("%d %d %.3f %d %s\n", $longest, $sum->x, $sum->y, $failed,
	crc32(serialize($tree)) . preg_replace('/[aeiou](.)/', '$1', "interpreter"));
