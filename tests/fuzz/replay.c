/* Runs a fuzz target over its corpus (the folder UM_CORPUS), as a unit test: NAME_replay. An input that fails ends the
 * program; its name is the last line. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The input in memory of exact size, so that a read beyond it is seen. */
static int replay(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", UM_CORPUS, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        return -1;
    }
    long size = ftell(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    rewind(file);
    if (data == NULL || size < 0 || fread(data, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        return -1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = scandir(UM_CORPUS, &entries, no_dots, alphasort), passed = 0;
    if (LLVMFuzzerInitialize != NULL) {
        LLVMFuzzerInitialize(&argc, &argv);
    }
    for (int i = 0; i < count; i++) {
        printf("%s\n", entries[i]->d_name);
        fflush(stdout);
        passed += replay(entries[i]->d_name) == 0;
        free(entries[i]);
    }
    if (count > 0) {
        free(entries);
    }
    int failed = count <= 0 ? 1 : count - passed; /* an empty corpus tests nothing */
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
