<?php
// SPDX-License-Identifier: Apache-2.0
// Training of PHP: strings and arrays. Usage: train.php ROUNDS
$x = 4711;
$words = [];
for ($i = 0; $i < 3000; $i++) {
	$x = ($x * 69069 + 12345) % 2147483648;
	$words[] = "word" . ($x % 977);
}
for ($round = 0; $round < (int)$argv[1]; $round++) {
	$count = [];
	foreach ($words as $w)
		$count[$w] = ($count[$w] ?? 0) + strlen($w);
	arsort($count);
	$text = strtoupper(implode(",", array_map(fn($k, $v) => "$k=$v", array_keys($count), $count)));
	$n = count(array_filter(explode(",", $text), fn($s) => strpos($s, "7") !== false));
	if ($round % 50 == 0)
		echo $round, " ", $n, " ", strlen(str_replace("WORD", "w", $text)), " ", md5($text), "\n";
}
