# SPDX-License-Identifier: Apache-2.0
fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)
s <- 0
for (i in 1:200000) s <- s + i %% 7
x <- 1:1000
print(c(s, fib(18), summary(lm(x ~ I(x^2)))$r.squared))
tryCatch(stop("stopped"), error = function(e) print(conditionMessage(e)))
invisible(gc())
print(paste(rev(strsplit("abc", "")[[1]]), collapse = ""))
