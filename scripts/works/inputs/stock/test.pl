# SPDX-License-Identifier: Apache-2.0
# Test work for perl: objects and closures, a small parser with recursion, pack, local. Argument: how
# much.
use strict;
use warnings;

package Shape;
sub new { my ($class, @sides) = @_; return bless { sides => [@sides] }, $class }
sub area { my $self = shift; my $a = 1; $a *= $_ for @{ $self->{sides} }; return $a }
package Cube;
our @ISA = ('Shape');
sub area { my $self = shift; return 6 * $self->SUPER::area() / ($self->{sides}[0] || 1) }
package main;

my $rounds = shift || 10;

sub expression {
	my ($tokens) = @_;
	my $value = term($tokens);
	while (@$tokens && $tokens->[0] =~ /^[-+]$/) {
		my $op = shift @$tokens;
		my $right = term($tokens);
		$value = $op eq '+' ? $value + $right : $value - $right;
	}
	return $value;
}

sub term {
	my ($tokens) = @_;
	my $t = shift @$tokens;
	my $value = $t eq '(' ? do { my $v = expression($tokens); shift @$tokens; $v } : $t;
	if (@$tokens && $tokens->[0] eq '*') {
		shift @$tokens;
		$value = ($value * term($tokens)) % 100003;
	}
	return $value;
}

my ($total, $packed) = (0, '');
my %dispatch = map { my $n = $_; $n => sub { return $_[0] * $n + 1 } } 1 .. 7;
for my $i (1 .. $rounds * 200) {
	my @tokens = "($i+3)*(12-$i)*7+(5*(8+$i)-2)" =~ /\d+|[-+*()]/g;
	$total += expression(\@tokens);
	my $shape = $i % 2 ? Cube->new($i, 2, 3) : Shape->new($i, 4);
	$total += $shape->area;
	$total = $dispatch{ 1 + $i % 7 }->($total) % 1000003;
	$packed = pack('N n C a4', $total, $i % 65536, $i % 256, chr(65 + $i % 26) x 3) . substr($packed, 0, 40);
	my @fields = unpack('N n C a4', $packed);
	$total += $fields[1] ^ $fields[2];
	my @list = map { $_ ** 2 % 97 } grep { $_ % 3 } reverse 1 .. 20;
	my $k = 0;
	$k += $list[$_] < $list[$_ - 1] ? 1 : 0 for 1 .. $#list;
	eval { die { code => $k } if $i % 5 == 0; 1 } or $total += $@->{code};
}
print "$total ", unpack('H*', $packed), "\n";
