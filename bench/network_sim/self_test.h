/* SPDX-License-Identifier: Apache-2.0 */
/* self_test.h - the model beside its formulas. */
#ifndef NETWORK_SIM_SELF_TEST_H
#define NETWORK_SIM_SELF_TEST_H

int self_test(void); /* 0; 1: it says what is wrong */

#endif
