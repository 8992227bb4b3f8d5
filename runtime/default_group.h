/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_DEFAULT_GROUP_H
#define RUNTIME_DEFAULT_GROUP_H

#include "include/ct.h"

ct_group *default_group(void); /* NULL before init; init.c */

#endif
