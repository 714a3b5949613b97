<?php
// SPDX-License-Identifier: Apache-2.0
// Test work for PHP: a language of its own with lexer, parser and evaluator, a linked
// tree with deletions, a spectral norm, a maze, a diff of texts, bits, big numbers.
$scale = ($argv[1] ?? "") === "short" ? 4 : 64;

enum Kind { case Number; case Name; case Sign; case End; }

final class Token {
	public function __construct(public readonly Kind $kind, public readonly string $text) {}
}

final class Lexer {
	private int $at = 0;
	public function __construct(private string $source) {}
	public function next(): Token {
		$s = $this->source;
		$n = strlen($s);
		while ($this->at < $n && ctype_space_($s[$this->at])) $this->at++;
		if ($this->at >= $n) return new Token(Kind::End, "");
		$c = $s[$this->at];
		$start = $this->at;
		if ($c >= "0" && $c <= "9") {
			while ($this->at < $n && $s[$this->at] >= "0" && $s[$this->at] <= "9") $this->at++;
			return new Token(Kind::Number, substr($s, $start, $this->at - $start));
		}
		if ($c >= "a" && $c <= "z") {
			while ($this->at < $n && $s[$this->at] >= "a" && $s[$this->at] <= "z") $this->at++;
			return new Token(Kind::Name, substr($s, $start, $this->at - $start));
		}
		$this->at++;
		return new Token(Kind::Sign, $c);
	}
}

function ctype_space_(string $c): bool { return $c === " " || $c === "\t" || $c === "\n"; }

final class Parser {
	private Token $token;
	private const STRENGTH = ["+" => 1, "-" => 1, "*" => 2, "%" => 2, "^" => 3];
	public function __construct(private Lexer $lexer) { $this->token = $lexer->next(); }
	private function take(): Token {
		$token = $this->token;
		$this->token = $this->lexer->next();
		return $token;
	}
	public function expression(int $least = 0): array {
		$token = $this->take();
		$left = match ($token->kind) {
			Kind::Number => ["number", (int)$token->text],
			Kind::Name => ["name", $token->text],
			Kind::Sign => $this->group($token->text),
			Kind::End => throw new UnexpectedValueException("early end"),
		};
		while ($this->token->kind === Kind::Sign && (self::STRENGTH[$this->token->text] ?? -1) > $least) {
			$sign = $this->take()->text;
			$left = [$sign, $left, $this->expression(self::STRENGTH[$sign])];
		}
		return $left;
	}
	private function group(string $sign): array {
		if ($sign === "-") return ["negate", $this->expression(2)];
		$inner = $this->expression();
		$this->take();
		return $inner;
	}
}

function evaluate(array $node, array &$names): int {
	switch ($node[0]) {
	case "number": return $node[1];
	case "name": return $names[$node[1]] ??= strlen($node[1]);
	case "negate": return -evaluate($node[1], $names);
	case "+": return evaluate($node[1], $names) + evaluate($node[2], $names);
	case "-": return evaluate($node[1], $names) - evaluate($node[2], $names);
	case "*": return evaluate($node[1], $names) * evaluate($node[2], $names) % 1000003;
	case "%": return evaluate($node[1], $names) % (abs(evaluate($node[2], $names)) + 1);
	default: return evaluate($node[1], $names) ^ evaluate($node[2], $names);
	}
}

function language(int $n): int {
	$names = ["x" => 3];
	$sum = 0;
	for ($i = 0; $i < $n; $i++) {
		$names["x"] = $i;
		$parser = new Parser(new Lexer("(x + $i) * 7 - -(alpha % 5 ^ beta) * (x - (gamma + $i % 9)) + x"));
		$tree = $parser->expression();
		for ($j = 0; $j < 3; $j++) $sum = ($sum * 31 + evaluate($tree, $names)) % 1000000007;
	}
	return $sum;
}

final class Node {
	public ?Node $left = null;
	public ?Node $right = null;
	public function __construct(public int $key, public int $rank) {}
}

function insert(?Node $node, int $key, int $rank): Node {
	if ($node === null) return new Node($key, $rank);
	if ($key < $node->key) {
		$node->left = insert($node->left, $key, $rank);
		if ($node->left->rank < $node->rank) { $l = $node->left; $node->left = $l->right; $l->right = $node; return $l; }
	} elseif ($key > $node->key) {
		$node->right = insert($node->right, $key, $rank);
		if ($node->right->rank < $node->rank) { $r = $node->right; $node->right = $r->left; $r->left = $node; return $r; }
	}
	return $node;
}

function merge(?Node $a, ?Node $b): ?Node {
	if ($a === null || $b === null) return $a ?? $b;
	if ($a->rank < $b->rank) { $a->right = merge($a->right, $b); return $a; }
	$b->left = merge($a, $b->left);
	return $b;
}

function remove(?Node $node, int $key): ?Node {
	if ($node === null) return null;
	if ($key === $node->key) return merge($node->left, $node->right);
	if ($key < $node->key) $node->left = remove($node->left, $key);
	else $node->right = remove($node->right, $key);
	return $node;
}

function depth(?Node $node): int { return $node ? 1 + max(depth($node->left), depth($node->right)) : 0; }

function tree(int $n): string {
	$root = null;
	for ($i = 0; $i < $n; $i++) $root = insert($root, $i * 7919 % 100003, $i * 104729 % 99991);
	for ($i = 0; $i < $n; $i += 3) $root = remove($root, $i * 7919 % 100003);
	return depth($root) . " " . $root->key;
}

function spectral(int $n): string {
	$a = fn(int $i, int $j): float => 1 / (($i + $j) * ($i + $j + 1) / 2 + $i + 1);
	$u = array_fill(0, $n, 1.0);
	for ($k = 0; $k < 3; $k++)
		foreach ([false, true] as $turned) {
			$v = [];
			for ($i = 0; $i < $n; $i++) {
				$s = 0.0;
				foreach ($u as $j => $x) $s += ($turned ? $a($j, $i) : $a($i, $j)) * $x;
				$v[] = $s;
			}
			$u = $v;
		}
	return sprintf("%.9f", sqrt(array_sum($u)));
}

function maze(int $size): string {
	$grid = [];
	for ($y = 0; $y < $size; $y++) {
		$row = "";
		for ($x = 0; $x < $size; $x++) $row .= ($x * 31 ^ $y * 17) % 7 < 2 ? "#" : ".";
		$grid[] = $row;
	}
	$grid[0][0] = ".";
	$seen = ["0,0" => 0];
	$queue = new SplQueue();
	$queue->enqueue([0, 0]);
	while (!$queue->isEmpty()) {
		[$x, $y] = $queue->dequeue();
		foreach ([[1, 0], [0, 1], [-1, 0], [0, -1]] as [$dx, $dy]) {
			$to = ($x + $dx) . "," . ($y + $dy);
			if (($grid[$y + $dy][$x + $dx] ?? "#") === "#" || $x + $dx < 0 || $y + $dy < 0 || isset($seen[$to])) continue;
			$seen[$to] = $seen["$x,$y"] + 1;
			$queue->enqueue([$x + $dx, $y + $dy]);
		}
	}
	return count($seen) . " " . max($seen);
}

function difference(int $n): string {
	$a = $b = [];
	for ($i = 0; $i < $n; $i++) {
		$a[] = "line " . $i * 13 % 41;
		$b[] = "line " . $i * 11 % 37;
	}
	$best = [array_fill(0, $n + 1, 0)];
	foreach ($a as $i => $x) {
		$best[$i + 1] = [0];
		foreach ($b as $j => $y)
			$best[$i + 1][] = $x === $y ? $best[$i][$j] + 1 : max($best[$i][$j + 1], $best[$i + 1][$j]);
	}
	similar_text(implode("", $a), implode("", $b), $percent);
	return $best[$n][$n] . sprintf(" %.3f %d", $percent, levenshtein(substr(implode($a), 0, 200), substr(implode($b), 0, 200)));
}

function factorial(int $n): string {
	$digits = [1];
	for ($i = 2; $i <= $n; $i++) {
		$carry = 0;
		foreach ($digits as &$d) {
			$carry += $d * $i;
			$d = $carry % 10000;
			$carry = intdiv($carry, 10000);
		}
		unset($d);
		for (; $carry; $carry = intdiv($carry, 10000)) $digits[] = $carry % 10000;
	}
	return count($digits) . " " . array_sum($digits);
}

echo "language ", language(400 * $scale), "\n";
echo "tree ", tree(1000 * $scale), "\n";
echo "spectral ", spectral(40 * (int)sqrt($scale)), "\n";
echo "maze ", maze(30 * (int)sqrt($scale)), "\n";
echo "difference ", difference(80 * (int)sqrt($scale)), "\n";
echo "factorial ", factorial(150 * (int)sqrt($scale)), "\n";
