/* Pictures as inputs, and elements of outputs as numbers. Programs that use a part of it leave the rest unused. */
#ifndef @NAME@_PICTURES_H
#define @NAME@_PICTURES_H

#include "@name@.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* How a picture's values from 0 to 255 are fed: (value - mean) / deviation, by channel or one for all. */
typedef struct {
    const float *mean, *deviation;
    int channels;
} picture_feed;

static inline size_t elements(const @name@_tensor *about) {
    size_t count = 1;
    for (int d = 0; d < about->rank; d++) count *= (size_t)about->shape[d];
    return count;
}

static inline float element(const @name@_tensor *about, const void *from, size_t at) {
    const float scale = about->scale != 0 ? about->scale : 1;
    switch (about->type) {
        case @NAME@_FLOAT: return ((const float *)from)[at];
        case @NAME@_INT8: return scale * (float)(((const int8_t *)from)[at] - about->zero_point);
        case @NAME@_UINT8:
        case @NAME@_BOOL: return scale * (float)(((const uint8_t *)from)[at] - about->zero_point);
        case @NAME@_INT16: return (float)((const int16_t *)from)[at];
        case @NAME@_UINT16: return (float)((const uint16_t *)from)[at];
        case @NAME@_INT32: return (float)((const int32_t *)from)[at];
        case @NAME@_UINT32: return (float)((const uint32_t *)from)[at];
        case @NAME@_INT64: return (float)((const int64_t *)from)[at];
        case @NAME@_UINT64: return (float)((const uint64_t *)from)[at];
        case @NAME@_DOUBLE: return (float)((const double *)from)[at];
    }
    return 0;
}

/* The largest element behind `last` in order of size; the first one for `count`, and `count` when there are no more. */
static inline size_t next_largest(const @name@_tensor *about, const void *from, size_t last) {
    const size_t count = elements(about);
    const float below = last < count ? element(about, from, last) : INFINITY;
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        const float value = element(about, from, i);
        const int is_left = last == count || value < below || (value == below && i > last);
        if (is_left && (best == count || value > element(about, from, best))) best = i;
    }
    return best;
}

static inline void put(const @name@_tensor *about, void *to, size_t at, float value) {
    const float code = about->scale != 0 ? rintf(value / about->scale) + (float)about->zero_point : rintf(value);
    if (about->type == @NAME@_FLOAT)
        ((float *)to)[at] = value;
    else if (about->type == @NAME@_INT8)
        ((int8_t *)to)[at] = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
    else
        ((uint8_t *)to)[at] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
}

/* The two places of `size` that the one at `at` of `wanted` lies between, and how far it is from the first. */
static inline float neighbours(int at, int size, int wanted, int *first, int *second) {
    const float from = (float)at * ((float)size / (float)wanted);
    *first = (int)from < size - 1 ? (int)from : size - 1;
    *second = *first + 1 < size ? *first + 1 : size - 1;
    return from - floorf(from);
}

/* The whole picture in the input's size, as TensorFlow 1's ResizeBilinear gives it. */
static inline void put_picture(const unsigned char *pixels, int width, int height, const @name@_tensor *about,
                               picture_feed feed, void *to) {
    const int rows = about->shape[1], columns = about->shape[2], channels = about->shape[3];
    for (int y = 0; y < rows; y++) {
        int top, bottom;
        const float down = neighbours(y, height, rows, &top, &bottom);
        const unsigned char *upper = pixels + (size_t)top * (size_t)width * (size_t)channels;
        const unsigned char *lower = pixels + (size_t)bottom * (size_t)width * (size_t)channels;
        for (int x = 0; x < columns; x++) {
            int left, right;
            const float across = neighbours(x, width, columns, &left, &right);
            for (int c = 0; c < channels; c++) {
                const int n = feed.channels > 1 ? c % feed.channels : 0, l = left * channels + c, r = right * channels + c;
                const float above = upper[l] + (float)(upper[r] - upper[l]) * across;
                const float below = lower[l] + (float)(lower[r] - lower[l]) * across;
                put(about, to, ((size_t)y * (size_t)columns + (size_t)x) * (size_t)channels + (size_t)c,
                    (above + (below - above) * down - feed.mean[n]) / feed.deviation[n]);
            }
        }
    }
}

static inline int header_number(FILE *file) {
    int value = 0, letter = fgetc(file);
    while (letter == '#' || letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r') {
        while (letter == '#' && (letter = fgetc(file)) != '\n' && letter != EOF) letter = '#';
        letter = fgetc(file);
    }
    for (; letter >= '0' && letter <= '9' && value < 100000; letter = fgetc(file)) value = 10 * value + letter - '0';
    return value;
}

/* Reads a binary .ppm (.pgm for one channel) of 8 bits. 1: it was read; 0: the file is at its end; -1: it is none,
   or the input takes no pictures. */
static inline int read_picture(FILE *file, const @name@_tensor *about, picture_feed feed, void *to) {
    const int channels = about->rank == 4 ? about->shape[3] : 0;
    const int is_fit = about->type == @NAME@_FLOAT || about->type == @NAME@_INT8 || about->type == @NAME@_UINT8;
    const int letter = fgetc(file);
    int width, height, done = -1;
    unsigned char *pixels;
    size_t bytes;
    if (letter == EOF) return 0;
    if (!is_fit || (channels != 1 && channels != 3)) return -1;
    if (letter != 'P' || fgetc(file) != (channels == 3 ? '6' : '5')) return -1;
    width = header_number(file);
    height = header_number(file);
    if (header_number(file) != 255 || width < 1 || height < 1 || (size_t)width * (size_t)height >= (size_t)1 << 28)
        return -1;
    bytes = (size_t)width * (size_t)height * (size_t)channels;
    pixels = malloc(bytes);
    if (pixels && fread(pixels, 1, bytes, file) == bytes) {
        put_picture(pixels, width, height, about, feed, to);
        done = 1;
    }
    free(pixels);
    return done;
}

#endif
