/* A program with so much data of its own, all of which it touches. */
#include "guest.h"

__asm__(".section .rodata\n"
        ".globl data, data_end\n"
        "data: .incbin \"" DATA "\"\n"
        "data_end:\n"
        ".previous");
extern const unsigned char data[], data_end[];

#ifdef LIBRARY
void from_library(void) {
#else
int main(void) {
#endif
    unsigned long sum = 0;
    for (const unsigned char *at = data; at < data_end; at += 512) sum = sum * 31 + *at;
    printf("%lx\n", sum);
#ifndef LIBRARY
    return 0;
#endif
}
