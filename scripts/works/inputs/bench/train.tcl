# SPDX-License-Identifier: Apache-2.0
# Training work for Tcl: lists, dictionaries, strings, regular expressions, objects,
# procedures, coroutines, big integers, binary data.
set scale [expr {[llength $argv] ? [lindex $argv 0] : 1}]

proc fib n { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }

proc sieve n {
	set marks [lrepeat [expr {$n + 1}] 1]
	set count 0
	for {set i 2} {$i <= $n} {incr i} {
		if {![lindex $marks $i]} continue
		incr count
		for {set j [expr {$i * $i}]} {$j <= $n} {incr j $i} { lset marks $j 0 }
	}
	return $count
}

proc words n {
	set counts [dict create]
	set seed 7
	for {set i 0} {$i < $n} {incr i} {
		set seed [expr {($seed * 1103515245 + 12345) & 0x7fffffff}]
		dict incr counts w[expr {$seed % 700}]
		dict lappend byfirst [string index $seed 0] $seed
	}
	set sum 0
	dict for {word count} $counts { incr sum [expr {$count * [string length $word]}] }
	foreach key [lsort [dict keys $byfirst]] {
		set list [lsort -integer [dict get $byfirst $key]]
		incr sum [lindex $list [expr {[llength $list] / 2}]]
	}
	return $sum
}

proc rewrite n {
	set out {}
	for {set i 0} {$i < $n} {incr i} {
		set line "key$i = value [expr {$i * 3}] ; note-[format %04x $i]"
		if {[regexp {^(\w+)\s*=\s*(\w+)\s+(\d+)} $line -> key word number]} {
			append out [string toupper $key]=$number,
		}
		regsub -all {[aeiou]} $line {<&>} line
		set line [string map {<e> E <o> O} $line]
		incr total [string length $line]
	}
	return "$total [string length $out] [string range $out 0 30]"
}

oo::class create Account {
	variable balance history
	constructor {start} { set balance $start; set history {} }
	method deposit amount { incr balance $amount; lappend history $amount; return $balance }
	method sum {} { return [tcl::mathop::+ {*}$history] }
}
oo::class create Savings {
	superclass Account
	variable rate
	constructor {start percent} { next $start; set rate $percent }
	method deposit amount { next [expr {$amount + $amount * $rate / 100}] }
}

proc objects n {
	set a [Account new 100]
	set b [Savings new 50 7]
	for {set i 0} {$i < $n} {incr i} { $a deposit [expr {$i % 13}]; $b deposit [expr {$i % 17}] }
	set result "[$a sum] [$b sum]"
	$a destroy; $b destroy
	return $result
}

proc generator n { yield; for {set i 0} {$i < $n} {incr i} { yield [expr {$i * $i % 91}] }; return done }

proc coroutines n {
	coroutine next generator $n
	set sum 0
	while {[set x [next]] ne "done"} { incr sum $x }
	return $sum
}

proc big n {
	set f 1
	for {set i 2} {$i <= $n} {incr i} { set f [expr {$f * $i}] }
	return [string length $f]
}

proc packed n {
	set sum 0
	for {set i 0} {$i < $n} {incr i} {
		set bytes [binary format Isca4 $i [expr {$i % 999}] [expr {$i % 100}] abcd]
		binary scan $bytes Isca4 a b c d
		incr sum [expr {$a + $b + $c}]
	}
	return $sum
}

proc tree {depth} { expr {$depth ? [list [tree [incr depth -1]] $depth [tree $depth]] : {}} }
proc weigh {tree} {
	if {$tree eq {}} { return 1 }
	lassign $tree left depth right
	expr {[weigh $left] + $depth + [weigh $right]}
}

proc caught n {
	set sum 0
	for {set i 0} {$i < $n} {incr i} {
		try { if {$i % 3 == 0} { error "bad $i" } elseif {$i % 3 == 1} { throw {MY KIND} $i } } \
		trap {MY KIND} value { incr sum $value } on error text { incr sum [string length $text] }
	}
	return $sum
}

foreach {what work} {
	fib {fib [expr {17 + int(log($scale + 1) / log(2))}]} sieve {sieve [expr {60000 * $scale}]}
	words {words [expr {40000 * $scale}]} rewrite {rewrite [expr {9000 * $scale}]}
	objects {objects [expr {30000 * $scale}]} coroutines {coroutines [expr {50000 * $scale}]}
	big {big [expr {700 * min($scale, 3)}]} packed {packed [expr {40000 * $scale}]}
	tree {weigh [tree [expr {12}]]} caught {caught [expr {10000 * $scale}]}
} { puts "$what [eval $work]" }
