; SPDX-License-Identifier: Apache-2.0
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (fib 24)) (newline)
(display (catch 'x (lambda () (throw 'x 1)) (lambda a a))) (newline)
(gc)
(display (call/cc (lambda (k) (+ 1 (k 5))))) (newline)
