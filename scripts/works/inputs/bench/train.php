<?php
// SPDX-License-Identifier: Apache-2.0
// Training work for PHP: arrays, strings, objects, closures, generators, a template,
// exceptions, regular expressions, JSON, sorting, numbers.
$rounds = (int)($argv[1] ?? 1);

function fib(int $n): int { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }

function sieve(int $n): int {
	$marks = array_fill(0, $n + 1, true);
	$count = 0;
	for ($i = 2; $i <= $n; $i++) {
		if (!$marks[$i]) continue;
		$count++;
		for ($j = $i * $i; $j <= $n; $j += $i) $marks[$j] = false;
	}
	return $count;
}

interface Shape { public function area(): float; }
abstract class Named implements Shape {
	private static int $made = 0;
	public function __construct(protected string $name) { self::$made++; }
	public static function made(): int { return self::$made; }
	public function __toString(): string { return sprintf("%s of %.2f", $this->name, $this->area()); }
}
final class Circle extends Named {
	public function __construct(private float $r) { parent::__construct("circle"); }
	public function area(): float { return M_PI * $this->r ** 2; }
}
final class Box extends Named {
	public function __construct(private float $a, private float $b) { parent::__construct("box"); }
	public function area(): float { return $this->a * $this->b; }
}

function shapes(int $n): string {
	$total = 0.0;
	$longest = 0;
	for ($i = 0; $i < $n; $i++) {
		$shape = $i % 3 ? new Box($i % 17, $i % 5 + 1) : new Circle($i % 11);
		$total += $shape->area();
		if ($i % 8 == 0) $longest = max($longest, strlen((string)$shape));
	}
	return sprintf("%.3f %d %d", $total, $longest, Named::made());
}

function words(int $n): string {
	$seed = 7;
	$counts = [];
	for ($i = 0; $i < $n; $i++) {
		$seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
		$word = "w" . $seed % 997;
		$counts[$word] = ($counts[$word] ?? 0) + 1;
	}
	arsort($counts);
	ksort($counts, SORT_STRING);
	$kept = array_filter($counts, fn($c, $w) => $c % 3 && $w !== "w5", ARRAY_FILTER_USE_BOTH);
	$sum = array_sum(array_map(fn($w, $c) => strlen($w) * $c, array_keys($kept), $kept));
	return count($kept) . " $sum " . array_key_first($kept);
}

function template(int $n): string {
	$rows = "";
	for ($i = 0; $i < $n; $i++) {
		$row = ["id" => $i, "name" => "user<" . dechex($i * 31) . ">", "score" => $i % 101 / 7];
		$cells = "";
		foreach ($row as $key => $value) {
			$text = is_float($value) ? number_format($value, 3) : htmlspecialchars((string)$value);
			$cells .= strtr("<td class='{k}'>{v}</td>", ["{k}" => $key, "{v}" => $text]);
		}
		$rows .= "<tr>" . trim($cells) . "</tr>\n";
		if (strlen($rows) > 60000) $rows = substr($rows, 30000);
	}
	return strlen($rows) . " " . md5($rows) . " " . substr_count($rows, "&lt;");
}

function numbers(int $n): Generator {
	for ($i = 0; $i < $n; $i++) {
		$got = yield $i % 7 => $i * $i % 1009;
		if ($got) $i += $got;
	}
	return $n;
}

function generators(int $n): int {
	$sum = 0;
	foreach (numbers($n) as $k => $v) $sum += $k * $v;
	return $sum;
}

function caught(int $n): int {
	$sum = 0;
	for ($i = 0; $i < $n; $i++) {
		try {
			if ($i % 3 == 0) throw new RangeException("bad $i", $i % 10);
			if ($i % 3 == 1) throw new LengthException("long");
			$sum += intdiv($i, $i % 2);
		} catch (RangeException $e) {
			$sum += $e->getCode();
		} catch (LengthException | DivisionByZeroError $e) {
			$sum += strlen($e->getMessage());
		} finally {
			$sum++;
		}
	}
	return $sum;
}

function records(int $n): string {
	$all = [];
	for ($i = 0; $i < $n; $i++)
		$all[] = ["k" => $i * 7919 % 10007, "t" => str_pad((string)($i % 89), 5, "x"), "n" => [$i, [$i + 1]]];
	usort($all, fn($a, $b) => $a["t"] <=> $b["t"] ?: $b["k"] - $a["k"]);
	$text = json_encode($all);
	$back = json_decode($text, true);
	$column = array_column($back, "k", "t");
	return strlen($text) . " " . crc32(serialize($column)) . " " . count(unserialize(serialize($back)));
}

function matrices(int $n): string {
	$a = $b = $c = [];
	for ($i = 0; $i < $n; $i++)
		for ($j = 0; $j < $n; $j++) {
			$a[$i][$j] = $i * $j % 7 / 3;
			$b[$i][$j] = ($i + $j) % 5 - 1.5;
		}
	for ($i = 0; $i < $n; $i++)
		for ($j = 0; $j < $n; $j++) {
			$sum = 0.0;
			for ($k = 0; $k < $n; $k++) $sum += $a[$i][$k] * $b[$k][$j];
			$c[$i][$j] = $sum;
		}
	return sprintf("%.6f", $c[$n - 1][$n - 2] + $c[1][2]);
}

function scan(int $n): string {
	$hits = 0;
	$out = "";
	for ($i = 0; $i < $n; $i++) {
		$line = "field$i = " . $i * 3 . "; note-" . dechex($i) . " # end";
		if (preg_match('/^(\w+)\s*=\s*(\d+);\s+note-([0-9a-f]+)/', $line, $m)) $hits += (int)$m[2] + strlen($m[3]);
		$line = preg_replace('/[aeiou]+(?=\d)/', '<$0>', $line);
		$parts = explode(" ", ucwords(str_replace(["=", ";"], " ", $line)));
		$out = substr($out . implode(",", array_reverse($parts)), -500);
	}
	return "$hits " . md5($out);
}

for ($round = 0; $round < $rounds; $round++) {
	echo "fib ", fib(21 + $round % 3), "\n";
	echo "sieve ", sieve(200000 + $round), "\n";
	echo "shapes ", shapes(120000 + $round), "\n";
	echo "words ", words(150000 + $round), "\n";
	echo "template ", template(20000 + $round), "\n";
	echo "generators ", generators(200000 + $round), "\n";
	echo "caught ", caught(40000 + $round), "\n";
	for ($i = 0; $i < 4; $i++) echo "records ", records(4000 + 100 * $i), "\n";
	for ($i = 0; $i < 2; $i++) echo "matrices ", matrices(60 + $i), "\n";
	echo "scan ", scan(15000 + $round), "\n";
}
