/* kernels/x86/rows_x86.c - what the packing of every x86 kernel reads for rows that a matrix lacks. */
#include "kernels/x86/rows_x86.h"

const uint8_t pn_zero_block[256] = {0};
