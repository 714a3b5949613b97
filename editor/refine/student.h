// SPDX-License-Identifier: Apache-2.0
/* student - tails of Student's t distribution. Called by culprits and choose. */
#ifndef ME_STUDENT_H
#define ME_STUDENT_H

/* Probability that t with @df degrees of freedom (above 0) is at least @t. */
double me_student_tail(double t, double df);

#endif
