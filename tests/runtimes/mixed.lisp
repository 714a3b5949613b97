; SPDX-License-Identifier: Apache-2.0
(print (loop for i below 1000000 sum (mod i 7)))
(print (handler-case (error "signalled") (error (e) (format nil "~a" e))))
(gc :full t)
(print (length (make-list 100000)))
