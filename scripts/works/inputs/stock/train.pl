# SPDX-License-Identifier: Apache-2.0
# Training work for perl: splitting, hashes, substitutions, sorting by keys. Argument: how much.
use strict;
use warnings;

my $rounds = shift || 10;
my (%words, @lines, $x);
$x = 4711;
for my $round (1 .. $rounds) {
	for my $i (1 .. 4000) {
		$x = ($x * 69069 + 12345) % 2147483648;
		push @lines, sprintf("%d;word%d;%s;%05.2f", $x, $x % 977,
			substr("the quick brown fox jumps over", $x % 20, 9), $x / 1e7);
	}
	for (@lines) {
		my ($number, $word, $text, $price) = split /;/;
		$words{$word}{count}++;
		$words{$word}{sum} += $price;
		$text =~ s/(\w+) (\w+)/$2 $1/;
		$words{$word}{last} = ucfirst $text if $text =~ /^(?:q|b)\w*\s?/;
		push @{ $words{$word}{digits} }, $1 if $number =~ /(\d)\1/;
	}
	@lines = ();
}
for my $word (sort { $words{$b}{count} <=> $words{$a}{count} || $a cmp $b } keys %words) {
	my $w = $words{$word};
	printf "%s %d %.2f %s %s\n", $word, $w->{count}, $w->{sum}, $w->{last} // "-",
		join "", (@{ $w->{digits} || [] })[0 .. 2] if @{ $w->{digits} || [] } > 2;
}
