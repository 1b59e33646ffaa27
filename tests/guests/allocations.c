/* Makes one allocation of the program that it is preloaded to fail, or each from one on. In the environment: FAIL_PROGRAM,
   the program's short name, as others that it executes are left alone; FAIL_AT, counted from 1, with a minus all from that
   one on; FAIL_FILE, which is made when one has failed. */
#include "guest.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long at, made;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAIL_PROGRAM"), *number = getenv("FAIL_AT");
    if (name && number && !strcmp(name, program_invocation_short_name)) at = atol(number);
}

static int fails(void) {
    if (!at) return 0;
    long number = ++made;
    if (at > 0 ? number != at : number < -at) return 0;
    const char *file = getenv("FAIL_FILE");
    if (file) close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t border, size_t size) { return fails() ? NULL : __libc_memalign(border, size); }
void *aligned_alloc(size_t border, size_t size) { return memalign(border, size); }

int posix_memalign(void **result, size_t border, size_t size) {
    void *made_here = memalign(border, size);
    if (!made_here) return ENOMEM;
    *result = made_here;
    return 0;
}
