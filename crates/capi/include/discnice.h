/* DiscNice: testpoints for polite jobs. Generated from crates/capi/src/lib.rs; do not edit. */

#ifndef DISCNICE_H
#define DISCNICE_H

#include <stdbool.h>
#include <stdint.h>

/*
 The job goes on at once.
 */
#define DISCNICE_WENT 0

/*
 Too soon after the last testpoint: nothing was looked at.
 */
#define DISCNICE_TOO_SOON 1

/*
 The job lagged behind its target and was suspended; it may go on now.
 */
#define DISCNICE_SUSPENDED 2

/*
 The job is on probation and waited for its share of time; it may go on now.
 */
#define DISCNICE_HELD 3

/*
 The report taught nothing (first of its set, no progress, a counter that went backwards or is not a
 number, a set with another number of metrics than before); the job goes on.
 */
#define DISCNICE_SKIPPED 4

/*
 An argument was refused (a negative index or count, a null pointer); the job goes on.
 */
#define DISCNICE_INVALID -1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Reports progress and returns when it is fine to go on.

 `index` names the set of metrics, such as a phase of the job; `count` is the number of metrics of
 this set, 1 to 16, always the same for an index; `metrics` holds cumulative counters.

 Returns one of the `DISCNICE_` outcomes. The caller may ignore it.

 # Safety
 `metrics` is null or points to `count` readable doubles.
 */
int discnice_testpoint(int index, int count, const double *metrics);

/*
 Sets the calling thread's priority relative to other polite threads of the user: one with 200 gets
 twice the time of one with 100, which is the default. Below 1 counts as 1.
 */
void discnice_set_priority(int priority);

/*
 Declares the resources that the calling thread uses, one bit each, by a convention among the
 user's jobs. Polite threads without a common bit may run side by side. 0, the default, is everything.
 */
void discnice_set_resources(uint64_t bits);

/*
 With true, the calling thread's testpoints never wait, until set to false again.
 */
void discnice_set_critical(bool critical);

/*
 Names the job, where one executable runs many. Targets are kept for each name. Returns 0, or
 `DISCNICE_INVALID` for a null pointer or a text that is not UTF-8.

 # Safety
 `name` is null or points to a text that ends in a zero byte.
 */
int discnice_set_job_name(const char *name);

/*
 Saves the targets now. Needed only by a program that ends without exit(3).
 */
void discnice_flush(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DISCNICE_H */
