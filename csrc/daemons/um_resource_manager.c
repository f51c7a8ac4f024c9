/* Listing and reclaiming of shared-memory resources. The line formats are those of
 * the originals; the objects receivers sleep on stand where those had semaphores.
 * The locks decide who lives, so reclaiming is safe at any time. */
#include "daemons/um_resource_manager.h"

#include <stdio.h>
#include <string.h>

#include "base/um_error.h"
#include "base/um_mem.h"

/* Semaphores belong together under a key, here one of the directory. */
static uint32_t key_of_directory(void)
{
    uint32_t key = 2166136261u;
    for (const char *c = um_shm_directory(); *c != '\0'; c++) {
        key = (key ^ (uint8_t)*c) * 16777619u;
    }
    return key;
}

/* The two sorts of resources that are listed and reclaimed, one after the other. */
enum sort { SORT_MEMORY, SORT_SEMAPHORE };

static enum sort sort_of(const struct um_shm_entry *entry)
{
    return entry->transport_id != 0 ? SORT_MEMORY : SORT_SEMAPHORE;
}

static void display(const struct um_shm_entry *entries, int count)
{
    printf("Displaying Resources (to reclaim you must type '-reclaim' exactly)\n\n--Memory Resources--\n");
    for (int i = 0; i < count; i++) {
        if (sort_of(&entries[i]) == SORT_MEMORY) {
            printf(" Memory resource: Process ID: %u SessionID: %x XportID: %u\n", entries[i].pid,
                   entries[i].session_id, entries[i].transport_id);
        }
    }
    printf("\n--Semaphore Resources--\n Semaphore key: 0x%x\n    Semaphore resource Index 0: reserved\n",
           key_of_directory());
    int index = 0;
    for (int i = 0; i < count; i++) {
        if (sort_of(&entries[i]) == SORT_SEMAPHORE) {
            printf("    Semaphore resource: Process ID: %u Sem Index: %d\n", entries[i].pid, ++index);
        }
    }
}

static void print_outcome(const struct um_shm_entry *entry, int index, int rc)
{
    if (sort_of(entry) == SORT_MEMORY) {
        printf(rc == 0 ? " Process %u not found: reclaiming Memory resource (SessionID: %x XPortID: %u)\n"
                       : " Process %u still active! Memory resource not reclaimed (SessionID: %x XPortID: %u)\n",
               entry->pid, entry->session_id, entry->transport_id);
    } else {
        printf(rc == 0 ? " Process %u not found: reclaiming Semaphore resource: Key: 0x%x Sem Index: %d\n"
                       : " Process %u still active! Semaphore resource not reclaimed (Key: 0x%x Sem Index: %d)\n",
               entry->pid, key_of_directory(), index);
    }
}

/* All of one sort. Returns how many could not be dealt with. */
static int reclaim(const struct um_shm_entry *entries, int count, enum sort sort)
{
    int index = 0, failures = 0;
    for (int i = 0; i < count; i++) {
        if (sort_of(&entries[i]) != sort) {
            continue;
        }
        index++;
        int rc = um_shm_reclaim(&entries[i]);
        if (rc >= 0) {
            print_outcome(&entries[i], index, rc);
        } else {
            fprintf(stderr, "%s\n", um_errmsg());
            failures++;
        }
    }
    return failures;
}

static void print_usage(enum um_shm_kind kind, const char *path)
{
    printf("%s, libum version %s\n"
           "Shows what LBT-%s has in shared memory, or removes what dead processes have left of it.\n"
           "Usage: %s [-reclaim]\n"
           "  -reclaim    remove what belongs to no process that lives; what is in use is locked, and stays\n"
           "  -h, --help  show this text\n"
           "The folder is /dev/shm, or what the variable UM_SHM_DIR names.\n",
           path, UM_VERSION, kind == UM_SHM_IPC ? "IPC" : "SMX", path);
}

int um_resource_manager(enum um_shm_kind kind, int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
        print_usage(kind, argv[0]);
        return 0;
    }
    struct um_shm_entry *entries;
    int failures = 0;
    int count = um_shm_list(kind, &entries);
    if (count < 0) {
        fprintf(stderr, "%s\n", um_errmsg());
        return 1;
    }
    if (argc == 2 && strcmp(argv[1], "-reclaim") == 0) {
        printf("Reclaiming Resources\n");
        failures = reclaim(entries, count, SORT_MEMORY) + reclaim(entries, count, SORT_SEMAPHORE);
    } else {
        display(entries, count);
    }
    um_free(entries);
    return failures == 0 ? 0 : 1;
}
