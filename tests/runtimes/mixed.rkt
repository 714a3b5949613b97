#lang racket/base
; SPDX-License-Identifier: Apache-2.0
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(displayln (fib 25))
(with-handlers ([void (lambda (e) (displayln (exn-message e)))]) (error "raised"))
(collect-garbage)
(displayln (call/cc (lambda (k) (+ 1 (k 5)))))
