<?php
// SPDX-License-Identifier: Apache-2.0
// Training work for PHP: words, arrays, sorting, regular expressions. Argument: how much.
$rounds = (int)($argv[1] ?? 10);
$state = 1;
function next_number(): int {
	global $state;
	return $state = ($state * 1103515245 + 12345) % 2147483648;
}
$total = 0;
for ($round = 0; $round < $rounds; $round++) {
	$count = [];
	$words = [];
	for ($i = 0; $i < 500; $i++) {
		$word = sprintf('word%d-%x', next_number() % 97, $i);
		$words[] = $word;
		$key = explode('-', $word)[0];
		$count[$key] = ($count[$key] ?? 0) + strlen($word);
	}
	arsort($count);
	$best = array_slice($count, 0, 10);
	$text = preg_replace_callback('/d(\d)-/', fn ($m) => '<' . ucfirst($m[1]) . '>', implode(' ', $words));
	$total = ($total * 31 + strlen($text) + array_sum($best) + crc32(serialize($best))) % 1000003;
	foreach (array_chunk($words, 7) as $some) {
		$line = strtoupper(htmlspecialchars(join(';', $some)));
		$total += preg_match('/[5-9]-A/', $line) + substr_count($line, '7');
	}
}
echo $total, "\n";
