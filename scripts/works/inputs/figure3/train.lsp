; SPDX-License-Identifier: Apache-2.0
; Training work for newLISP: strings, symbolic algebra, sorting, dictionaries, arrays.
; The number `rounds` is set by the file before this one.

(set 'state 4711)
(define (draw limit)
	(set 'state (& (+ (* state 69069) 12345) 0x7fffffff))
	(% (>> state 8) limit))

; Derivatives of expressions as lists, simplified.
(define (simple op a b)
	(cond
		((and (= op '+) (= a 0)) b)
		((and (= op '+) (= b 0)) a)
		((and (= op '*) (or (= a 0) (= b 0))) 0)
		((and (= op '*) (= a 1)) b)
		((and (= op '*) (= b 1)) a)
		(true (list op a b))))

(define (derive e)
	(cond
		((number? e) 0)
		((symbol? e) 1)
		((= (e 0) '+) (simple '+ (derive (e 1)) (derive (e 2))))
		(true (simple '+ (simple '* (derive (e 1)) (e 2)) (simple '* (e 1) (derive (e 2)))))))

(define (expression depth)
	(if (= depth 0)
		(if (= (draw 3) 0) 'x (draw 5))
		(list (if (= (draw 2) 0) '+ '*) (expression (- depth 1)) (expression (- depth 1)))))

(define (leaves e)
	(if (list? e) (+ (leaves (e 1)) (leaves (e 2))) 1))

; Words of a text, counted in a dictionary.
(define Words:Words)

(define (text size)
	(let (out '())
		(dotimes (i size)
			(push (append (char (+ 97 (draw 20))) (string (draw 90))) out -1))
		(join out (if (= (draw 2) 0) " " ", "))))

(define (count-words line)
	(dolist (word (parse line "[ ,]+" 0))
		(Words word (+ 1 (or (Words word) 0)))))

; Primes, in an array.
(define (sieve limit)
	(let (flags (array (+ limit 1) '(true)) found 0)
		(for (i 2 limit)
			(when (flags i)
				(inc found)
				(if (<= (* i i) limit)
					(for (k (* i i) limit i) (setf (flags k) nil)))))
		found))

(define (ackermann m n)
	(cond
		((= m 0) (+ n 1))
		((= n 0) (ackermann (- m 1) 1))
		(true (ackermann (- m 1) (ackermann m (- n 1))))))

(dotimes (nr rounds)
	(let (e (expression 8))
		(println "leaves " (leaves e) " " (leaves (derive (derive e)))))
	(dotimes (i 60) (count-words (text 40)))
	(let (numbers (sequence 1 1500))
		(set 'numbers (map (fn (x) (draw 100000)) numbers))
		(sort numbers (fn (a b) (< (% a 1009) (% b 1009))))
		(println "sorted " (slice numbers 0 5) " " (apply + (filter odd? numbers))))
	(println "primes " (sieve 9000))
	(println "ackermann " (ackermann 2 25))
	(println (upper-case (replace "a[0-4]+" (text 50) (string "<" (length $0) ">") 0))))

(println (length (Words)) " words")
(exit)
