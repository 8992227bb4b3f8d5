/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h - the only file that includes cmocka, in the order it needs. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "include/ct.h"

#endif
