/* Maps the file of weights. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200112L
#endif

#include "@name@.h"

#if defined(_WIN32)
#include <windows.h>

const void *@name@_map(const char *path, size_t *bytes) {
    const void *found = 0;
    LARGE_INTEGER size;
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, 0, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, 0);
    if (file == INVALID_HANDLE_VALUE) return 0;
    if (GetFileSizeEx(file, &size)) {
        HANDLE mapping = CreateFileMappingA(file, 0, PAGE_READONLY, 0, 0, 0);
        if (mapping) {
            found = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
            *bytes = (size_t)size.QuadPart;
            CloseHandle(mapping);
        }
    }
    CloseHandle(file);
    return found;
}

void @name@_unmap(const void *weights, size_t bytes) {
    (void)bytes;
    UnmapViewOfFile(weights);
}

#elif defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const void *@name@_map(const char *path, size_t *bytes) {
    void *found = MAP_FAILED;
    struct stat about;
    const int file = open(path, O_RDONLY);
    if (file < 0) return 0;
    if (fstat(file, &about) == 0 && about.st_size > 0) {
        *bytes = (size_t)about.st_size;
        found = mmap(0, *bytes, PROT_READ, MAP_SHARED, file, 0);
    }
    close(file);
    return found == MAP_FAILED ? 0 : found;
}

void @name@_unmap(const void *weights, size_t bytes) { munmap((void *)(uintptr_t)weights, bytes); }

#else
#include <stdio.h>
#include <stdlib.h>

const void *@name@_map(const char *path, size_t *bytes) {
    void *found = malloc(@NAME@_WEIGHTS_BYTES);
    FILE *file = fopen(path, "rb");
    *bytes = file && found ? fread(found, 1, @NAME@_WEIGHTS_BYTES, file) : 0;
    if (file) fclose(file);
    if (*bytes == @NAME@_WEIGHTS_BYTES) return found;
    free(found);
    return 0;
}

void @name@_unmap(const void *weights, size_t bytes) {
    (void)bytes;
    free((void *)(uintptr_t)weights);
}
#endif
