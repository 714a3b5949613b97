# SPDX-License-Identifier: Apache-2.0
# Test work for Tcl: a calculator with a tokenizer, shortest paths, a game of life,
# matrices, text set in columns, an editor's distance, Huffman codes.
set short [expr {[lindex $argv 0] eq "short"}]

proc tokens text {
	set out {}
	while {$text ne ""} {
		switch -regexp -matchvar m -- $text {
			{^\s+} {}
			{^[0-9]+(\.[0-9]+)?} { lappend out number [lindex $m 0] }
			{^[a-z]\w*} { lappend out name [lindex $m 0] }
			default { set m [list [string index $text 0]]; lappend out sign [lindex $m 0] }
		}
		set text [string range $text [string length [lindex $m 0]] end]
	}
	return $out
}

proc primary {} {
	upvar #0 stream stream variables variables
	set stream [lassign $stream kind text]
	if {$kind eq "number"} { return $text }
	if {$kind eq "name"} { return $variables($text) }
	if {$text eq "-"} { return [expr {-[primary]}] }
	set value [sum]
	set stream [lrange $stream 2 end]
	return $value
}
proc product {} {
	upvar #0 stream stream
	set value [primary]
	while {[lindex $stream 1] in {* /}} {
		set stream [lassign $stream - sign]
		set right [primary]
		set value [expr {$sign eq "*" ? $value * $right : $value / ($right + 0.5)}]
	}
	return $value
}
proc sum {} {
	upvar #0 stream stream
	set value [product]
	while {[lindex $stream 1] in {+ -}} {
		set stream [lassign $stream - sign]
		set right [product]
		set value [expr {$sign eq "+" ? $value + $right : $value - $right}]
	}
	return $value
}
proc calculate n {
	global stream variables
	array set variables {x 3 y 4 rate 0.25}
	set all 0.0
	for {set i 0} {$i < $n} {incr i} {
		set stream [tokens "(x + $i) * rate - y / (2 + x * $i) + -(7 - rate)"]
		set all [expr {$all + [sum]}]
	}
	return [format %.4f $all]
}

proc paths n {
	for {set i 0} {$i < $n} {incr i} {
		set distance($i) 1000000
		set edges($i) [list [expr {($i * 7 + 1) % $n}] [expr {$i % 11 + 1}] \
			[expr {($i + 1) % $n}] [expr {$i % 5 + 2}]]
	}
	set distance(0) 0
	set queue {{0 0}}
	while {[llength $queue]} {
		set queue [lsort -integer -index 0 $queue]
		set queue [lassign $queue first]
		lassign $first cost at
		if {$cost > $distance($at)} continue
		foreach {to length} $edges($at) {
			set c [expr {$cost + $length}]
			if {$c < $distance($to)} { set distance($to) $c; lappend queue [list $c $to] }
		}
	}
	foreach at [array names distance] { incr total $distance($at) }
	return $total
}

proc life {size turns} {
	for {set i 0} {$i < $size * $size} {incr i} { lappend cells [expr {$i * 7919 % 13 < 5}] }
	for {set t 0} {$t < $turns} {incr t} {
		set next {}
		for {set y 0} {$y < $size} {incr y} {
			set rows {}
			foreach d {-1 0 1} { lappend rows [expr {($y + $d + $size) % $size * $size}] }
			for {set x 0} {$x < $size} {incr x} {
				set n 0
				foreach row $rows {
					incr n [lindex $cells [expr {$row + ($x + $size - 1) % $size}]]
					incr n [lindex $cells [expr {$row + $x}]]
					incr n [lindex $cells [expr {$row + ($x + 1) % $size}]]
				}
				set alive [lindex $cells [expr {$y * $size + $x}]]
				lappend next [expr {$n == 3 || ($alive && $n == 4)}]
			}
		}
		set cells $next
	}
	return [tcl::mathop::+ {*}$cells]
}

proc distance {a b} {
	set previous {}
	for {set i 0} {$i <= [string length $b]} {incr i} { lappend previous $i }
	set i 0
	foreach c [split $a {}] {
		set row [list [incr i]]
		set j 0
		foreach d [split $b {}] {
			set cost [expr {[lindex $previous $j] + ($c ne $d)}]
			set cost [expr {min($cost, [lindex $row $j] + 1, [lindex $previous $j+1] + 1)}]
			lappend row $cost
			incr j
		}
		set previous $row
	}
	return [lindex $previous end]
}

proc columns {words width} {
	set out {}
	set line {}
	foreach word $words {
		if {[string length $line] + [string length $word] + 1 > $width} {
			lappend out [string trimright [format "%-*s|" $width $line]]
			set line {}
		}
		set line [string trim "$line $word"]
	}
	return [string length [join [lreverse $out] \n]]
}

proc huffman text {
	foreach c [split $text {}] { incr count($c) }
	set nodes {}
	foreach c [lsort [array names count]] { lappend nodes [list $count($c) $c] }
	while {[llength $nodes] > 1} {
		set nodes [lassign [lsort -integer -index 0 $nodes] a b]
		foreach c [split [lindex $a 1] {}] { append code($c) 0 }
		foreach c [split [lindex $b 1] {}] { append code($c) 1 }
		lappend nodes [list [expr {[lindex $a 0] + [lindex $b 0]}] [lindex $a 1][lindex $b 1]]
	}
	foreach c [array names count] { incr bits [expr {$count($c) * [string length $code($c)]}] }
	return $bits
}

set text [string repeat "it was a bright cold day in april and the clocks were striking thirteen " 9]
if {$short} {
	set work {calculate 300 paths 500 life {24 6}}
} else {
	set work {calculate 5000 paths 4000 life {40 70}}
}
foreach {command amount} $work { puts "$command [eval $command $amount]" }
set rounds [expr {$short ? 3 : 45}]
for {set i 0} {$i < $rounds} {incr i} {
	set a [string range $text $i [expr {$i + 90}]]
	append all [distance $a [string reverse $a]] " " [columns [split $text$i] [expr {30 + $i}]] " "
	append all [huffman [string range $text $i end]$i] " "
}
puts $all
