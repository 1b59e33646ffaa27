/* Writes as linkers do, through a stream that seeks: sections far apart. */
#include <stdio.h>

enum { SECTIONS = 64, APART = 64 << 10, SHORT = 100 };

int main(void) {
    static const char some[SHORT];
    FILE *file = fopen("sections", "w+");
    if (!file) return 1;
    for (long section = 0; section < SECTIONS; section++) {
        if (fseek(file, section * APART, SEEK_SET)) return 2;
        if (fwrite(some, SHORT, 1, file) != 1) return 3;
    }
    return fclose(file) ? 4 : 0;
}
