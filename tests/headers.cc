// SPDX-License-Identifier: Apache-2.0
// Nothing: a file for the headers that the tests have in common to be compiled with.
