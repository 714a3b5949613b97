; SPDX-License-Identifier: Apache-2.0
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(garbage-collect)
(message "%s %s" (fib 20) (condition-case e (error "signalled") (error e)))
