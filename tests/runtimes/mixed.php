<?php // SPDX-License-Identifier: Apache-2.0
$sums = [];
for ($i = 0; $i < 300000; $i++)
    $sums["k" . ($i % 1000)] = ($sums["k" . ($i % 1000)] ?? 0) + $i;
echo count($sums), " ", $sums["k5"], "\n";
try { throw new Exception("thrown"); } catch (Exception $e) { echo $e->getMessage(), "\n"; }
function three() { for ($i = 0; $i < 3; $i++) yield $i; }
foreach (three() as $v) echo $v;
usort($sums, fn($x, $y) => $x <=> $y);
echo preg_replace('/b+/', 'c', 'abbb'), " ", $sums[0], "\n";
