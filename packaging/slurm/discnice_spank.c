/*
 * Slurm plugin: srun, sbatch and salloc --disk 5M, --meta-ops 1000, --net 10M, --discnice-class NAME.
 *
 * A task with one of these options, or with a default of plugstack.conf, is executed by `discnice run`. The plugin only
 * puts discnice-task in the place of the task's program and tells it the rest by the environment: prologs, signals and
 * exit statuses stay Slurm's. Where anything is missing the task is executed as it is. Nothing happens to tasks without
 * limits, nor to srun and slurmstepd (docs/adr/0033-slurm.md).
 *
 * Built by `make slurm` for the Slurm whose headers are installed; in plugstack.conf, always `optional`:
 *     optional /usr/lib/discnice/discnice_spank.so [discnice=/usr/bin/discnice] [task=PATH] [disk=RATE] ...
 * With scontrol=/usr/bin/scontrol, what a job has moved is in its AdminComment, which sacct shows.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(discnice, 1);

/* Where `make install` puts the program. */
#ifndef PREFIX
#define PREFIX "/usr/local"
#endif

enum { DISK, DISK_READ, DISK_WRITE, META_OPS, NET, CLASS, COUNT };

/* An option of Slurm's commands, that of `discnice run`, and the variable that carries its value to discnice-task. */
static const struct {
    char *option, *ours, *variable, *argument, *usage;
} known[COUNT] = {
    [DISK] = {"disk", "--disk", "DISCNICE_TASK_DISK", "RATE", "disk traffic of the job on each node, such as 5M"},
    [DISK_READ] = {"disk-read", "--disk-read", "DISCNICE_TASK_DISK_READ", "RATE", "of that, reading"},
    [DISK_WRITE] = {"disk-write", "--disk-write", "DISCNICE_TASK_DISK_WRITE", "RATE", "of that, writing"},
    [META_OPS] = {"meta-ops", "--meta-ops", "DISCNICE_TASK_META_OPS", "N", "calls on names a second, on each node"},
    [NET] = {"net", "--net", "DISCNICE_TASK_NET", "RATE", "network traffic of the job on each node"},
    [CLASS] = {"discnice-class", "--class", "DISCNICE_TASK_CLASS", "NAME", "class of the job, with its limits"},
};

static char *values[COUNT];
static const char *program = PREFIX "/bin/discnice";
static const char *task = PREFIX "/lib/discnice/discnice-task";
static const char *ended = PREFIX "/lib/discnice/discnice-ended";
static const char *scontrol;

extern char **environ;

/* Runs the program without output, or with what it complains of; returns whether it succeeded, or cannot be asked. */
static int succeeds(char *const *words, int complains) {
    posix_spawn_file_actions_t streams;
    int status = 0, failed;
    pid_t child;

    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_addopen(&streams, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&streams, 1, "/dev/null", O_WRONLY, 0);
    if (!complains)
        posix_spawn_file_actions_addopen(&streams, 2, "/dev/null", O_WRONLY, 0);
    failed = posix_spawn(&child, words[0], &streams, NULL, words, environ);
    posix_spawn_file_actions_destroy(&streams);
    if (failed || waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Slurm calls this where an option is given, and once more on each node. */
static int given(int number, const char *value, int remote) {
    if (number < 0 || number >= COUNT || !value)
        return -1;
    if (!remote && access(program, X_OK) == 0) {
        char *words[] = {(char *)program, "run", "--dry-run", known[number].ours, (char *)value, "--", "true", NULL};

        if (!succeeds(words, 1)) {
            slurm_error("--%s: nothing was submitted", known[number].option);
            return -1;
        }
    }
    free(values[number]);
    values[number] = strdup(value);
    return 0;
}

/* Takes the defaults of plugstack.conf, and registers the options. */
int slurm_spank_init(spank_t spank, int count, char **words) {
    spank_context_t context = spank_context();

    for (int i = 0; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (!value)
            continue;
        value++;
        if (!strncmp(words[i], "discnice=", 9))
            program = value;
        if (!strncmp(words[i], "task=", 5))
            task = value;
        if (!strncmp(words[i], "ended=", 6))
            ended = value;
        if (!strncmp(words[i], "scontrol=", 9))
            scontrol = value;
        for (int one = 0; one < COUNT; one++) {
            size_t length = strlen(known[one].option);

            if (!strncmp(words[i], known[one].option, length) && words[i][length] == '=' && !values[one])
                values[one] = strdup(value);
        }
    }
    if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && context != S_CTX_ALLOCATOR)
        return 0;
    for (int one = 0; one < COUNT; one++) {
        struct spank_option option = {
            known[one].option, known[one].argument, known[one].usage, 1, one, given,
        };

        /* Another plugin's option of that name stays that plugin's. */
        spank_option_register(spank, &option);
    }
    return 0;
}

static int is_limited(void) {
    for (int one = 0; one < COUNT; one++)
        if (values[one])
            return 1;
    return 0;
}

/* The class of a job without another one: all its tasks on a node share its limits. */
static int name_class(spank_t spank, char *name, size_t size) {
    uint32_t job;

    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    return snprintf(name, size, "slurm-%u", job) < (int)size;
}

/* In the task, as the user, before prologs and the program: discnice-task takes the program's place. */
int slurm_spank_task_init(spank_t spank, int count, char **words) {
    char name[32], **argv = NULL;
    int argc = 0;

    (void)count, (void)words;
    if (!is_limited() || access(task, R_OK | X_OK) || access(program, X_OK) || !name_class(spank, name, sizeof name))
        return 0;
    if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1 || !argv || !argv[0])
        return 0;
    if (spank_setenv(spank, "DISCNICE_TASK", argv[0], 1) != ESPANK_SUCCESS)
        return 0;
    spank_setenv(spank, "DISCNICE_TASK_RUN", program, 1);
    spank_setenv(spank, known[CLASS].variable, values[CLASS] ? values[CLASS] : name, 1);
    for (int one = 0; one < CLASS; one++)
        if (values[one])
            spank_setenv(spank, known[one].variable, values[one], 1);
    argv[0] = strdup(task);
    return 0;
}

/* In a child of slurmstepd: becomes the job's user and executes discnice-ended. */
static void execute_ended(uid_t user, gid_t group, int output, char *name, const char *folder) {
    char *words[] = {(char *)ended, (char *)program, name, NULL};
    int nothing = open("/dev/null", O_RDWR);

    if (geteuid() == 0 && (setgroups(0, NULL) || setgid(group) || setuid(user)))
        _exit(1);
    if (folder[0])
        setenv("XDG_RUNTIME_DIR", folder, 1);
    else
        unsetenv("XDG_RUNTIME_DIR");
    dup2(nothing, 0), dup2(output, 1), dup2(nothing, 2);
    execv(ended, words);
    _exit(1);
}

/* Reads one line; what the user's processes may have put into it is only letters, digits and a few signs. */
static void read_line(int input, char *line, size_t size) {
    size_t length = 0;
    char one;

    while (read(input, &one, 1) == 1 && one != '\n')
        if (length + 1 < size && one && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 =./-", one))
            line[length++] = one;
    line[length] = 0;
}

/* Puts what the job did on its first node into its comment. Slurm cannot append to it, so other nodes do not tell. */
static void tell(spank_t spank, uint32_t job, const char *line) {
    char name[256] = "", which[32], comment[768];
    char *words[] = {(char *)scontrol, "update", which, comment, NULL};
    uint32_t node;

    if (!scontrol || !line[0] || spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS || node != 0)
        return;
    spank_getenv(spank, "SLURMD_NODENAME", name, sizeof name);
    snprintf(which, sizeof which, "JobId=%u", job);
    snprintf(comment, sizeof comment, "AdminComment=%s %s", name, line);
    succeeds(words, 0);
}

/* In slurmstepd, as the superuser: if this was the last task here, removes the job's class, as its user, and tells of it. */
int slurm_spank_task_exit(spank_t spank, int count, char **words) {
    char name[32], folder[4096] = "", line[384];
    uint32_t job;
    uid_t user;
    gid_t group;
    pid_t child;
    int pipes[2];

    (void)count, (void)words;
    if (!is_limited() || values[CLASS] || !name_class(spank, name, sizeof name) || access(ended, R_OK | X_OK))
        return 0;
    if (spank_get_item(spank, S_JOB_UID, &user) || spank_get_item(spank, S_JOB_GID, &group) || spank_get_item(spank, S_JOB_ID, &job))
        return 0;
    spank_getenv(spank, "XDG_RUNTIME_DIR", folder, sizeof folder);
    if (pipe2(pipes, O_CLOEXEC))
        return 0;
    child = fork();
    if (child == 0)
        execute_ended(user, group, pipes[1], name, folder);
    close(pipes[1]);
    if (child > 0) {
        read_line(pipes[0], line, sizeof line);
        waitpid(child, NULL, 0);
        tell(spank, job, line);
    }
    close(pipes[0]);
    return 0;
}
