; SPDX-License-Identifier: Apache-2.0
; Test work for newLISP: the queens problem, on lists; the file before this one sets `size`.

(define (safe? queen placed distance)
	(cond
		((empty? placed) true)
		((= queen (first placed)) nil)
		((= (abs (- queen (first placed))) distance) nil)
		(true (safe? queen (rest placed) (+ distance 1)))))

(set 'solutions 0 'tried 0)

(define (place row placed)
	(if (= row 0)
		(begin
			(inc solutions)
			(if (= 1 (% solutions 20)) (println placed)))
		(for (queen 1 size)
			(inc tried)
			(if (safe? queen placed 1)
				(place (- row 1) (cons queen placed))))))

(place size '())
(println solutions " of " tried)
(exit)
